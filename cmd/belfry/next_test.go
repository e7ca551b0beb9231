package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// What people read: UTC, the zone's clock, and a note where the clock was changed.
func TestNextForPeople(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, args, spec string
		want             []string
	}{
		{"no zone", "--after 2026-10-01T03:59:59.5Z -n 2", "0 4 * * *", []string{
			"2026-10-01T04:00:00Z\tThu 2026-10-01 04:00:00 +00:00 UTC",
			"2026-10-02T04:00:00Z\tFri 2026-10-02 04:00:00 +00:00 UTC"}},
		{"skipped", "--tz Europe/Berlin --after 2026-03-28T00:00:00Z -n 3", "30 2 * * *", []string{
			"2026-03-28T01:30:00Z\tSat 2026-03-28 02:30:00 +01:00 CET",
			"2026-03-29T01:00:00Z\tSun 2026-03-29 03:00:00 +02:00 CEST\tin place of 02:30: the clock jumps from 02:00 to 03:00",
			"2026-03-30T00:30:00Z\tMon 2026-03-30 02:30:00 +02:00 CEST"}},
		{"several skipped", "--after 2026-03-29T00:00:00Z -n 1", "TZ=Europe/Berlin 15 10,20,30 2 * * *", []string{
			"2026-03-29T01:00:00Z\tSun 2026-03-29 03:00:00 +02:00 CEST\tin place of 02:10:15 and 2 more: the clock jumps from 02:00 to 03:00"}},
		{"a real one beside", "--tz Europe/Berlin --after 2026-03-29T00:00:00Z -n 1", "0,30 2,3 * * *", []string{
			"2026-03-29T01:00:00Z\tSun 2026-03-29 03:00:00 +02:00 CEST\tthe clock jumps from 02:00 to 03:00"}},
		{"a day skipped", "--tz Pacific/Apia --after 2011-12-30T00:00:00Z -n 1", "0 12 * * *", []string{
			"2011-12-30T10:00:00Z\tSat 2011-12-31 00:00:00 +14:00 +14\tin place of 2011-12-30 12:00: the clock jumps from 2011-12-30 00:00 to 2011-12-31 00:00"}},
		{"23 hours", "--tz America/New_York --after 2026-03-07T15:00:00Z -n 2", "0 9 * * *", []string{
			"2026-03-08T13:00:00Z\tSun 2026-03-08 09:00:00 -04:00 EDT\t23h after the one before: the clock was set forward by 1h",
			"2026-03-09T13:00:00Z\tMon 2026-03-09 09:00:00 -04:00 EDT"}},
		{"25 hours", "--tz America/New_York --after 2026-11-01T00:00:00Z -n 1", "0 9 * * *", []string{
			"2026-11-01T14:00:00Z\tSun 2026-11-01 09:00:00 -05:00 EST\t25h after the one before: the clock was set back by 1h"}},
		{"months", "--tz America/New_York --after 2026-03-02T00:00:00Z -n 1", "0 9 1 * *", []string{
			"2026-04-01T13:00:00Z\tWed 2026-04-01 09:00:00 -04:00 EDT\tthe clock was set forward by 1h since the one before"}},
		{"once of two", "--tz Australia/Lord_Howe --after 2026-04-04T00:00:00Z -n 2", "45 1 * * *", []string{
			"2026-04-04T14:45:00Z\tSun 2026-04-05 01:45:00 +11:00 +11\tthe first 01:45, before the clock is set back",
			"2026-04-05T15:15:00Z\tMon 2026-04-06 01:45:00 +10:30 +1030\t24h30m after the one before: the clock was set back by 30m"}},
		{"both passes", "--tz Europe/Berlin --after 2026-10-24T23:30:00Z -n 4", "30 * * * *", []string{
			"2026-10-25T00:30:00Z\tSun 2026-10-25 02:30:00 +02:00 CEST\tthe first 02:30, before the clock is set back",
			"2026-10-25T01:30:00Z\tSun 2026-10-25 02:30:00 +01:00 CET\tthe second 02:30, after the clock was set back",
			"2026-10-25T02:30:00Z\tSun 2026-10-25 03:30:00 +01:00 CET",
			"2026-10-25T03:30:00Z\tSun 2026-10-25 04:30:00 +01:00 CET"}},
		{"nothing made up", "--tz Europe/Berlin --after 2026-03-29T00:30:00Z -n 2", "*/30 * * * *", []string{
			"2026-03-29T01:00:00Z\tSun 2026-03-29 03:00:00 +02:00 CEST\tthe clock jumps from 02:00 to 03:00",
			"2026-03-29T01:30:00Z\tSun 2026-03-29 03:30:00 +02:00 CEST"}},
		{"an interval, shown in a zone", "--tz Europe/Berlin --after 2026-10-24T23:00:00Z -n 2", "@every 1h phase 30m", []string{
			"2026-10-24T23:30:00Z\tSun 2026-10-25 01:30:00 +02:00 CEST",
			"2026-10-25T00:30:00Z\tSun 2026-10-25 02:30:00 +02:00 CEST\tthe first 02:30, before the clock is set back"}},
		{"the prefix wins", "--tz Europe/Berlin --after 2026-07-01T00:00:00Z -n 1", "CRON_TZ=Asia/Tokyo 0 2 * * *", []string{
			"2026-07-01T17:00:00Z\tThu 2026-07-02 02:00:00 +09:00 JST"}},
		{"fewer than asked for", "--after 2026-07-01T00:00:00+02:00 -n 9", "@at 2026-07-01T00:00:00Z,2020-01-01T00:00:00Z", []string{
			"2026-07-01T00:00:00Z\tWed 2026-07-01 00:00:00 +00:00 UTC"}},
		{"none", "--after 2026-07-01T02:00:00+02:00", "@at 2026-07-01T00:00:00Z", []string{"no due after 2026-07-01T00:00:00Z"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := belfry(t, "", append(append([]string{"next"}, strings.Fields(c.args)...), c.spec)...)
			if want := (result{0, strings.Join(c.want, "\n") + "\n", ""}); got != want {
				t.Errorf("got  %v\nwant %v", got, want)
			}
		})
	}
}

