package scheduler_test

import (
	"context"
	"iter"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// annals are a store that has what a test wrote into it, and nothing else.
type annals struct {
	idempotency.Store
	idempotency.Control

	entry  idempotency.Entry
	runs   []idempotency.Run   // by due
	ranges []idempotency.Range // by their beginnings
	dues   []idempotency.Due   // by due
	read   int                 // how many runs and dues were asked for
	ahead  time.Duration       // its clock, of what is decided
}

func all[T any](list []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, x := range list {
			if !yield(x, nil) {
				return
			}
		}
	}
}

func within(due, from, to time.Time) bool {
	return !due.Before(from) && (to.IsZero() || due.Before(to))
}

func (l *annals) List(_ context.Context, f idempotency.Filter) iter.Seq2[idempotency.Run, error] {
	var list []idempotency.Run
	for _, r := range l.runs {
		if within(r.ID.Due, f.From, f.To) && (f.State == 0 || r.State == f.State) {
			list = append(list, r)
		}
	}
	if f.Newest {
		slices.Reverse(list)
	}
	if f.Limit > 0 {
		list = list[:min(f.Limit, len(list))]
	}
	l.read += len(list)
	return all(list)
}

func (l *annals) Ranges(context.Context, string, string) iter.Seq2[idempotency.Range, error] {
	return all(l.ranges)
}

func (l *annals) Dues(_ context.Context, _, _ string, from, to time.Time) iter.Seq2[idempotency.Due, error] {
	var list []idempotency.Due
	for _, d := range l.dues {
		if within(d.Due, from, to) {
			list = append(list, d)
		}
	}
	l.read += len(list)
	return all(list)
}

func (l *annals) Overview(context.Context, string) (idempotency.Overview, error) {
	return idempotency.Overview{Now: l.entry.Opened.Add(l.ahead), Partitions: 8, Entries: []idempotency.Entry{l.entry}}, nil
}

func (l *annals) Commands(context.Context, string, string) iter.Seq2[idempotency.Command, error] {
	return all[idempotency.Command](nil)
}

// record writes that a due had a run, or was opened.
func (l *annals) record(due time.Time, stays bool) {
	if l.entry.Keyed {
		d := idempotency.Due{Job: "j", Due: due, Opened: due, Closed: due}
		if stays {
			d.Closed = time.Time{}
		}
		l.dues = append(l.dues, d)
		return
	}
	r := idempotency.Run{ID: idempotency.ID{Job: "j", Key: "j", Due: due}, State: idempotency.Ended, Outcome: idempotency.Done}
	if stays {
		r.State, r.Outcome = idempotency.Waiting, 0
	}
	l.runs = append(l.runs, r)
}

// gaps are those of job j.
func (l *annals) gaps(t interface{ Fatal(...any) }, from, to time.Time) (list []scheduler.Gap) {
	c, err := scheduler.NewClient("test", l)
	if err != nil {
		t.Fatal(err)
	}
	for g, err := range c.Gaps(context.Background(), "j", from, to) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, g)
	}
	return list
}

