package jobs

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestCustom(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		next func(time.Time) time.Time
		want time.Time
	}{
		{"hour", func(t time.Time) time.Time { return t.Add(time.Hour) }, due.Add(time.Hour)},
		{"fraction", func(t time.Time) time.Time { return t.Add(time.Nanosecond) }, due.Add(time.Second)},
		{"zone", func(t time.Time) time.Time { return t.Add(time.Hour).In(time.FixedZone("", 3600)) }, due.Add(time.Hour)},
		{"never", func(time.Time) time.Time { return time.Time{} }, time.Time{}},
		{"standing", func(t time.Time) time.Time { return t }, time.Time{}},
		{"backwards", func(t time.Time) time.Time { return t.Add(-time.Hour) }, time.Time{}},
	} {
		s := Custom(c.name, c.next)
		got, ok := s.Next(due)
		if ok == c.want.IsZero() || ok && got != c.want {
			t.Errorf("%s: %v, %t, want %v", c.name, got, ok, c.want)
		}
		if b, err := s.MarshalText(); err != nil || string(b) != "@custom "+c.name {
			t.Errorf("%s: %s, %v", c.name, b, err)
		}
	}
}

// A calendar is the user's code, and every replica calls it on the
// loop that renews its session: a panic there takes the whole fleet down, again and again.
func TestCustomThatPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if v := recover(); v != nil {
			t.Errorf("panic: %v", v)
		}
	}()
	s := Custom("broken", func(time.Time) time.Time { panic("calendar") })
	_, next := s.Next(due)
	_, prev := s.Prev(due)
	if n := s.Count(due, due.AddDate(1, 0, 0)); next || prev || n != 0 {
		t.Errorf("next %t, prev %t, %d dues", next, prev, n)
	}
}

// CK-09: a calendar that ends by mistake is told when its job is handed over.
func TestCustomIsChecked(t *testing.T) {
	t.Parallel()
	const asked = " when asked for what comes after 2026-01-01T00:00:00Z"
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		name string
		next func(time.Time) time.Time
		says string // "": it is in order
	}{
		{"hour", func(t time.Time) time.Time { return t.Add(time.Hour) }, ""},
		{"fraction", func(t time.Time) time.Time { return t.Add(1) }, ""},
		{"never", func(time.Time) time.Time { return time.Time{} }, ""},
		{"over", func(t time.Time) time.Time {
			if t.Year() > 2000 {
				return time.Time{}
			}
			return start
		}, ""},
		{"stands", func(t time.Time) time.Time { return t }, "its function answers 2026-01-01T00:00:00Z" + asked},
		{"goes back", func(t time.Time) time.Time { return t.Add(-1) }, "its function answers 2025-12-31T23:59:59.999999999Z" + asked},
		{"panics", func(time.Time) time.Time { panic("no\ntable") }, `its function panics` + asked + ` ("no\ntable"); return the first`},
		{"nil", func(time.Time) time.Time { var none []time.Time; return none[0] }, `its function panics` + asked + ` ("runtime error: index out of range`},
	} {
		custom, calls := counted(c.next)
		for _, s := range []Schedule{custom, Union(custom, Every(time.Hour)).From(due), Every(time.Hour).Except(custom), Union(Cron("H 2 * * *"), custom)} {
			*calls = 0
			err := Job{Name: "j", Schedule: s, Run: nothing}.Validate()
			if *calls != 1 {
				t.Errorf("%s: asked %d times", c.name, *calls)
			}
			if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.HasPrefix(err.Error(), `jobs: job "j": schedule "@custom counted": `+c.says)) {
				t.Errorf("%s, %s: %v; want %q", c.name, s, err, c.says)
			}
		}
	}
}

// counted is a calendar that knows how often it was asked.
func counted(next func(time.Time) time.Time) (Schedule, *int) {
	calls := new(int)
	return Custom("counted", func(t time.Time) time.Time {
		*calls++
		return next(t)
	}), calls
}

// CK-08, CK-09: whatever a wrong calendar answers, nobody who walks it spins.
func TestCustomNeverSpins(t *testing.T) {
	t.Parallel()
	for name, next := range map[string]func(time.Time) time.Time{
		"its input": func(t time.Time) time.Time { return t },
		"backwards": func(t time.Time) time.Time { return t.Add(-time.Hour) },
		"one":       func(time.Time) time.Time { return due.Add(time.Hour) },
		"zero":      func(time.Time) time.Time { return time.Time{} },
		"year 1":    func(time.Time) time.Time { return time.Unix(minUnix, 0) },
		"far":       func(time.Time) time.Time { return time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC) },
		"farthest":  func(time.Time) time.Time { return time.Unix(1<<62, 999_999_999) },
	} {
		s, calls := counted(next)
		end := due.AddDate(1, 0, 0)
		dues := len(slices.Collect(s.All(due, end)))
		if n := s.Count(due, end); int(n) != dues || dues > 1 {
			t.Errorf("%s: %d dues, and %d by Count", name, dues, n)
		}
		if _, ok := s.Prev(end); ok != (name == "one") {
			t.Errorf("%s: before the end: %t", name, ok)
		}
		if every := slices.Collect(Union(s, Every(time.Hour)).Except(At(due)).All(due, due.Add(5*time.Hour))); len(every) != 5 {
			t.Errorf("%s: %v", name, every)
		}
		if *calls > 200 {
			t.Errorf("%s: asked %d times", name, *calls)
		}
	}
}

// A calendar can only be asked forward, so the due before is searched; that takes
// no walk, however dense the dues or far the last.
func TestCustomLooksBack(t *testing.T) {
	t.Parallel()
	end := due.AddDate(-3, 0, 0)
	for _, c := range []struct {
		name string
		next func(time.Time) time.Time
		want time.Time
	}{
		{"seconds", func(t time.Time) time.Time { return t.Add(time.Second) }, due.Add(-time.Second)},
		{"seconds that ended", func(t time.Time) time.Time {
			if !t.Before(end) {
				return time.Time{}
			}
			return t.Add(time.Second)
		}, end},
		{"years", func(t time.Time) time.Time { return time.Date(t.Year()+1, 1, 1, 0, 0, 0, 0, time.UTC) }, time.Date(due.Year(), 1, 1, 0, 0, 0, 0, time.UTC)},
		{"none so early", func(t time.Time) time.Time {
			return slices.MaxFunc([]time.Time{t.Add(time.Second), due}, time.Time.Compare)
		}, time.Time{}},
	} {
		s, calls := counted(c.next)
		if got, ok := s.Prev(due); ok == c.want.IsZero() || ok && !got.Equal(c.want) {
			t.Errorf("%s: %v, %t, want %v", c.name, got, ok, c.want)
		}
		if *calls > 100 {
			t.Errorf("%s: asked %d times", c.name, *calls)
		}
	}
}

// An operand of which everything is excluded is not searched to its end for each
// due of the others.
func TestDeadOperandCostsLittle(t *testing.T) {
	t.Parallel()
	minutes := func(t time.Time) time.Time { return t.Truncate(time.Minute).Add(time.Minute) }
	a, calls := counted(minutes)
	s := Union(Every(time.Hour), a.Except(Custom("same", minutes)))
	dues := 0
	for range s.All(due, due.AddDate(0, 0, 10)) {
		dues++
	}
	if per := *calls / dues; dues != 240 || per > 300 {
		t.Errorf("%d dues, %d questions each", dues, per)
	}
}
