package scheduler_test

import (
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// freezer is a log that freezes the loop which writes a line with these words, once, for a minute: what a process does whose
// virtual machine is paused.
type freezer struct {
	slog.Handler
	words string
	once  *sync.Once
}

func (f freezer) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	r.Attrs(func(a slog.Attr) bool { text += " " + a.String(); return true })
	if strings.Contains(text, f.words) {
		f.once.Do(func() { <-time.After(time.Minute) })
	}
	return nil
}

func (f freezer) Enabled(context.Context, slog.Level) bool { return true }

func (f freezer) WithAttrs([]slog.Attr) slog.Handler { return f }

// LD-04, F52: the leader is frozen for a minute when it has decided a due, and has claimed none of its keys. Meanwhile another one leads, and runs
// that due. When the old one goes on its claims are of a session that is over, and it starts nothing by its term: neither the keys,
// nor a job that nobody claims and that was due meanwhile.
func TestFrozenLeader(t *testing.T) {
	withElection(t, true, func(t *testing.T, e *election) {
		pages := onceOfLeader(quick)
		pages.Keys = keys(5)
		cache := jobs.Job{Name: "cache", Schedule: jobs.Every(10 * time.Second), Placement: jobs.Leader, Guarantee: jobs.Efficiency, Run: quick}
		e.static.Elect("a")
		e.tweak = func(c *scheduler.Config) {
			c.Logger = slog.New(freezer{slog.DiscardHandler, "opened job=report", new(sync.Once)})
		}
		e.start("a", pages, cache)
		e.tweak = func(*scheduler.Config) {}
		e.start("b", pages, cache)
		at(62 * time.Second)
		if n := len(e.ran("report")); n > 0 {
			t.Fatalf("%d keys ran; the leader was to be frozen before it claimed one", n)
		}
		e.static.Elect("b")
		at(3 * time.Minute)
		ran := map[string]int{}
		for _, r := range e.ran("report") {
			ran[r.Key]++
			if r.by != "b" || r.Term != 2 || ran[r.Key] > 1 {
				t.Errorf("%s ran %s at %v, in term %d", r.by, r.ID(), r.at, r.Term)
			}
		}
		if len(ran) != 5 {
			t.Errorf("%d keys of 5 ran", len(ran))
		}
		dues := map[time.Time]int{}
		for _, r := range e.ran("cache") {
			dues[r.Due]++
			if after := r.Due.After(minuteOne); dues[r.Due] > 1 || after != (r.by == "b") {
				t.Errorf("%s ran %s at %v", r.by, r.ID(), r.at)
			}
		}
		delete(dues, minuteOne) // it may have been about to start when the loop froze, and is left out then
		if len(dues) != 17 {
			t.Errorf("%d dues of 17 ran of what is not claimed", len(dues))
		}
	})
}

// lagging is a context whose Err knows that it has ended before its Done does, as where timers have not fired yet of a process that was frozen.
type lagging struct {
	context.Context
	end time.Time
}

func (l lagging) Err() error {
	if !time.Now().Before(l.end) {
		return context.DeadlineExceeded
	}
	return l.Context.Err()
}

// due is one that says so by its Deadline only.
type due struct{ lagging }

func (d due) Err() error { return d.Context.Err() }

func (d due) Deadline() (time.Time, bool) { return d.end, true }

// A term is over as soon as its context says so, in whatever way: from then on nothing is started by it.
func TestTermEndsByItsContext(t *testing.T) {
	for name, wrap := range map[string]func(lagging) context.Context{
		"Err":      func(l lagging) context.Context { return l },
		"Deadline": func(l lagging) context.Context { return due{l} },
	} {
		t.Run(name, func(t *testing.T) {
			withElection(t, false, func(t *testing.T, e *election) {
				once := make(chan struct{}, 1)
				e.store = nil
				e.tweak = func(c *scheduler.Config) {
					c.Elector = elector(func(ctx context.Context, lead func(context.Context, int64) error) error {
						select {
						case once <- struct{}{}:
							return lead(wrap(lagging{ctx, day(1, 0, 0).Add(25 * time.Second)}), 1)
						case <-ctx.Done():
							return nil
						}
					})
				}
				job := ofLeader(quick)
				job.Guarantee = jobs.Efficiency
				a := e.start("a", job)
				var poller stints
				must(t, a.OnLeader("poller", poller.role("a", 0)))
				at(time.Minute)
				if n := len(e.ran("report")); n != 2 {
					t.Errorf("%d runs, want the two of the term's 25 seconds", n)
				}
				if got := poller.all(); len(got) != 1 || got[0].end.Sub(day(1, 0, 0)) > 26*time.Second || got[0].end.IsZero() {
					t.Errorf("the role played %+v", got)
				}
			})
		})
	}
}
