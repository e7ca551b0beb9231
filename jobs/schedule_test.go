package jobs

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestScheduleText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, want string }{
		{"0 2 * * *", "0 2 * * *"},
		{"0\t2   * *  *", "0 2 * * *"},
		{"30 0 2 * * *", "30 0 2 * * *"},
		{"CRON_TZ=Europe/Berlin  0 2 * * *", "TZ=Europe/Berlin 0 2 * * *"},
		{"TZ=UTC @daily", "TZ=UTC @daily"},
		{"@hourly", "@hourly"},
		{"@every 90m", "@every 1h30m"},
		{"@every 1h30m phase 10m", "@every 1h30m phase 10m"},
		{"@every 1h phase -10m", "@every 1h phase 50m"},
		{"@every 1h phase 2h", "@every 1h"},
		{"TZ=Asia/Tokyo @every 45s", "@every 45s"},
		{"@every 100h0m5s", "@every 100h0m5s"},
		{"@at 2026-10-01T04:00:00Z", "@at 2026-10-01T04:00:00Z"},
		{"@at 2026-10-02T00:00:00+02:00,2026-10-01T04:00:00Z,2026-10-01T04:00:00Z", "@at 2026-10-01T04:00:00Z,2026-10-01T22:00:00Z"},
		{"@manual", "@manual"},
		{"union(0 2 * * *;@every 1h ; 0 2 * * *)", "union(0 2 * * *; @every 1h)"},
		{"union( 0 2 * * * )", "0 2 * * *"},
		{"union(@every 2h; union(@every 3h; @every 1h))", "union(@every 1h; @every 2h; @every 3h)"},
		{"except(except(@every 1h; 0 2 * * *); 0 1 * * *)", "except(@every 1h; union(0 1 * * *; 0 2 * * *))"},
		{"from(2026-10-01T02:00:00+02:00;\t@every 1h)", "from(2026-10-01T00:00:00Z; @every 1h)"},
		{"until(2027-01-01T00:00:00Z;from(2026-01-01T00:00:00Z; @daily))", "from(2026-01-01T00:00:00Z; until(2027-01-01T00:00:00Z; @daily))"},
		{"except(CRON_TZ=Asia/Tokyo  0 2 * * *; @at 2026-10-01T04:00:00Z)", "except(TZ=Asia/Tokyo 0 2 * * *; @at 2026-10-01T04:00:00Z)"},
		{"union(H H(0-3) * * *; 0 12 * * *)", "union(0 12 * * *; H H(0-3) * * *)"},
	} {
		s, err := ParseSchedule(c.in)
		if err != nil || s.String() != c.want {
			t.Errorf("%q: %q, %v; want %q", c.in, s, err, c.want)
			continue
		}
		again, err := ParseSchedule(s.String())
		if err != nil || again != s {
			t.Errorf("%q does not come back from its text: %v", c.in, err)
		}
	}
}

func TestScheduleRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s    Schedule
		says string
	}{
		{Schedule{}, "set Schedule"},
		{parse(""), "five fields"},
		{parse("garbage"), "five, such as"},
		{parse("TZ="), "name one, such as UTC"},
		{parse("TZ=0"), "IANA name"},
		{parse("TZ=UTC"), "five fields"},
		{parse("TZ=Mars/Olympus 0 2 * * *"), "IANA name"},
		{parse("TZ=Local 0 2 * * *"), "another clock on each host"},
		{parse("@every -24h"), "at least 1s"},
		{parse("@every 1500ms"), "whole seconds"},
		{parse("@every 1h phase 10"), "write it as"},
		{parse("@every 1h offset 10m"), "write @every"},
		{parse("@every"), "write @every"},
		{parse("0 0 30 2 *"), "never fires"},
		{parse("*/60 * * * *"), "use @every"},
		{parse("@at"), "2026-10-01T04:00:00Z"},
		{parse("@at tomorrow"), "2026-10-01T04:00:00Z"},
		{parse("@at 2026-10-01T04:00:00.5Z"), "truncate"},
		{parse("@custom holidays"), "jobs.Custom"},
		{parse("@reboot"), "five fields"},
		{parse(strings.Repeat("1,", maxText)), "too long"},
		{Cron(strings.Repeat("1,", maxText)), "too long"},
		{Every(0), "at least 1s"},
		{Every(time.Hour).Phase(time.Millisecond), "whole seconds"},
		{Cron("@daily").Phase(time.Minute), "only Every"},
		{Cron("@daily").In("Europe/Atlantis"), "IANA name"},
		{Every(time.Hour).In(""), "name one"},
		{At(), "give 1 to 1000"},
		{At(make([]time.Time, maxTimes+1)...), "give 1 to 1000"},
		{At(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)), "years 1 to 9999"},
		{Custom("holidays", nil), "nil function"},
		{Custom("holi days", func(t time.Time) time.Time { return t }), "not allowed"},
	} {
		err := c.s.Err()
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "jobs: ") {
			t.Errorf("%.40q: %v; want it to say %q", c.s.String(), err, c.says)
		}
		if len(c.s.String()) < 100 && err != nil && len(err.Error()) > 400 {
			t.Errorf("%.40q: %d bytes of error", c.s.String(), len(err.Error()))
		}
		if _, ok := c.s.Next(due); ok || c.s.Count(due, due.AddDate(1, 0, 0)) != 0 {
			t.Errorf("%.40q: has a due", c.s.String())
		}
		if again := c.s.In("UTC").Phase(0).Err(); again == nil || again.Error() != err.Error() {
			t.Errorf("%.40q: In and Phase hide the first mistake: %v", c.s.String(), again)
		}
	}
}

