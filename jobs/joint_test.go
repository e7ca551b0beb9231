package jobs

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// checkJointly asks what the parts of m cover together round some dues of the leaf.
func checkJointly(t *rapid.T, m, leaf model) {
	dues := slices.Sorted(maps.Keys(leaf.dues))
	if len(dues) == 0 {
		return
	}
	for range 20 {
		due, tests := rapid.SampledFrom(dues).Draw(t, "due"), maxTests
		from, to := jointly(leaf.s.c.rule, due, partsOf(m.s.c.rule), &tests)
		if from > due || to < due {
			t.Fatalf("%v covers %d to %d, but was asked about %d", m.s, from, to, due)
		}
		for _, d := range dues {
			if from < to && from <= d && d <= to && !m.dues[d] {
				t.Fatalf("%v round %v covers not %v of %v", m.s, time.Unix(due, 0).UTC(), time.Unix(d, 0).UTC(), leaf.s)
			}
		}
	}
}

// drawShared draws schedules that exclude much together and little alone: a clock
// cut in parts, of which one may be missing, on the same dates.
func drawShared(t *rapid.T) []Schedule {
	parts := rapid.SampledFrom([][]string{
		{"0-29 *", "30-59 *"}, {"0-9 *", "10-19 *", "20-39 *", "40-59 *"}, {"* 0-11", "* 12-23"}, {"0-29 *", "30-59 0-11", "30-59 12-23"},
		{"*/2 *", "1-59/2 *"}, {"0 *", "15 *", "20 *", "30 *", "40 *", "45 *"}, {"* 0-22", "0-29 23", "30-59 23"},
	}).Draw(t, "parts")
	dates := rapid.SampledFrom([]string{" * 3-8 *", " * 1-11 *", " 1-15 * *", " * 12,1,2 *", " * * *", " * * 1-5"}).Draw(t, "dates")
	zone := rapid.SampledFrom([]string{"", "TZ=Europe/Berlin ", "TZ=Australia/Lord_Howe "}).Draw(t, "zone")
	var all []Schedule
	for _, part := range parts {
		s := Cron(zone + part + dates)
		switch rapid.IntRange(0, 9).Draw(t, "how") {
		case 0:
			continue
		case 1:
			s = s.From(due.AddDate(0, 0, rapid.IntRange(-200, 200).Draw(t, "from")))
		case 2:
			s = s.Until(due.AddDate(0, 0, rapid.IntRange(-200, 200).Draw(t, "until")))
		case 3:
			s = s.Except(Cron("0 12 24 12 *"))
		}
		if s.Err() == nil {
			all = append(all, s)
		}
	}
	return append(all, Every(30*time.Minute), Every(7*time.Hour))[:len(all)+rapid.IntRange(0, 2).Draw(t, "more")]
}

// Never is never: what Next and Prev pass over, all at once or one by one, has no due.
func TestNeverIsNever(t *testing.T) {
	t.Parallel()
	from, to := due.AddDate(-1, 0, 0), due.AddDate(1, 0, 0)
	rapid.Check(t, func(t *rapid.T) {
		base := parse(rapid.SampledFrom([]string{"*/15 * * * *", "@every 20m", "TZ=Europe/Berlin */20 * * * *", "@every 1h phase 30m"}).Draw(t, "base"))
		others := drawShared(t)
		if len(others) == 0 {
			return
		}
		other := Union(others...)
		var want []int64
		for at := range base.All(from, to) {
			if !other.c.rule.has(at.Unix()) {
				want = append(want, at.Unix())
			}
		}
		s := base.Except(other)
		if err := s.Err(); err != nil {
			if len(want) > 0 {
				t.Fatalf("%v, but it has %d dues", err, len(want))
			}
			return
		}
		if n := s.Count(from, to); n != int64(len(want)) {
			t.Fatalf("%v counts %d, want %d", s, n, len(want))
		}
		for range 20 {
			at := from.Add(time.Duration(rapid.Int64Range(0, int64(to.Sub(from)/time.Second)).Draw(t, "at")) * time.Second)
			checkNear(t, s, at, want, from.Unix(), to.Unix())
		}
	})
}

// checkNear asks what comes next and what came before. want is right from first to last.
func checkNear(t *rapid.T, s Schedule, at time.Time, want []int64, first, last int64) {
	i, _ := slices.BinarySearch(want, at.Unix()+1)
	next, ok := s.Next(at)
	if i < len(want) && (!ok || next.Unix() != want[i]) || i == len(want) && ok && next.Unix() <= last {
		t.Fatalf("%v after %v: %v, %t", s, at.UTC(), next, ok)
	}
	far := at.AddDate(20, 0, 0)
	if !ok && s.Count(at, far) != 0 {
		t.Fatalf("%v after %v: never, but it counts %d", s, at.UTC(), s.Count(at, far))
	}
	i, _ = slices.BinarySearch(want, at.Unix())
	prev, ok := s.Prev(at)
	if i > 0 && (!ok || prev.Unix() != want[i-1]) || i == 0 && ok && prev.Unix() > first {
		t.Fatalf("%v before %v: %v, %t", s, at.UTC(), prev, ok)
	}
}

