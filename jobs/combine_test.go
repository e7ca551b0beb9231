package jobs

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

func nested(op func(Schedule) Schedule, n int) Schedule {
	s := Every(time.Hour)
	for range n {
		s = op(s)
	}
	return s
}

func TestCombinationRefused(t *testing.T) {
	t.Parallel()
	hourly, daily, wrong := Every(time.Hour), Cron("@daily"), Cron("0 0 30 2 *")
	deep := func(s Schedule) Schedule { return Union(s, At(due)).From(due) }
	many := make([]Schedule, maxLeaves+1)
	for i := range many {
		many[i] = Every(time.Duration(i+1) * time.Hour)
	}
	long := make([]time.Time, maxTimes)
	for i := range long {
		long[i] = due.Add(time.Duration(i) * time.Hour)
	}
	texts := []Schedule{At(long...), At(long[1:]...)}
	for i, c := range []struct {
		s    Schedule
		says string
	}{
		{Union(), "at least one"},
		{Union(Schedule{}), "operand 1 of union: no schedule"},
		{Union(hourly, daily, wrong), `operand 3 of union, "0 0 30 2 *": `},
		{Union(hourly, daily.Except(wrong)), `operand 2 of union, operand 2 of except, "0 0 30 2 *": `},
		{wrong.Except(hourly).From(due).Until(due), `until, from, operand 1 of except, "0 0 30 2 *": `},
		{hourly.Except(Schedule{}), "operand 2 of except: no schedule"},
		{Schedule{}.Except(hourly), "operand 1 of except: no schedule"},
		{Schedule{}.From(due), "set Schedule"},
		{Union(hourly, Manual()), `operand 2 of union, "@manual": it has no dues`},
		{Manual().Except(hourly), "leave it out"},
		{hourly.Except(Manual()), "leave it out"},
		{Manual().From(due), `from, "@manual": `},
		{Manual().Until(due), "no dues to combine"},
		{Manual().Phase(time.Second), "only Every"},
		{hourly.Except(daily).Phase(time.Minute), "before they are combined"},
		{hourly.Except(daily).In("Europe/Atlantis"), "IANA name"},
		{hourly.From(due.Add(1)), "truncate"},
		{hourly.Until(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)), "years 1 to 9999"},
		{hourly.From(due).Until(due), "its window ends before it begins, at 2026-10-01T04:00:00Z"},
		{hourly.Until(due).From(due), "no due is left at 2026-10-01T04:00:00Z or later"},
		{hourly.Until(time.Unix(0, 0)), "no due is left before 1970-01-01T00:00:00Z, counted from 1970"},
		{At(due).From(due.Add(time.Second)), "no due is left"},
		{At(due).Until(due), "no due is left"},
		{Union(At(time.Unix(-1, 0)), At(time.Unix(-2, 0))), "it never fires from 1970 on"},
		{hourly.Except(hourly), "takes all its dues"},
		{daily.Except(hourly), "takes all its dues"},
		{Union(hourly, daily).Except(Every(time.Minute)), "takes all its dues"},
		{Cron("0 9 * * 1-5").Except(Cron("* * * * 1-5")), "takes all its dues"},
		{hourly.Except(Union(daily, Cron("* 1-22 * * *"), Cron("0-30 23 * * *"))), "takes all its dues"},
		{nested(deep, 5), "schedules nest 9 deep; use at most 8"},
		{Union(many...), "101 schedules are combined"},
		{Union(texts...), "bytes of text are too long"},
		{parse("union()"), `schedule "union()": operand 1 of union: column 1: nothing`},
		{parse("union(0 2 * * *; 0 0 30 2 *)"), `schedule "union(0 2 * * *; 0 0 30 2 *)": operand 2 of union, "0 0 30 2 *": `},
		{parse("union(@daily; @hourly"), "without a blank before ( or behind )"},
		{parse("union (@daily; @hourly)"), "write union(A; B)"},
		{parse("Except(@daily; @hourly)"), "write except(A; B), in lower case"},
		{parse("TZ=Asia/Tokyo union(@daily; @hourly)"), "a zone in front of union"},
		{parse("union(@daily))"), "closes nothing"},
		{parse("union((@daily)"), "not closed"},
		{parse("except(@daily)"), "1 operands; write except(A; B)"},
		{parse("from(@daily; 2026-10-01T04:00:00Z)"), "write it as 2026-10-01T04:00:00Z"},
		{parse("from(2026-10-01T04:00:00.5Z; @daily)"), "truncate"},
		{parse("until(2026-10-01T04:00:00Z; @custom x)"), "jobs.Custom"},
		{parse("@manual now"), "nothing follows"},
		{parse("union(@daily; @manual)"), "leave it out"},
		{parse(strings.Repeat("union(@daily; ", 9) + "@hourly" + strings.Repeat(")", 9)), "use at most 8 levels"},
		{parse(strings.Repeat("union(", maxText/6)), "without a blank"},
		{parse("union(" + strings.Repeat("@daily;", 200) + "@hourly)"), "use at most 100"},
	} {
		err := c.s.Err()
		if err == nil || !strings.Contains(err.Error(), c.says) || !strings.HasPrefix(err.Error(), "jobs: ") {
			t.Errorf("%d, %.60q: %v; want it to say %q", i, c.s.String(), err, c.says)
			continue
		}
		if len(err.Error()) > 500 {
			t.Errorf("%d: %d bytes of error", i, len(err.Error()))
		}
		if _, ok := c.s.Next(due); ok || c.s.Count(due, due.AddDate(1, 0, 0)) != 0 {
			t.Errorf("%d: has a due", i)
		}
		for _, further := range []Schedule{c.s.In("UTC"), c.s.For("job"), c.s.Phase(0)} {
			if further.Err() == nil || further.Err().Error() != err.Error() {
				t.Errorf("%d: the first mistake is hidden by %v", i, further.Err())
			}
		}
	}
}

