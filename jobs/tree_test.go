package jobs

import (
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is a schedule beside the plain set of its dues in a window.
type model struct {
	s      Schedule
	dues   map[int64]bool
	custom bool
}

// window is the time a model is exact for: all seconds of some minutes, or all
// minutes of some days, round a change of a zone's clocks.
type window struct{ from, to, unit int64 }

func drawWindow(t *rapid.T) window {
	middle := rapid.SampledFrom([]string{
		"2026-11-01T06:00:00Z", "2026-03-08T07:00:00Z", // New York
		"2026-04-04T15:00:00Z", "2026-10-03T15:30:00Z", // Lord Howe, by half an hour
		"2026-07-01T00:00:00Z", "1972-01-07T00:44:30Z",
	}).Draw(t, "middle")
	at, _ := time.Parse(time.RFC3339, middle)
	w := window{at.Unix() - 200, at.Unix() + 200, 1}
	if rapid.Bool().Draw(t, "days") {
		w = window{at.Unix() - 13*3600, at.Unix() + 13*3600, 60}
	}
	return w
}

func (w window) instant(t *rapid.T, name string) time.Time {
	return time.Unix(w.from+w.unit*rapid.Int64Range(-5, (w.to-w.from)/w.unit+5).Draw(t, name), 0)
}

// leaf draws a schedule that does not combine others; what those do is shown by
// their own tests.
func (w window) leaf(t *rapid.T, customs bool) model {
	kinds := []string{"every", "every", "cron", "cron", "at"}
	if customs {
		kinds = append(kinds, "custom")
	}
	m := model{dues: make(map[int64]bool)}
	step := time.Duration(w.unit*rapid.SampledFrom([]int64{1, 1, 2, 3, 5, 7, 60, 90, 1440}).Draw(t, "step")) * time.Second
	phase := time.Duration(w.unit*rapid.Int64Range(0, 90).Draw(t, "phase")) * time.Second
	switch rapid.SampledFrom(kinds).Draw(t, "kind") {
	case "every":
		m.s = Every(step).Phase(phase)
	case "cron":
		line := w.drawLine(t)
		m.s = Cron(line)
		if zone := rapid.SampledFrom([]string{"", "UTC", "America/New_York", "Australia/Lord_Howe"}).Draw(t, "zone"); zone != "" {
			m.s = m.s.In(zone)
		}
	case "at":
		var times []time.Time
		for range rapid.IntRange(1, 5).Draw(t, "times") {
			times = append(times, w.instant(t, "at"))
		}
		m.s = At(times...)
	case "custom":
		m.custom = true
		every := Every(step).Phase(phase).c.rule
		m.s = Custom("calendar", func(after time.Time) time.Time {
			next, _ := every.next(after.Unix())
			return time.Unix(next, 0)
		})
	}
	if err := m.s.Err(); err != nil {
		t.Fatal(err)
	}
	for due := range m.s.All(time.Unix(w.from-1, 0), time.Unix(w.to, 0)) {
		m.dues[due.Unix()] = true
	}
	return m
}

func (w window) drawLine(t *rapid.T) string {
	fields := []string{
		drawFieldText(t, "minute", 0, 59, true).text, drawFieldText(t, "hour", 0, 23, true).text, "*",
		rapid.SampledFrom([]string{"*", "*", "1-6", "7-12"}).Draw(t, "month"), rapid.SampledFrom([]string{"*", "1-5", "0"}).Draw(t, "dow"),
	}
	if rapid.Bool().Draw(t, "open") { // whole hours or days, as for what is excluded
		fields[0] = "*"
	}
	if w.unit == 1 {
		fields[1] = "*"
		fields = append([]string{drawFieldText(t, "second", 0, 59, true).text}, fields...)
	}
	return strings.Join(fields, " ")
}

func (w window) tree(t *rapid.T, depth int, customs bool) model {
	op := rapid.SampledFrom([]string{"leaf", "union", "except", "except", "from", "until"}).Draw(t, "op")
	if depth == 0 || op == "leaf" {
		return w.leaf(t, customs)
	}
	m := w.tree(t, depth-1, customs)
	m.dues = maps.Clone(m.dues)
	switch op {
	case "union":
		others := []Schedule{m.s}
		for range rapid.IntRange(0, 2).Draw(t, "more") {
			other := w.tree(t, depth-1, customs)
			others, m.custom = append(others, other.s), m.custom || other.custom
			maps.Copy(m.dues, other.dues)
		}
		m.s = Union(others...)
	case "except":
		other := w.tree(t, depth-1, customs)
		m.s, m.custom = m.s.Except(other.s), m.custom || other.custom
		maps.DeleteFunc(m.dues, func(due int64, _ bool) bool { return other.dues[due] })
	case "from":
		at := w.instant(t, "from")
		m.s = m.s.From(at)
		maps.DeleteFunc(m.dues, func(due int64, _ bool) bool { return due < at.Unix() })
	case "until":
		at := w.instant(t, "until")
		m.s = m.s.Until(at)
		maps.DeleteFunc(m.dues, func(due int64, _ bool) bool { return due >= at.Unix() })
	}
	if err := m.s.Err(); err != nil {
		if len(m.dues) > 0 || !strings.Contains(err.Error(), "it never fires") && !strings.Contains(err.Error(), "one by one") {
			t.Fatalf("%v, but it has %d dues", err, len(m.dues))
		}
		return w.leaf(t, customs)
	}
	return m
}

// Combined schedules mean what sets do.
func TestTreesAreSets(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWindow(t)
		m := w.tree(t, 4, true)
		want := slices.Sorted(maps.Keys(m.dues))
		from, to := time.Unix(w.from-1, 0), time.Unix(w.to, 0)
		var got []int64
		for due := range m.s.All(from, to) {
			got = append(got, due.Unix())
		}
		if !slices.Equal(got, want) {
			t.Fatalf("%v in (%v, %v]:\n got %v\nwant %v", m.s, from.UTC(), to.UTC(), got, want)
		}
		for at := w.from; at <= w.to; at += max(1, w.unit/2) {
			if has := m.s.c.rule.has(at); has != m.dues[at] {
				t.Fatalf("%v has %v: %t", m.s, time.Unix(at, 0).UTC(), has)
			}
		}
		checkBack(t, m.s, w, want)
		checkTally(t, m.s, w, want)
	})
}

