package core

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// crew is a tower whose cores have something for a leader. What the leader does beside jobs ends at once, unless slow; handlers
// return at once, unless their job is in long.
type crew struct {
	*tower
	slow  bool
	long  map[string]bool
	leads []int64  // the term in which each core was told to lead
	stand []bool   // whether each core stands for the elector
	terms []int64  // of all cores' Lead actions, in order
	led   [][]Led  // by core
	done  []doneBy // handlers that were started
	pass  func()   // answers calls that fail late
}

type doneBy struct {
	core   int
	at     time.Duration
	handle int64
	jobs.Occurrence
}

func newCrew(t *testing.T, cfg Config, names ...string) *crew {
	t.Helper()
	n := len(names)
	w := &crew{tower: newTower(t, cfg, names...), long: map[string]bool{}, leads: make([]int64, n), stand: make([]bool, n), led: make([][]Led, n)}
	w.act = w.acted
	return w
}

func (w *crew) acted(i int, a Action) []Event {
	switch a := a.(type) {
	case Lead:
		if a.Term != 0 && w.leads[i] != 0 || a.Term == 0 && w.leads[i] == 0 {
			w.t.Errorf("at %v core %d is told to lead in term %d, and was in %d", w.now, i, a.Term, w.leads[i])
		}
		if w.leads[i] = a.Term; a.Term != 0 {
			w.terms = append(w.terms, a.Term)
		} else if !w.slow {
			return []Event{Yielded{}}
		}
	case Stand:
		if w.stand[i] == a.On {
			w.t.Errorf("at %v core %d is told to stand (%v) twice", w.now, i, a.On)
		}
		w.stand[i] = a.On
	case Led:
		w.led[i] = append(w.led[i], a)
	case Start:
		w.done = append(w.done, doneBy{i, w.now, a.Handle, a.Occurrence})
		if !w.long[a.Occurrence.Job] {
			return []Event{Ended{Handle: a.Handle}}
		}
	case OpenStream:
		return nil
	}
	return nil
}

// leader is the core that leads; -1: none does. Two are an error.
func (w *crew) leader() int {
	w.t.Helper()
	at := -1
	for i, term := range w.leads {
		switch {
		case term != 0 && at >= 0:
			w.t.Errorf("at %v cores %d and %d lead", w.now, at, i)
		case term != 0:
			at = i
		}
	}
	return at
}

// kill makes a core never do anything again.
func (w *crew) kill(i int) { w.cores[i].stopped, w.leads[i] = true, 0 }

func (w *crew) row() idempotency.Leader {
	w.t.Helper()
	row, err := w.store.(idempotency.Leaders).Leader(context.Background(), "n")
	if err != nil {
		w.t.Fatal(err)
	}
	return row
}

// wantRuns demands which handlers were started, each told as "due core term".
func (w *crew) wantRuns(want ...string) {
	w.t.Helper()
	var got []string
	for _, d := range w.done {
		got = append(got, fmt.Sprintf("%v %d %d", d.Due.Sub(epoch), d.core, d.Term))
	}
	if !slices.Equal(got, want) {
		w.t.Errorf("started were (due, core, term)\n%q, want\n%q", got, want)
	}
}

func ran(due time.Duration, core int, term int64) string {
	return fmt.Sprintf("%v %d %d", due, core, term)
}

func global(every time.Duration) jobs.Job {
	return jobs.Job{Name: "global", Schedule: jobs.Every(every), Run: none, Placement: jobs.Leader}
}

// elect has the elector elect a core that stands.
func (w *crew) elect(i int, term int64) {
	w.t.Helper()
	if !w.stand[i] {
		w.t.Fatalf("core %d does not stand", i)
	}
	w.tell(i, Elected{Term: term})
}

func elected() Config {
	cfg := timing()
	cfg.Elector = true
	return cfg
}

// The store elects one of three; only that one runs the job, its term is the run's; all are told of it once.
func TestStoreElects(t *testing.T) {
	t.Parallel()
	w := newCrew(t, timing(), "a", "b", "c")
	w.begin(global(10 * time.Second))
	w.until(35 * time.Second)
	i, row := w.leader(), w.row()
	if i < 0 || w.cores[i].cfg.Replica != row.Replica || row.Term != w.leads[i] {
		t.Fatalf("core %d leads in term %d; the store says %+v", i, w.leads[i], row)
	}
	w.wantRuns(ran(10*time.Second, i, row.Term), ran(20*time.Second, i, row.Term), ran(30*time.Second, i, row.Term))
	for _, r := range w.rows() {
		if r.Term != row.Term {
			t.Errorf("the run of %v has term %d, want %d", r.ID.Due, r.Term, row.Term)
		}
	}
	for c, led := range w.led {
		if len(led) != 1 || led[0].Mine != (c == i) || led[0].Term != row.Term || led[0].Why != "nobody led before" {
			t.Errorf("core %d was told %+v", c, led)
		}
	}
}