// What lies before 1970, and At however old, is nobody's mistake where it is not all there is.
func TestOldDuesAreNoMistake(t *testing.T) {
	t.Parallel()
	old := At(time.Unix(-100, 0))
	for _, s := range []Schedule{old, Union(old, Every(time.Hour)), Every(time.Hour).Except(old), At(due).Until(due.AddDate(1, 0, 0))} {
		if err := s.Err(); err != nil {
			t.Error(err)
		}
	}
	if prev, ok := Union(old, At(due)).Prev(due); !ok || prev.Unix() != -100 {
		t.Errorf("before %v: %v, %t", due, prev, ok)
	}
}

// The window of From and Until is half open.
func TestWindowIsHalfOpen(t *testing.T) {
	t.Parallel()
	s := Every(time.Hour).From(due).Until(due.Add(3 * time.Hour))
	var got []string
	for at := range s.All(due.AddDate(-1, 0, 0), due.AddDate(1, 0, 0)) {
		got = append(got, at.Format("15:04"))
	}
	if want := "[04:00 05:00 06:00]"; fmt.Sprint(got) != want {
		t.Errorf("%v, want %s", got, want)
	}
}

func TestManual(t *testing.T) {
	t.Parallel()
	s := Manual()
	_, next := s.Next(due)
	_, prev := s.Prev(due)
	if s.Err() != nil || next || prev || s.String() != "@manual" || s != parse("@manual") {
		t.Errorf("%v: %v, next %t, prev %t", s, s.Err(), next, prev)
	}
	if s.In("Asia/Tokyo") != s || s.For("job") != s {
		t.Errorf("%v or %v is not Manual", s.In("Asia/Tokyo"), s.For("job"))
	}
}

func TestTreeJSON(t *testing.T) {
	t.Parallel()
	in := struct{ S Schedule }{Every(time.Hour).Except(Cron("0 2 * * *").In("Asia/Tokyo")).Until(due)}
	b, err := json.Marshal(in)
	if want := `{"S":"until(2026-10-01T04:00:00Z; except(@every 1h; TZ=Asia/Tokyo 0 2 * * *))"}`; err != nil || string(b) != want {
		t.Fatalf("%s, %v", b, err)
	}
	out := in
	out.S = Schedule{}
	if err := json.Unmarshal(b, &out); err != nil || out != in {
		t.Fatalf("%v, %v", out, err)
	}
}

// A line with an H has no dues before its job's name is known, and then those of
// that name, in a combination too.
func TestHashedWaitsForItsName(t *testing.T) {
	t.Parallel()
	line := Cron("H H(0-3) * * *").In("Asia/Tokyo")
	for _, s := range []Schedule{line, Union(line, At(due)), At(due).Except(line), line.From(due), line.Except(line)} {
		if _, ok := s.Next(due.AddDate(-1, 0, 0)); ok || s.Err() != nil || s.Count(due, due.AddDate(1, 0, 0)) != 0 {
			t.Errorf("%v has dues, or %v", s, s.Err())
		}
		if again, err := ParseSchedule(s.String()); again != s {
			t.Errorf("%v does not come back: %v", s, err)
		}
	}
	one, two := line.For("renewals"), line.For("digest")
	if one == two || one.For("digest") != one || strings.Contains(one.String(), "H") || Union(line, At(due)).For("digest") != Union(two, At(due)) {
		t.Errorf("%v and %v", one, two)
	}
	if n := Union(line, At(due)).For("digest").Count(due, due.AddDate(1, 0, 0)); n != 365 {
		t.Errorf("%d nights in a year", n)
	}
	// Only the name shows that nothing is left; Validate knows it.
	j := Job{Name: "j", Schedule: line.Except(line), Run: nothing}
	if err := j.Validate(); err == nil || !strings.Contains(err.Error(), "takes all its dues") {
		t.Errorf("%v", err)
	}
	j.Schedule = line
	if j.Definition() != j.WithDefaults().Definition() {
		t.Error("a job's defaults change its definition")
	}
	other := j
	other.Name = "k"
	if j.Definition() == other.Definition() {
		t.Error("two hashes, one definition")
	}
}

// Two calendars of one name are two schedules, and so are two that hold them.
func TestCombinedCustom(t *testing.T) {
	t.Parallel()
	calendar := func() Schedule {
		return Custom("holidays", func(t time.Time) time.Time { return t.Truncate(24*time.Hour).AddDate(0, 0, 1) })
	}
	a, b := calendar(), calendar()
	hourly := Every(time.Hour)
	if hourly.Except(a) == hourly.Except(b) || Union(hourly, a) == Union(hourly, b) {
		t.Error("two calendars share a form")
	}
	s := hourly.Except(a)
	if n := s.Count(due, due.AddDate(0, 0, 7)); n != 7*23 || s.String() != "except(@every 1h; @custom holidays)" {
		t.Errorf("%v counts %d", s, n)
	}
	if err := a.Except(hourly).Err(); err != nil {
		t.Errorf("a calendar was asked at the door: %v", err)
	}
	if next, ok := a.Except(hourly).Next(due); ok {
		t.Errorf("%v", next)
	}
}