// What programs read: one line of JSON, and status 2 for what the caller wrote wrong.
func TestNextForPrograms(t *testing.T) {
	t.Parallel()
	const hint = "; see belfry next --help, and put -- before a SPEC that begins with a dash"
	for _, c := range []struct {
		name string
		args []string
		want string // on standard output with --json; an error on standard error without
	}{
		{"dues", []string{"--after", "2026-10-01T00:00:00Z", "-n", "2", "0 4 * * *"}, `["2026-10-01T04:00:00Z","2026-10-02T04:00:00Z"]`},
		{"flags behind", []string{"TZ=Asia/Kolkata 0 4 * * *", "--after=2026-10-01T00:00:00.999+05:30", "-n1"}, `["2026-09-30T22:30:00Z"]`},
		{"none", []string{"--after", "2026-07-01T00:00:00Z", "@at 2026-07-01T00:00:00Z"}, `[]`},
		{"the end of time", []string{"--after", "9999-12-31T23:58:00Z", "* * * * *"}, `["9999-12-31T23:59:00Z"]`},
		{"never", []string{"0 0 30 2 *"}, "jobs: schedule \"0 0 30 2 *\": "},
		{"a dash", []string{"--", "-5 * * * *"}, "jobs: schedule \"-5 * * * *\": "},
		{"a dash, bare", []string{"-5 * * * *"}, "next: unknown shorthand flag: '5' in -5 * * * *" + hint},
		{"an unknown flag", []string{"--zone", "UTC", "* * * * *"}, "next: unknown flag: --zone" + hint},
		{"a number that is none", []string{"-n", "x", "* * * * *"}, "next: invalid argument \"x\" for \"-n, --count\" flag: strconv.ParseInt: parsing \"x\": invalid syntax" + hint},
		{"none asked for", []string{"-n", "0", "* * * * *"}, "next: -n 0: give 1 to 10000"},
		{"too many", []string{"-n", "10001", "* * * * *"}, "next: -n 10001: give 1 to 10000"},
		{"no quotes", []string{"0", "4", "*", "*", "*"}, `next: 5 arguments; give one schedule, in quotes, such as "0 2 * * *"`},
		{"no spec", nil, `next: 0 arguments; give one schedule, in quotes, such as "0 2 * * *"`},
		{"an empty spec", []string{""}, `jobs: schedule "": `},
		{"after what", []string{"--after", "tomorrow", "* * * * *"}, `next: --after "tomorrow": write the instant as 2026-10-01T04:00:00Z`},
		{"no instant", []string{"--after", "", "* * * * *"}, `next: --after "": write the instant as 2026-10-01T04:00:00Z`},
		{"an unknown zone", []string{"--tz", "Europe/berlin", "TZ=UTC * * * * *"}, `next: --tz: unknown zone "Europe/berlin"; write Europe/Berlin`},
		{"no zone", []string{"--tz", "", "* * * * *"}, `next: --tz: zone "" would mean another clock on each host; name one, such as UTC or Europe/Berlin`},
		{"no key", []string{"--key", "", "* * * * *"}, "next: --key: jobs: key is empty; a key has 1 to 255 bytes"},
		{"a sign for HTML", []string{"<&> * * * *"}, `jobs: schedule "<&> * * * *": `},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := belfry(t, "", append([]string{"next", "--json"}, c.args...)...)
			if strings.HasPrefix(c.want, "[") {
				if want := (result{0, c.want + "\n", ""}); got != want {
					t.Errorf("got  %v\nwant %v", got, want)
				}
				return
			}
			var told map[string]string
			if err := json.Unmarshal([]byte(got.out), &told); err != nil || got.status != 2 || got.err != "" ||
				strings.Count(got.out, "\n") != 1 || len(told) != 1 || !strings.HasPrefix(told["error"], c.want) || strings.Contains(got.out, `\u00`) {
				t.Errorf("got %v, want an error that begins with %q", got, c.want)
			}
			got = belfry(t, "", append([]string{"next"}, c.args...)...)
			if want := (result{2, "", "belfry: " + told["error"] + "\n"}); got != want {
				t.Errorf("for people: got  %v\nwant %v", got, want)
			}
		})
	}
	if got := belfry(t, "", "next", "-n", "x", "--json=true", "* * * * *"); got.status != 2 || !strings.HasPrefix(got.out, `{"error":`) {
		t.Errorf("--json behind what cannot be read: %v", got)
	}
	if got := belfry(t, "", "next", "--", "--json"); got.status != 2 || got.out != "" {
		t.Errorf("--json as SPEC: %v", got)
	}
}

