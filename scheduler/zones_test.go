package scheduler_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// lines are the lines of a log with a word, without what comes before their message.
func (b *book) lines(word string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	var list []string
	for line := range strings.Lines(b.buf.String()) {
		if _, rest, ok := strings.Cut(line, "level="); ok && strings.Contains(rest, word) {
			list = append(list, strings.TrimSpace(rest))
		}
	}
	return list
}

// noted is a replica, not started, and what it logs.
func noted(t *testing.T, m scheduler.Members, list ...jobs.Job) (log *book, run func(context.Context) error) {
	t.Helper()
	log = &book{}
	s, err := scheduler.New(scheduler.Config{Namespace: "test", Members: m, Lease: lease, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err == nil {
		err = s.Add(list...)
	}
	if err != nil {
		t.Fatal(err)
	}
	return log, s.Run
}

// F56, DP-10: other zone data is reported once for each change of who has which, and so is that they agree again. A replica
// tells its own without a store too.
func TestZonesOfMembers(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		b := &board{facts: map[string]map[string]string{}}
		p := poster{&ledger{seat: seat{f.gossip, "me"}}, b}
		log, run := noted(t, p)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- run(ctx) }()
		ours := jobs.ZoneVersion()
		const warned = "members have other zone data"
		many := "2024a: r0, r1, r2, r3, r4 and 2 more"
		for i, step := range []struct {
			zones map[string]string
			want  string // "": nothing new; "again": they agree
		}{
			{map[string]string{"a": ours, "b": "", "c": ours}, ""},
			{map[string]string{"a": "2025b"}, "2025b: a"},
			{map[string]string{"d": ours}, ""},
			{map[string]string{"b": "2025b", "c": "zoneinfo-0123456789ab"}, "2025b: a, b; zoneinfo-0123456789ab: c"},
			{map[string]string{"b": ours, "c": ours, "a": ours}, "again"},
			{map[string]string{"e": ""}, ""},
			{map[string]string{"a": "later"}, "later: a"},
			{map[string]string{"a": "gone"}, "again"},
			{map[string]string{"r0": "2024a", "r1": "2024a", "r2": "2024a", "r3": "2024a", "r4": "2024a", "r5": "2024a", "r6": "2024a"}, many},
		} {
			b.mu.Lock()
			for name, version := range step.zones {
				b.facts[name] = map[string]string{"zones": version}
				if version == "" {
					delete(b.facts[name], "zones")
				}
				if version == "gone" {
					delete(b.facts, name)
				}
			}
			b.mu.Unlock()
			before := len(log.lines("zone data"))
			for range 3 { // the owners change thrice, and what differs once
				if step.zones["a"] == "" {
					f.gossip.set("other", "serving")
				}
				time.Sleep(lease)
			}
			said := log.lines("zone data")[before:]
			switch {
			case step.want == "" && len(said) == 0:
			case step.want == "again" && len(said) == 1 && strings.HasPrefix(said[0], `INFO msg="the members have the same zone data again"`):
			case step.want != "" && len(said) == 1 && strings.HasPrefix(said[0], `WARN msg="`+warned) &&
				strings.HasSuffix(said[0], fmt.Sprintf(` zones=%s others=%q`, ours, step.want)):
			default:
				t.Errorf("step %d: the log says %q, want of %q", i, said, step.want)
			}
		}
		if got := p.last().facts; len(got) != 1 || got["zones"] != ours {
			t.Errorf("announced %v without a store, want the zone data alone", got)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// DP-11: whoever set ZONEINFO learns what became of it. It is read once for a process, so each value has its own.
func TestZoneInfoIsTold(t *testing.T) {
	if os.Getenv(zoneChild) != "" {
		log, run := noted(t, nil)
		ctx, stop := context.WithCancel(t.Context())
		stop()
		if err := run(ctx); err != nil {
			t.Error(err)
		}
		fmt.Fprintf(os.Stdout, "told %q\n", log.lines("ZONEINFO"))
		return
	}
	t.Parallel()
	empty := t.TempDir()
	for value, want := range map[string]string{
		"":         `told []`,
		"/nowhere": `WARN msg=\"ZONEINFO is set and zones are the program's own all the same\"`,
		empty:      `no zone is in it; name a directory or a zip file of zones`,
		filepath.Join("..", "jobs", "internal", "zone", "zoneinfo.zip"):      `INFO msg=\"zones are those that ZONEINFO names\"`,
		filepath.Join("..", "jobs", "internal", "zone", "testdata", "2023b"): `zones=zoneinfo-`,
	} {
		cmd := exec.Command(os.Args[0], "-test.run=^TestZoneInfoIsTold$")
		cmd.Env = append(os.Environ(), "ZONEINFO="+value, zoneChild+"=1")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("ZONEINFO=%s: %v, %s; want %s", value, err, out, want)
		}
	}
}

const zoneChild = "BELFRY_TEST_ZONE_CHILD"

// The first three dues of a job are logged when it is added, by the hash of its name if it has an H.
func TestDuesAreLogged(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) { // it begins at 2000-01-01T00:00:00Z
		never := func(time.Time) time.Time { return time.Time{} }
		job := func(name string, s jobs.Schedule) jobs.Job { return jobs.Job{Name: name, Schedule: s, Run: quick} }
		all := []jobs.Job{
			job("hourly", jobs.Cron("0 * * * *")),
			job("berlin", jobs.Cron("30 2 * * *").In("Europe/Berlin")),
			job("once", jobs.At(time.Date(2000, 1, 1, 0, 0, 1, 0, time.UTC))),
			job("over", jobs.At(time.Now())),
			job("never", jobs.Custom("never", never)),
		}
		log := &book{}
		logger := slog.New(slog.NewTextHandler(log, nil))
		s, err := scheduler.New(scheduler.Config{Namespace: "test", Store: f.store, Logger: logger})
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Add(append(all, jobs.Job{Name: "bad"})...); err == nil || len(log.lines("added")) > 0 {
			t.Errorf("with an error, %v, none was added; the log says %q", err, log.lines("added"))
		}
		if err := s.Add(all...); err != nil {
			t.Fatal(err)
		}
		want := []string{
			`job=hourly schedule="0 * * * *" next="[2000-01-01T01:00:00Z 2000-01-01T02:00:00Z 2000-01-01T03:00:00Z]"`,
			`job=berlin schedule="TZ=Europe/Berlin 30 2 * * *" next="[2000-01-01T01:30:00Z 2000-01-02T01:30:00Z 2000-01-03T01:30:00Z]"` +
				` local="[2000-01-01T02:30:00+01:00 2000-01-02T02:30:00+01:00 2000-01-03T02:30:00+01:00]"`,
			`job=once schedule="@at 2000-01-01T00:00:01Z" next=[2000-01-01T00:00:01Z]`,
			`job=over schedule="@at 2000-01-01T00:00:00Z" next="none: its last due is over"`,
			`job=never schedule="@custom never" next="none: its last due is over"`,
		}
		got := log.lines("job added")
		for i, w := range want {
			if i >= len(got) || !strings.HasSuffix(got[i], " "+w) || !strings.HasPrefix(got[i], `INFO msg="job added" namespace=test replica=`) {
				t.Errorf("line %d of %q, want %s", i, got, w)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d lines, want %d", len(got), len(want))
		}
	})
}

// Ten thousand jobs at once are no flood of lines; and a log that does not want them costs no dues: each calendar is asked
// once, whether it is in order.
func TestDuesOfManyJobs(t *testing.T) {
	t.Parallel()
	asked := 0
	count := func(t time.Time) time.Time { asked++; return t.Add(time.Hour) }
	var list []jobs.Job
	for i := range 10_000 {
		list = append(list, jobs.Job{Name: fmt.Sprintf("job-%05d", i), Schedule: jobs.Custom("counted", count), Run: quick, Guarantee: jobs.Efficiency})
	}
	for level, want := range map[slog.Level]int{slog.LevelInfo: 51, slog.LevelWarn: 0} {
		log := &book{}
		s, err := scheduler.New(scheduler.Config{Namespace: "test", Logger: slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: level}))})
		if err != nil {
			t.Fatal(err)
		}
		asked = 0
		if err := s.Add(list...); err != nil {
			t.Fatal(err)
		}
		got := log.lines("added")
		if len(got) != want || asked > len(list)+4*want || want > 0 && !strings.Contains(got[50], "more jobs added") || want > 0 && !strings.HasSuffix(got[50], " jobs=9950") {
			t.Errorf("%s: %d lines, %d questions, last %q", level, len(got), asked, got[max(len(got)-1, 0):])
		}
	}
}