// checkBack asks for the due before several instants.
func checkBack(t *rapid.T, s Schedule, w window, want []int64) {
	for range 20 {
		at := rapid.Int64Range(w.from, w.to).Draw(t, "before")
		ns := rapid.SampledFrom([]int64{0, 1, 999999999}).Draw(t, "ns")
		i, _ := slices.BinarySearch(want, at+min(ns, 1))
		prev, ok := s.Prev(time.Unix(at, ns))
		if i > 0 && (!ok || prev.Unix() != want[i-1]) || i == 0 && ok && prev.Unix() >= w.from {
			t.Fatalf("%v before %v: %v, %t", s, time.Unix(at, ns).UTC(), prev, ok)
		}
	}
}

// checkTally counts in one go and in small steps.
func checkTally(t *rapid.T, s Schedule, w window, want []int64) {
	a, b := rapid.Int64Range(w.from-1, w.to).Draw(t, "count from"), rapid.Int64Range(w.from-1, w.to).Draw(t, "count to")
	from, to := time.Unix(min(a, b), 0), time.Unix(max(a, b), 999)
	i, _ := slices.BinarySearch(want, from.Unix()+1)
	j, _ := slices.BinarySearch(want, to.Unix()+1)
	if n := s.Count(from, to); n != int64(j-i) {
		t.Fatalf("%v counts %d in (%v, %v], want %d", s, n, from.UTC(), to.UTC(), j-i)
	}
	steps, n, at := rapid.IntRange(-1, 20).Draw(t, "steps"), int64(0), from
	for at.Before(to) {
		k, until := s.Tally(at, to, steps)
		if !until.After(at) || until.After(to) {
			t.Fatalf("%v tallied from %v to %v", s, at.UTC(), until.UTC())
		}
		n, at = n+k, until
	}
	if n != int64(j-i) {
		t.Fatalf("%v tallies %d in (%v, %v] by %d, want %d", s, n, from.UTC(), to.UTC(), steps, j-i)
	}
}