// Gaps finds exactly the dues whose records were lost, whatever the schedule, the records and the stretch: brute force over each due says
// which these are.
func TestGapsFindsWhatWasLost(t *testing.T) {
	t.Parallel()
	schedules := []jobs.Schedule{
		jobs.Every(time.Minute), jobs.Every(7 * time.Second), jobs.Cron("*/5 9-17 * * 1-5"), jobs.Cron("TZ=Europe/Berlin 30 2 * * *"),
		jobs.Union(jobs.Every(time.Hour), jobs.Cron("15 3 * * *")), jobs.Every(time.Minute).Except(jobs.Cron("* 12 * * *")), jobs.Manual(),
	}
	rapid.Check(t, func(rt *rapid.T) {
		s := rapid.SampledFrom(schedules).Draw(rt, "schedule")
		first := day(1, 0, 0).AddDate(0, 2, 25) // around a change of Berlin's clock
		l := &annals{entry: idempotency.Entry{Definition: idempotency.Definition{Job: "j", Schedule: s.String(), Keyed: rapid.Bool().Draw(rt, "keyed")}}}
		var dues []time.Time
		n := rapid.IntRange(0, 40).Draw(rt, "dues")
		for due, ok := s.Next(first); ok && len(dues) < n; due, ok = s.Next(due) {
			dues = append(dues, due)
		}
		last := first
		if len(dues) > 0 {
			last = dues[len(dues)-1]
		}
		told := map[time.Time]bool{}
		oldest := last.Add(time.Second) // record that retention could have removed
		for i := 0; i < len(dues); i++ {
			due := dues[i]
			switch rapid.SampledFrom([]string{"ended", "ended", "waits", "lost", "lost", "range", "by hand", "odd"}).Draw(rt, "record") {
			case "ended":
				l.record(due, false)
				told[due], oldest = true, earlier(oldest, due)
			case "waits":
				l.record(due, true)
				told[due] = true
			case "range":
				r := idempotency.Range{Job: "j", From: due, Outcome: idempotency.Missed}
				if rapid.Bool().Draw(rt, "early") { // as that of a definition that nobody can tell the dues of
					r.From = due.Add(-500 * time.Millisecond)
				}
				oldest = earlier(oldest, r.From)
				for n := rapid.IntRange(1, 5).Draw(rt, "of"); n > 0 && i < len(dues); n-- {
					told[dues[i]] = true
					r.To, r.Count = dues[i], r.Count+1
					i++
				}
				i--
				l.ranges = append(l.ranges, r)
			case "odd": // of another schedule, or by hand for all keys: it separates nothing
				if at := due.Add(2 * time.Second); !slices.Contains(dues, at) {
					l.record(at, false)
					oldest = earlier(oldest, at)
				}
			case "by hand": // is no record of the due, and separates nothing
				l.runs = append(l.runs, idempotency.Run{ID: idempotency.ID{Job: "j", Key: "j", Due: due, Request: "r"}, State: idempotency.Ended})
			}
		}
		l.entry.Opened = last.Add(time.Duration(rapid.Int64Range(-3600, 0).Draw(rt, "opened")) * 500 * time.Millisecond)
		from := first.Add(time.Duration(rapid.Int64Range(-600, 3600).Draw(rt, "from")) * 500 * time.Millisecond)
		to := last.Add(time.Duration(rapid.Int64Range(-3600, 600).Draw(rt, "to")) * 500 * time.Millisecond)
		want := lost(dues, told, func(due time.Time) bool {
			return !due.Before(oldest) && within(due, from, to) && due.Before(to) && !due.After(l.entry.Opened)
		})
		l.ahead = time.Duration(rapid.Int64Range(0, 1000).Draw(rt, "now")) * 500 * time.Millisecond
		want = append(want, open(s, l.entry.Opened, l.ahead, from, to)...)
		if got := l.gaps(rt, from, to); !slices.Equal(got, want) {
			rt.Fatalf("in [%v, %v) up to %v, from %v on\ngot  %v\nwant %v", from, to, l.entry.Opened, oldest, got, want)
		}
	})
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// lost are the stretches of dues that are not told of, among those that are looked at.
func lost(dues []time.Time, told map[time.Time]bool, looked func(time.Time) bool) (list []scheduler.Gap) {
	goes := false
	for _, due := range dues {
		switch {
		case !looked(due):
		case told[due]:
			goes = false
		case goes:
			list[len(list)-1].To = due
			list[len(list)-1].Count++
		default:
			list, goes = append(list, scheduler.Gap{Job: "j", From: due, To: due, Count: 1}), true
		}
	}
	return list
}

// open is the stretch of dues that should have been decided.
func open(s jobs.Schedule, opened time.Time, ahead time.Duration, from, to time.Time) (list []scheduler.Gap) {
	var dues []time.Time
	for due, ok := s.Next(opened); ok && !due.After(opened.Add(ahead-time.Minute)); due, ok = s.Next(due) {
		dues = append(dues, due)
	}
	list = lost(dues, nil, func(due time.Time) bool { return within(due, from, to) && due.Before(to) })
	for i := range list {
		list[i].Undecided = true
	}
	return list
}

// Of a job that is paused or retired no due waits to be decided.
func TestGapsOfWhatIsStill(t *testing.T) {
	t.Parallel()
	first := day(1, 0, 0)
	for name, still := range map[string]func(*idempotency.Entry){
		"at work": nil,
		"paused":  func(e *idempotency.Entry) { e.PausedFrom = first },
		"retired": func(e *idempotency.Entry) { e.Retired = first },
	} {
		l := &annals{entry: idempotency.Entry{Definition: idempotency.Definition{Job: "j", Schedule: "@every 1h"}, Opened: first}, ahead: 3 * time.Hour}
		var want []scheduler.Gap
		if still == nil {
			want = []scheduler.Gap{{Job: "j", From: first.Add(time.Hour), To: first.Add(2 * time.Hour), Count: 2, Undecided: true}}
		} else {
			still(&l.entry)
		}
		if got := l.gaps(t, first, first.AddDate(0, 0, 1)); !slices.Equal(got, want) {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
}

// Ten years of seconds cost no walk over them, and of what is far from the stretch nothing is read.
func TestGapsOfYears(t *testing.T) {
	t.Parallel()
	first := day(1, 0, 0)
	l := &annals{entry: idempotency.Entry{Definition: idempotency.Definition{Job: "j", Schedule: "@every 1s"}, Opened: first.AddDate(10, 0, 0)}}
	l.record(first, false)
	l.record(first.AddDate(9, 0, 0), false)
	got := l.gaps(t, time.Time{}, first.AddDate(100, 0, 0))
	want := []scheduler.Gap{
		{Job: "j", From: first.Add(time.Second), To: first.AddDate(9, 0, 0).Add(-time.Second), Count: 284_083_199},
		{Job: "j", From: first.AddDate(9, 0, 0).Add(time.Second), To: first.AddDate(10, 0, 0), Count: 31_536_000},
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v\nwant %v", got, want)
	}
	if l.gaps(t, first.AddDate(11, 0, 0), first.AddDate(12, 0, 0)) != nil || l.gaps(t, first.AddDate(1, 0, 0), first.AddDate(1, 0, 0)) != nil {
		t.Error("gaps where nothing is decided, or in no time")
	}
}

// What nobody can compare is refused; who stops reading, or goes away, ends it.
func TestGapsRefused(t *testing.T) {
	t.Parallel()
	d := hourly(t)
	ctx := t.Context()
	want(t, errorOf(d.client.Gaps(ctx, "cache", day(9, 0, 0), d.now)), idempotency.ErrRejected, `gaps of job "cache"`, "efficiency job")
	want(t, errorOf(d.client.Gaps(ctx, "calendar", day(9, 0, 0), d.now)), idempotency.ErrRejected, "@custom holidays")
	l := &annals{entry: idempotency.Entry{Definition: idempotency.Definition{Job: "j", Schedule: "@every 1h"}, Opened: day(9, 0, 0)}}
	for h := range 10 {
		l.record(day(1, 2*h, 0), false)
	}
	c, err := scheduler.NewClient("test", l)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for range c.Gaps(ctx, "j", day(1, 0, 0), day(2, 0, 0)) {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d gaps were read", n)
	}
	gone, stop := context.WithCancel(ctx)
	stop()
	want(t, errorOf(c.Gaps(gone, "j", day(1, 0, 0), day(2, 0, 0))), context.Canceled)
}

// A fleet that was down, paused and up again leaves no gap. Where a store has lost rows, these are named.
func TestGapsOfAFleet(t *testing.T) {
	inEra(t, func(e *era) {
		each := jobs.Job{Name: "each", Schedule: jobs.Every(time.Minute), Run: quick}
		keyed := jobs.Job{Name: "keyed", Schedule: jobs.Every(time.Minute), Keys: keys(5), Run: quick}
		e.up(day(1, 1, 0), day(1, 1, 10), each, keyed)
		e.up(day(1, 3, 0), day(1, 3, 10), each, keyed)
		for _, job := range []string{"each", "keyed"} {
			if got := e.gaps(e.store, job); got != nil {
				t.Errorf("gaps of %s: %v", job, got)
			}
		}
		lost := day(1, 1, 5)
		want := []scheduler.Gap{
			{Job: "each", From: lost, To: lost.Add(time.Minute), Count: 2},
			{Job: "each", From: day(1, 3, 5), To: day(1, 3, 5), Count: 1},
		}
		if got := e.gaps(&lossy{e.store, []time.Time{lost, lost.Add(time.Minute), day(1, 3, 5)}}, "each"); !slices.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	})
}

func (e *era) gaps(store idempotency.Store, job string) (list []scheduler.Gap) {
	e.t.Helper()
	c, err := scheduler.NewClient("test", store)
	if err != nil {
		e.t.Fatal(err)
	}
	for g, err := range c.Gaps(e.t.Context(), job, day(1, 0, 0), day(2, 0, 0)) {
		if err != nil {
			e.t.Fatal(err)
		}
		list = append(list, g)
	}
	return list
}

// lossy is a store that has lost the runs of some dues.
type lossy struct {
	*idempotency.Memory
	lost []time.Time
}

func (l *lossy) List(ctx context.Context, f idempotency.Filter) iter.Seq2[idempotency.Run, error] {
	return func(yield func(idempotency.Run, error) bool) {
		for r, err := range l.Memory.List(ctx, f) {
			if !slices.ContainsFunc(l.lost, r.ID.Due.Equal) && !yield(r, err) {
				return
			}
		}
	}
}