// A wrong schedule shows what the user wrote, and not what was made of it before it was found out.
func TestWrongScheduleKeepsItsText(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"@every 0.5s", "@every 60m phase 0.5s", "TZ=Asia/Tokyo  @every 1500ms", "@at 2026-10-01T04:00:00.5Z", "0  0 30 feb *", "jan * * * *",
		"union(@every 0.5s; @daily)", "except(@daily;@at 2026-10-01T04:00:00.5Z)", "from(2026-10-01T04:00:00.5Z;@daily)",
	} {
		s, err := ParseSchedule(text)
		if err == nil || s.String() != text || !strings.HasPrefix(err.Error(), fmt.Sprintf("jobs: schedule %q: ", text)) {
			t.Errorf("%q: %q, %v", text, s, err)
		}
	}
	for text, says := range map[string]string{
		"union(@daily; @every 0.5s)":         `operand 2 of union, "@every 0.5s": `,
		"union(@daily; @every 60m phase 1x)": `operand 2 of union, "@every 60m phase 1x": `,
		"except(@daily;0 0 30 feb *)":        `operand 2 of except, "0 0 30 feb *": day of month field, column 5: "30" never fires: the months of "feb"`,
	} {
		if _, err := ParseSchedule(text); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v; want it to say %q", text, err, says)
		}
	}
	if s := Cron("@every 0.5s"); s.String() != "@every 0.5s" {
		t.Errorf("Cron: %q", s)
	}
}

func TestScheduleJSON(t *testing.T) {
	t.Parallel()
	type config struct{ S Schedule }
	in := config{Cron("0 2 * * *").In("Europe/Berlin")}
	b, err := json.Marshal(in)
	if err != nil || string(b) != `{"S":"TZ=Europe/Berlin 0 2 * * *"}` {
		t.Fatalf("%s, %v", b, err)
	}
	out := config{Every(time.Hour)}
	if err := json.Unmarshal([]byte(`{"S":"nonsense"}`), &out); err == nil || out.S != Every(time.Hour) {
		t.Fatalf("a wrong text: %v, and %v is left", err, out.S)
	}
	if err := json.Unmarshal(b, &out); err != nil || out != in {
		t.Fatalf("%v, %v", out, err)
	}
	if b, err := json.Marshal(config{}); err == nil {
		t.Fatalf("the zero Schedule became %s", b)
	}
}

func TestEveryCountsFromTheEpoch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		s           Schedule
		after, want string
	}{
		{Every(time.Hour), "2026-10-01T04:00:00Z", "2026-10-01T05:00:00Z"},
		{Every(time.Hour), "2026-10-01T04:59:59.999999999Z", "2026-10-01T05:00:00Z"},
		{Every(time.Hour).Phase(10 * time.Minute), "2026-10-01T04:00:00Z", "2026-10-01T04:10:00Z"},
		{Every(time.Hour).Phase(10 * time.Minute).Phase(-time.Second), "2026-10-01T04:00:00Z", "2026-10-01T04:59:59Z"},
		{Every(7 * time.Second), "1969-12-31T23:59:52.5Z", "1969-12-31T23:59:53Z"},
		{Every(7 * time.Second), "1969-12-31T23:59:53Z", "1970-01-01T00:00:00Z"},
		{Every(time.Hour).In("America/New_York"), "2026-10-01T04:00:00Z", "2026-10-01T05:00:00Z"},
	} {
		after, _ := time.Parse(time.RFC3339, c.after)
		got, ok := c.s.Next(after)
		if !ok || got.Format(time.RFC3339) != c.want {
			t.Errorf("%v after %s: %v, want %s", c.s, c.after, got, c.want)
		}
	}
}

func TestCountAgreesWithAll(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		step := rapid.Int64Range(1, 5000).Draw(t, "step")
		phase := rapid.Int64Range(-9000, 9000).Draw(t, "phase")
		s := Every(time.Duration(step) * time.Second).Phase(time.Duration(phase) * time.Second)
		middle := rapid.SampledFrom([]int64{0, 1_790_000_000, minUnix, maxUnix}).Draw(t, "middle")
		from := time.Unix(middle+rapid.Int64Range(-9000, 9000).Draw(t, "from"), rapid.Int64Range(0, 1).Draw(t, "ns"))
		to := from.Add(time.Duration(rapid.Int64Range(-5000, 20000).Draw(t, "span")) * time.Second)
		dues := slices.Collect(s.All(from, to))
		if got := s.Count(from, to); got != int64(len(dues)) {
			t.Fatalf("%v (%v, %v]: %d, but All gives %d", s, from, to, got, len(dues))
		}
		for _, d := range dues {
			if !d.After(from) || d.After(to) || ((d.Unix()-phase)%step+step)%step != 0 {
				t.Fatalf("%v (%v, %v]: %v", s, from, to, d)
			}
		}
	})
	if n := Cron("0 2 * * *").Count(due, due.AddDate(0, 0, 7)); n != 7 {
		t.Errorf("%d nights in a week", n)
	}
}

func TestAt(t *testing.T) {
	t.Parallel()
	s := At(due.Add(time.Hour), due, due)
	got := slices.Collect(s.All(due.Add(-time.Second), due.AddDate(9, 0, 0)))
	if want := []time.Time{due, due.Add(time.Hour)}; !slices.Equal(got, want) {
		t.Fatalf("%v", got)
	}
	if next, ok := s.Next(due.Add(time.Hour)); ok {
		t.Fatalf("%v after the last", next)
	}
}