// The command says of each case what package jobs says.
func TestNextOfCases(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile(filepath.Join("..", "..", "jobs", "testdata", "cron_specs_hand.json"))
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		ID, Spec, TZ, After string
	}
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	for _, c := range cases {
		after, err := time.Parse(time.RFC3339, c.After)
		if err != nil {
			t.Fatal(err)
		}
		s, err := jobs.ParseSchedule(c.Spec)
		s = s.In(c.TZ)
		if err == nil {
			err = s.Err()
		}
		var want []string
		for due, ok := s.Next(after); ok && len(want) < 3; due, ok = s.Next(due) {
			want = append(want, due.Format(time.RFC3339))
		}
		r := belfry(t, "", "next", "--json", "--tz", c.TZ, "--after", c.After, "-n", "3", "--key", c.ID, "--", c.Spec)
		var got []string
		switch {
		case err != nil:
			if r.status != 2 || !strings.HasPrefix(r.out, `{"error":`) {
				t.Errorf("%s: %v, want the error %v", c.ID, r, err)
			}
		case json.Unmarshal([]byte(r.out), &got) != nil || r.status != 0 || strings.Join(got, " ") != strings.Join(want, " "):
			t.Errorf("%s: %v, want %q", c.ID, r, want)
		}
	}
}