// What a rule says it covers it has.
func TestCoversOnlyWhatItHas(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		w := drawWindow(t)
		m, leaf := w.tree(t, 3, true), w.leaf(t, true)
		for range 20 {
			due, ok := m.s.Next(w.instant(t, "after"))
			if !ok {
				continue
			}
			from, to := m.s.c.rule.covers(due.Unix(), leaf.s.c.rule)
			if from > due.Unix() || to < due.Unix() {
				t.Fatalf("%v covers %d to %d, but was asked about %d", m.s, from, to, due.Unix())
			}
			for d := range leaf.dues {
				if from <= d && d <= to && !m.dues[d] {
					t.Fatalf("%v round %v covers not %v of %v", m.s, due, time.Unix(d, 0).UTC(), leaf.s)
				}
			}
		}
		checkJointly(t, m, leaf)
	})
}

// A text says all there is to a schedule, and equal texts are equal schedules.
func TestTreeText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := drawWindow(t).tree(t, 4, false).s
		b, err := s.MarshalText()
		if err != nil || string(b) != s.String() {
			t.Fatalf("%s, %v", b, err)
		}
		var again Schedule
		if err := again.UnmarshalText(b); err != nil || again != s {
			t.Fatalf("%q comes back as %q: %v", b, again, err)
		}
		loose := strings.NewReplacer("; ", " ;\t", "(", "( ", ")", " )").Replace(s.String())
		if again, err := ParseSchedule(loose); err != nil || again != s {
			t.Fatalf("%q is read as %q: %v", loose, again, err)
		}
	})
}

// In reaches each line that names no zone, and only once; For and a second In change nothing.
func TestTreeInReachesLeaves(t *testing.T) {
	t.Parallel()
	s := Union(Cron("0 2 * * *"), Cron("TZ=Asia/Tokyo 0 3 * * *"), Every(time.Hour)).Except(At(due)).From(due)
	want := "from(2026-10-01T04:00:00Z; except(union(@every 1h; TZ=Asia/Tokyo 0 3 * * *; TZ=Europe/Berlin 0 2 * * *); @at 2026-10-01T04:00:00Z))"
	in := s.In("Europe/Berlin")
	if in.String() != want || in.In("Asia/Seoul") != in || in.For("job") != in {
		t.Errorf("%v, want %s", in, want)
	}
	if plain := Every(time.Hour).Except(At(due)); plain.In("Europe/Berlin") != plain {
		t.Errorf("%v in a zone is %v", plain, plain.In("Europe/Berlin"))
	}
}

// The order and the way in which schedules are combined make no difference.
func TestTreeCanonical(t *testing.T) {
	t.Parallel()
	a, b, c, later := Cron("0 2 * * *"), Every(time.Hour), Cron("0 4 * * *"), due.AddDate(0, 0, 1)
	for i, pair := range [][2]Schedule{
		{Union(a, b, c), Union(Union(c, a), b, a)},
		{Union(a, a), a},
		{Union(a), a},
		{b.Except(a).Except(c), b.Except(Union(c, a))},
		{a.From(due).Until(later), a.Until(later).From(due)},
		{a.From(due).From(later), a.From(later).From(due)},
		{a.Until(due).Until(later), a.Until(due)},
		{a.From(due).Until(later).From(due.Add(1 * time.Hour)), a.From(due.Add(time.Hour)).Until(later.AddDate(1, 0, 0)).Until(later)},
	} {
		if pair[0] != pair[1] || pair[0].Err() != nil {
			t.Errorf("%d: %v is not %v: %v", i, pair[0], pair[1], pair[0].Err())
		}
	}
}