// What is excluded only by several together is passed over in one step for each of
// its months, and what never fires again is told so.
func TestExcludedTogether(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, after, next, prev string }{
		{"except(* * * * *; union(0-29 * * 3-8 *; 30-59 * * 3-8 *))", "2026-03-01T00:00:00Z", "2026-09-01T00:00:00Z", "2026-02-28T23:59:00Z"},
		{"except(* * * * *; union(0-29 * * 1-11 *; 30-59 * * 1-11 *))", "2026-01-01T00:00:00Z", "2026-12-01T00:00:00Z", "2025-12-31T23:59:00Z"},
		{"except(*/5 * * * * *; union(* 0-29 * * 12,1,2 *; * 30-59 * * 12,1,2 *))", "2026-12-01T00:00:00Z", "2027-03-01T00:00:00Z", "2026-11-30T23:59:55Z"},
		{"except(@every 1s; until(3000-01-01T00:00:00Z; union(@every 2s; @every 2s phase 1s)))", "2026-12-01T00:00:00Z", "3000-01-01T00:00:00Z", ""},
		{"except(TZ=Asia/Tokyo * * * * * *; union(TZ=Asia/Tokyo * 0-29 * * 3-8 *; TZ=Asia/Tokyo * 30-59 * * 3-8 *))", "2026-03-01T00:00:00Z", "2026-08-31T15:00:00Z", "2026-02-28T14:59:59Z"},
	} {
		s := parse(c.text)
		after, _ := time.Parse(time.RFC3339, c.after)
		next, ok := s.Next(after)
		if !ok || next.Format(time.RFC3339) != c.next {
			t.Errorf("%v after %s: %v, %t, want %s; %v", s, c.after, next, ok, c.next, s.Err())
			continue
		}
		if prev, ok := s.Prev(next); ok != (c.prev != "") || ok && prev.Format(time.RFC3339) != c.prev {
			t.Errorf("%v before %v: %v, %t, want %s", s, next, prev, ok, c.prev)
		}
		tests := maxTests / 32
		if _, is := partsOf(s.c.rule)[0].next(after.Unix(), maxUnix+1, &tests); is != found {
			t.Errorf("%v takes more than %d tests", s, maxTests/32)
		}
	}
}

// The rarest dues come back within the 400 years after which a search ends.
func TestRareDuesCome(t *testing.T) {
	t.Parallel()
	s := Cron("0 0 29 2 *").Except(Cron("* * * 2 1-6"))
	at := time.Date(2095, 1, 1, 0, 0, 0, 0, time.UTC)
	for day := at; day.Year() < 3000; day = day.AddDate(0, 0, 1) {
		if day.Month() != time.February || day.Day() != 29 || day.Weekday() != time.Sunday {
			continue
		}
		next, ok := s.Next(at)
		if !ok || !next.Equal(day) {
			t.Fatalf("after %v: %v, %t, want %v", at, next, ok, day)
		}
		at = next
	}
}

// asking counts what its rule is asked, and hides all that would make it quick.
type asking struct {
	rule
	asked *int
}

func (r asking) next(after int64) (int64, bool)  { *r.asked++; return r.rule.next(after) }
func (r asking) prev(before int64) (int64, bool) { *r.asked++; return r.rule.prev(before) }
func (r asking) has(t int64) bool                { *r.asked++; return r.rule.has(t) }
func (r asking) covers(t int64, _ rule) (from, to int64) {
	*r.asked++
	return t, t
}

// The budget of a question is shared by all that it asks, however many these are and
// however they nest.
func TestOneBudget(t *testing.T) {
	t.Parallel()
	asked := 0
	hide := func(s Schedule) Schedule { return Schedule{&compiled{text: s.c.text, rule: asking{s.c.rule, &asked}}} }
	list := func(n int, text func(i int) string) Schedule {
		var all []Schedule
		for i := range n {
			all = append(all, hide(parse(text(i))))
		}
		return Union(all...)
	}
	base := list(40, func(i int) string { return fmt.Sprintf("@every %ds", 7+2*i) })
	odd := list(50, func(i int) string { return fmt.Sprintf("TZ=Europe/Berlin 45 %d 4 %d *", i%24, 1+i/24) })
	half := func(year int) Schedule {
		return hide(parse("30-59 * * * * *")).From(time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC))
	}
	for _, s := range []Schedule{
		base.Except(Union(hide(parse("0-29 * * * * *")), hide(parse("30-59 * * * * *")))),
		base.Except(Union(half(1960), half(1980), half(1990), half(2000), hide(parse("0-29 * * * * *")).Except(odd))),
	} {
		if err := s.Err(); err == nil || !strings.Contains(err.Error(), "one by one") {
			t.Errorf("%.60v: %v", s, err)
		}
		if asked > 2*maxTests {
			t.Errorf("%.60v asked %d times", s, asked)
		}
		asked = 0
	}
}

// A question that runs out of tests goes on further away, and does not say never.
func TestRunOutGoesOn(t *testing.T) {
	t.Parallel()
	var sevens []Schedule
	for i := range 7 {
		sevens = append(sevens, Every(7*time.Minute).Phase(time.Duration(i)*time.Minute))
	}
	begin, end := due.AddDate(-1, 0, 0), due.AddDate(4, 0, 0)
	s := Every(time.Minute).Except(Union(sevens...).From(begin).Until(end))
	if next, ok := s.Next(begin); s.Err() != nil || !ok || !next.Equal(end) {
		t.Errorf("after %v: %v, %t; %v", begin, next, ok, s.Err())
	}
	if prev, ok := s.Prev(end); !ok || !prev.Equal(begin.Add(-time.Minute)) {
		t.Errorf("before %v: %v, %t", end, prev, ok)
	}
	rest := Every(time.Minute).Except(Union(sevens...))
	if err := rest.Err(); err == nil || !strings.Contains(err.Error(), "too many dues are excluded one by one") {
		t.Error(err)
	}
}