// LD-06: the leader dies; the due of the time until the next one leads is run by that one, once.
func TestDueWithoutLeader(t *testing.T) {
	t.Parallel()
	w := newCrew(t, timing(), "a", "b", "c")
	w.begin(global(30 * time.Second))
	w.until(25 * time.Second)
	w.kill(w.leader())
	w.until(30*time.Second + 500*time.Millisecond)
	w.wantRuns()
	w.until(40 * time.Second)
	i := w.leader()
	if i < 0 || len(w.terms) != 2 || w.terms[1] <= w.terms[0] {
		t.Fatalf("core %d leads; the terms were %d", i, w.terms)
	}
	w.wantRuns(ran(30*time.Second, i, w.terms[1]))
	if at := w.done[0].at; at > 36*time.Second+100*time.Millisecond {
		t.Errorf("it ran at %v, want it as soon as somebody leads, a lease and a sweep after the end of the last", at)
	}
	if last := w.led[i][len(w.led[i])-1]; !last.Mine || last.Why != w.led[i][0].Replica+": its session ended" {
		t.Errorf("the last it told is %+v", last)
	}
}

// DP-07: a leader that drains resigns at once, and the others are told to look; its run goes on.
func TestDrainingLeader(t *testing.T) {
	t.Parallel()
	w := newCrew(t, timing(), "a", "b", "c")
	w.long["global"] = true
	w.begin(global(30 * time.Second))
	w.until(57 * time.Second)
	first := w.leader()
	run := w.done[0]
	w.acts = nil
	w.tell(first, Stop{Why: "SIGTERM"})
	var told []string
	for _, a := range w.acts {
		if h, ok := a.(Hint); ok {
			told = h.Members
		}
	}
	if len(told) != 2 || slices.Contains(told, w.cores[first].cfg.Replica) {
		t.Errorf("hinted are %q, want both others", told)
	}
	for i := range w.cores {
		if i != first {
			w.tell(i, Hinted{})
		}
	}
	w.until(w.now + HintEvery)
	second := w.leader()
	if second < 0 || second == first {
		t.Fatalf("core %d leads at once, after %d", second, first)
	}
	if row := w.row(); row.Why != w.cores[first].cfg.Replica+": resigned: stopping: SIGTERM" {
		t.Errorf("why is %q", row.Why)
	}
	w.tell(first, Ended{Handle: run.handle})
	w.until(61 * time.Second)
	w.wantRuns(ran(30*time.Second, first, w.terms[0]), ran(60*time.Second, second, w.terms[1]))
	if !w.cores[first].stopped {
		t.Error("who drained has not stopped")
	}
}

// What the leader does beside jobs ends before another replica leads; one that does not end is waited for half a lease.
func TestRolesEndFirst(t *testing.T) {
	t.Parallel()
	for name, ends := range map[string]bool{"it ends": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newCrew(t, timing(), "a", "b")
			w.begin()
			for i := range w.cores {
				w.tell(i, JobsChanged{Roles: true})
			}
			w.until(5 * time.Second)
			first := w.leader()
			if first < 0 {
				t.Fatal("nobody leads for a role alone")
			}
			w.slow = true
			w.tell(first, Stop{})
			w.until(7 * time.Second)
			if w.calls["Resign"] != 0 || w.cores[first].stopped || w.leader() >= 0 {
				t.Error("it resigned, or stopped, before its roles ended")
			}
			if ends {
				w.tell(first, Yielded{})
			} else {
				w.until(10*time.Second + 100*time.Millisecond)
			}
			if w.calls["Resign"] != 1 || !w.cores[first].stopped {
				t.Errorf("it resigned %d times, and stopped: %v", w.calls["Resign"], w.cores[first].stopped)
			}
			w.until(w.now + time.Second)
			if w.leader() != 1-first {
				t.Errorf("core %d leads", w.leader())
			}
		})
	}
}

// A leader that owns nothing any more, or has nothing for a leader to do, lets others lead.
func TestLeaderGivesUp(t *testing.T) {
	t.Parallel()
	for why, event := range map[string]Event{
		"it owns nothing in the ring":       RingChanged{},
		"it has nothing for a leader to do": JobsChanged{},
	} {
		t.Run(why, func(t *testing.T) {
			t.Parallel()
			w := newCrew(t, timing(), "a", "b")
			w.begin(global(time.Hour))
			w.until(5 * time.Second)
			first := w.leader()
			w.tell(first, event)
			w.until(7 * time.Second)
			if want := w.cores[first].cfg.Replica + ": resigned: " + why; w.leader() != 1-first || w.row().Why != want {
				t.Errorf("core %d leads, since %q; want %q", w.leader(), w.row().Why, want)
			}
			if last := w.led[first][len(w.led[first])-1]; last.Mine || last.Replica == w.cores[first].cfg.Replica {
				t.Errorf("the last that it told is %+v", last)
			}
		})
	}
}