// No question to any combination takes long, though it asks for what lies behind
// a million excluded dues, or behind none.
func TestExceptPassesOver(t *testing.T) {
	t.Parallel()
	year := func(y int) time.Time { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC) }
	seconds, minutes := Every(time.Second), Cron("* * * * *").In("America/New_York")
	for _, c := range []struct {
		s          Schedule
		from, next string
	}{
		{seconds.Except(seconds.Until(year(2030))), "1971-01-01T00:00:00Z", "2030-01-01T00:00:00Z"},
		{seconds.Except(Cron("* * * * * *").From(year(1980)).Until(year(9000))), "1980-01-01T00:00:00Z", "9000-01-01T00:00:00Z"},
		{seconds.Except(seconds.Except(seconds.From(year(2026)).Until(year(2027)))), "1970-01-01T00:00:00Z", "2026-01-01T00:00:00Z"},
		{seconds.Except(Union(Cron("* * * * 1-6 *"), Cron("* * * * 7-11 *"))), "2026-01-01T00:00:00Z", "2026-12-01T00:00:00Z"},
		{Cron("0 * * * * *").Except(Union(Cron("* * * 1-6 *"), Cron("* * * 7-11 *"))), "2026-01-01T00:00:00Z", "2026-12-01T00:00:00Z"},
		{minutes.Except(Cron("* * * 1-11 *").In("America/New_York")), "2026-01-01T05:00:00Z", "2026-12-01T05:00:00Z"},
		{Every(time.Minute).Except(Cron("* * 2-31 * *")), "2026-01-01T23:59:00Z", "2026-02-01T00:00:00Z"},
		{Union(seconds.Except(seconds.Until(year(3000))), At(year(2500))), "2026-01-01T00:00:00Z", "2500-01-01T00:00:00Z"},
	} {
		from, _ := time.Parse(time.RFC3339, c.from)
		next, ok := c.s.Next(from)
		if !ok || next.Format(time.RFC3339) != c.next {
			t.Errorf("%v after %s: %v, %t, want %s; %v", c.s, c.from, next, ok, c.next, c.s.Err())
			continue
		}
		if prev, ok := c.s.Prev(next); ok && prev.After(from) {
			t.Errorf("%v before %v: %v, but Next passed over it", c.s, next, prev)
		}
		if n := c.s.Count(from, next); n != 1 {
			t.Errorf("%v counts %d in (%v, %v]", c.s, n, from, next)
		}
	}
}

// A planner that counts a year in bounded turns is never held up, and always moves on.
func TestTallyGivesUp(t *testing.T) {
	t.Parallel()
	year := due.AddDate(1, 0, 0)
	minutes := Every(time.Minute)
	calendar := Custom("minutes", func(t time.Time) time.Time { return t.Truncate(time.Minute).Add(time.Minute) })
	all := year.Sub(due).Milliseconds() / 60_000
	for _, c := range []struct {
		s     Schedule
		want  int64
		walks bool
	}{
		{minutes, all, false},
		{Cron("* * * * *"), all, false},
		{minutes.From(due).Until(year), all - 1, false},
		{At(due.Add(time.Hour), due), 1, false},
		{Manual(), 0, false},
		{calendar, all, true},
		{Union(minutes, Cron("*/2 * * * *")), all, false},
		{Union(Cron("*/2 * * * *"), Cron("1-59/2 * * * *")), all, false},
		{minutes.Except(Cron("* * 25 12 *")), all - 1440, false},
		{minutes.Except(Cron("*/2 * * * *")), all / 2, true},
		{minutes.Except(calendar), 0, true},
		{minutes.Except(Every(time.Minute).Until(year)), 1, false},
	} {
		if n := c.s.Count(due, year); n != c.want {
			t.Errorf("%v counts %d, want %d", c.s, n, c.want)
		}
		n, turns := int64(0), 0
		for at := due; at.Before(year); turns++ {
			k, until := c.s.Tally(at, year, 10_000)
			if k > 10_001 && c.walks || !until.After(at) {
				t.Fatalf("%v: %d from %v to %v", c.s, k, at, until)
			}
			n, at = n+k, until
		}
		if n != c.want || (turns > 1) != c.walks || turns > 300 { // what is excluded costs its tests too
			t.Errorf("%v tallies %d in %d turns, want %d", c.s, n, turns, c.want)
		}
	}
	if n, until := (Schedule{}).Tally(due, year, 1); n != 0 || until != year {
		t.Errorf("no schedule tallies %d until %v", n, until)
	}
	if n := minutes.Count(time.Unix(math.MinInt64/4, 0), time.Unix(math.MaxInt64/4, 0)); n != (maxUnix-minUnix)/60+1 {
		t.Errorf("%d minutes in all the years that can be written", n)
	}
}