// An H is hashed from --key, and without it the command says so.
func TestNextHashed(t *testing.T) {
	t.Parallel()
	const after = "2026-10-01T00:00:00Z"
	minutes := map[string]bool{}
	for i := range 20 {
		key := "job-" + strconv.Itoa(i)
		due, ok := jobs.Cron("H 4 * * *").For(key).Next(time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC))
		if !ok {
			t.Fatalf("%s has no due", key)
		}
		got := belfry(t, "", "next", "--json", "--after", after, "-n", "1", "--key", key, "H 4 * * *")
		if want := (result{0, `["` + due.Format(time.RFC3339) + `"]` + "\n", ""}); got != want {
			t.Errorf("%s: got  %v\nwant %v", key, got, want)
		}
		minutes[got.out] = true
	}
	if len(minutes) < 5 {
		t.Errorf("20 keys have %d minutes", len(minutes))
	}
	for _, spec := range []string{"H 4 * * *", "TZ=Europe/Berlin H H(0-3) * * *"} {
		got := belfry(t, "", "next", spec)
		if got.status != 2 || got.out != "" || !strings.Contains(got.err, "has an H, which is hashed from the job's name; give that with --key") {
			t.Errorf("%s: %v", spec, got)
		}
	}
	if got := belfry(t, "", "next", "--after", after, "-n", "1", "0 4 * * *", "--key", "job"); got.status != 0 {
		t.Errorf("a key that nothing is hashed from: %v", got)
	}
}

// What runs by hand alone has no dues, and says why.
func TestNextManual(t *testing.T) {
	t.Parallel()
	if got, want := belfry(t, "", "next", "@manual"), (result{0, "no due: it runs only when it is triggered\n", ""}); got != want {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if got, want := belfry(t, "", "next", "--json", "@manual"), (result{0, "[]\n", ""}); got != want {
		t.Errorf("got  %v\nwant %v", got, want)
	}
}

// DP-10: two sets of zones give one job two dues.
func TestNextOfOtherZones(t *testing.T) {
	t.Parallel()
	for zoneinfo, want := range map[string]string{
		"": `["2023-03-27T00:00:00Z"]`,
		filepath.Join("..", "..", "jobs", "internal", "zone", "testdata", "2023b"): `["2023-03-27T01:00:00Z"]`,
	} {
		cmd := exec.Command(os.Args[0], "next", "--json", "-n", "1", "--after", "2023-03-26T12:00:00Z", "TZ=Asia/Beirut 0 3 * * *")
		cmd.Env = append(os.Environ(), "ZONEINFO="+zoneinfo)
		out, err := cmd.Output()
		if err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("ZONEINFO=%s: %q, %v; want %s", zoneinfo, out, err, want)
		}
	}
}

// DP-11: zones that cannot be read are told beside the dues, which are those of the program's own.
func TestNextOfZonesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--json"}, {}} {
		var out, errOut strings.Builder
		args := append([]string{"next", "-n", "1", "--after", "2023-03-26T12:00:00Z", "TZ=Asia/Beirut 0 3 * * *"}, args...)
		cmd := exec.Command(os.Args[0], args...)
		cmd.Env, cmd.Stdout, cmd.Stderr = append(os.Environ(), "ZONEINFO=/nowhere"), &out, &errOut
		if err := cmd.Run(); err != nil || !strings.Contains(out.String(), "2023-03-27T00:00:00Z") ||
			!strings.HasPrefix(errOut.String(), `belfry: next: jobs: ZONEINFO="/nowhere" cannot be read, and zones are the program's own: `) {
			t.Errorf("%q: %v, out %q, err %q", args, err, out.String(), errOut.String())
		}
	}
}
