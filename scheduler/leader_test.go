package scheduler_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// minuteOne is the due of a job of the leader that has but one.
var minuteOne = day(1, 0, 1)

func onceOfLeader(run jobs.Handler) jobs.Job {
	return jobs.Job{Name: "report", Schedule: jobs.At(minuteOne), Placement: jobs.Leader, Run: run}
}

// oneRun demands that the job ran once, by this replica, at this instant, for the due at minute one.
func oneRun(t *testing.T, e *election, by string, at time.Time) run {
	t.Helper()
	runs := e.ran("report")
	if len(runs) != 1 || runs[0].by != by || !runs[0].at.Equal(at) || !runs[0].Due.Equal(minuteOne) {
		t.Fatalf("ran %+v; want one, by %s at %v", runs, by, at)
	}
	return runs[0]
}

// Without an elector the store elects: one of three replicas runs all dues and all keys of a leader's job, and the store, the hook and
// the client agree about who that is and in which term.
func TestStoreElects(t *testing.T) {
	withElection(t, false, func(t *testing.T, e *election) {
		keyed := ofLeader(quick)
		keyed.Name, keyed.Keys = "pages", keys(20)
		list := []*candidate{e.start("a", ofLeader(quick), keyed), e.start("b", ofLeader(quick), keyed), e.start("c", ofLeader(quick), keyed)}
		at(65 * time.Second)
		leader := e.leader(list...)
		l, err := list[0].Leader(t.Context())
		if err != nil || l.Replica != leader.name || !l.Until.IsZero() {
			t.Fatalf("the store says %+v, %v; %s says that it leads", l, err, leader.name)
		}
		if n := len(e.terms()); n != 1 {
			t.Errorf("%d terms in calm", n)
		}
		runs := e.ran("")
		if len(runs) != 6*21 {
			t.Errorf("%d runs, want %d", len(runs), 6*21)
		}
		for _, r := range runs {
			if r.by != leader.name || r.Term != l.Term {
				t.Fatalf("%s ran %s in term %d; %s leads in term %d", r.by, r.ID(), r.Term, leader.name, l.Term)
			}
		}
		for r, err := range list[0].Runs(t.Context(), idempotency.Filter{}) {
			if err != nil || r.Term != l.Term || r.Outcome != idempotency.Done {
				t.Fatalf("%+v, %v", r, err)
			}
		}
	})
}

// LD-06: nobody leads while a due comes. The one who is elected later runs it then, once.
func TestNoLeaderAcrossTheDue(t *testing.T) {
	withElection(t, true, func(t *testing.T, e *election) {
		e.static.Elect("a")
		e.start("a", onceOfLeader(quick))
		e.start("b", onceOfLeader(quick))
		at(50 * time.Second)
		e.static.Depose()
		at(80 * time.Second)
		if runs := e.ran(""); len(runs) > 0 {
			t.Fatalf("nobody leads, and it ran: %+v", runs)
		}
		e.static.Elect("b")
		at(2 * time.Minute)
		if r := oneRun(t, e, "b", minuteOne.Add(20*time.Second)); r.Term != 2 {
			t.Errorf("in term %d", r.Term)
		}
	})
}

// DP-07: the leader is told to stop three seconds before the hour, and the next one comes 0.7 s after it.
func TestLeaderStopsBeforeTheDue(t *testing.T) {
	withElection(t, true, func(t *testing.T, e *election) {
		e.static.Elect("a")
		a := e.start("a", onceOfLeader(quick))
		e.start("b", onceOfLeader(quick))
		at(57 * time.Second)
		a.stop()
		if err := <-a.done; err != nil {
			t.Error(err)
		}
		at(time.Minute + 700*time.Millisecond)
		e.static.Elect("b")
		at(2 * time.Minute)
		oneRun(t, e, "b", minuteOne.Add(700*time.Millisecond))
	})
}

// DP-07: where the store elects, the next leader is there within a second of a stop, and so in time; also while the one that stops
// drains for long.
func TestStoreHandsOverWithinASecond(t *testing.T) {
	withElection(t, false, func(t *testing.T, e *election) {
		long := jobs.Job{Name: "long", Schedule: jobs.At(day(1, 0, 0).Add(20 * time.Second)), Placement: jobs.Leader, Run: func(ctx context.Context, _ jobs.Occurrence) error {
			select {
			case <-time.After(time.Hour):
			case <-ctx.Done():
			}
			return context.Cause(ctx)
		}}
		list := []*candidate{e.start("a", onceOfLeader(quick), long), e.start("b", onceOfLeader(quick), long), e.start("c", onceOfLeader(quick), long)}
		at(57*time.Second + 300*time.Millisecond)
		first := e.leader(list...)
		first.stop()
		time.Sleep(time.Second)
		next := e.leader(list...)
		if next == first {
			t.Fatal("nobody leads a second after the leader was told to stop")
		}
		select {
		case <-first.done:
			t.Error("it has not drained, though a run of it is at work")
		default:
		}
		at(2 * time.Minute)
		oneRun(t, e, next.name, minuteOne)
		terms := e.terms()
		if want := first.name + ": resigned: stopping: the program's context ended"; terms[1].Why != want {
			t.Errorf("the second term began since %q, want %q", terms[1].Why, want)
		}
		runs := e.ran("long")
		if len(runs) != 2 || runs[0].by != first.name || runs[1].by != next.name || runs[1].Term != terms[1].Term || runs[1].Attempt != 1 {
			t.Errorf("what was released by the drain is the next leader's: %+v", runs)
		}
	})
}

// What a leader that cannot reach the store does not do any more is another one's within a lease and a sweep; and it has stopped before.
func TestBlindLeader(t *testing.T) {
	withElection(t, false, func(t *testing.T, e *election) {
		list := []*candidate{e.start("a", ofLeader(quick)), e.start("b", ofLeader(quick)), e.start("c", ofLeader(quick))}
		at(35 * time.Second)
		first := e.leader(list...)
		cut := time.Now()
		first.door.set(true)
		at(time.Minute + 5*time.Second)
		next := e.leader(list...)
		began := e.terms()[1].at
		if next == first || began.Sub(cut) > 11*time.Second {
			t.Errorf("%s leads, after %v", next.name, began.Sub(cut))
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		i := slices.IndexFunc(e.led, func(c change) bool { return c.by == first.name && !c.Mine && c.at.After(cut) })
		if i < 0 || !e.led[i].at.Before(began) {
			t.Errorf("the old leader had not stopped when the next one began: %+v", e.led)
		}
		dues := map[time.Time]int{}
		for _, r := range e.runs {
			dues[r.Due]++
		}
		for s := 10; s <= 60; s += 10 {
			if due := day(1, 0, 0).Add(time.Duration(s) * time.Second); dues[due] != 1 {
				t.Errorf("due at %d s: %d runs", s, dues[due])
			}
		}
	})
}

// LD-11: the elector's session is lost while a job of the leader runs. It runs on, since its claim in the store is what
// protects it; the next due is the next leader's.
func TestRunOutlivesTheTerm(t *testing.T) {
	withElection(t, true, func(t *testing.T, e *election) {
		five := jobs.Job{
			Name: "report", Schedule: jobs.At(minuteOne, minuteOne.Add(10*time.Minute)), Placement: jobs.Leader, Timeout: time.Hour,
			Run: func(ctx context.Context, _ jobs.Occurrence) error {
				select {
				case <-time.After(5 * time.Minute):
					return nil
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			},
		}
		e.static.Elect("a")
		e.tweak = func(c *scheduler.Config) { c.Sweep = 5 * time.Second }
		a := e.start("a", five)
		e.start("b", five)
		at(3 * time.Minute)
		e.static.Elect("b")
		at(17 * time.Minute)
		runs := e.ran("report")
		if len(runs) != 2 || runs[0].by != "a" || runs[0].Term != 1 || runs[1].by != "b" || runs[1].Term != 2 {
			t.Fatalf("%+v", runs)
		}
		for r, err := range a.Runs(t.Context(), idempotency.Filter{}) {
			if err != nil || r.Outcome != idempotency.Done || r.Attempt != 1 || r.Finished.Sub(r.Started) != 5*time.Minute {
				t.Errorf("%+v, %v", r, err)
			}
		}
	})
}

// LD-10: the store is away just when a replica becomes the leader, and a role of it fails at first. It leads in deed as soon as
// that is over.
func TestLeaderInNameOnly(t *testing.T) {
	withElection(t, true, func(t *testing.T, e *election) {
		a := e.start("a", ofLeader(quick))
		var begun []time.Time
		err := a.OnLeader("planner", func(ctx context.Context, _ int64) error {
			begun = append(begun, time.Now())
			if len(begun) == 1 {
				return errDeclined
			}
			<-ctx.Done()
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		at(15 * time.Second)
		a.door.set(true)
		e.static.Elect("a")
		time.Sleep(time.Second)
		a.door.set(false)
		at(75 * time.Second)
		synctest.Wait()
		if n := len(e.ran("report")); n != 7 { // each due, those from before its election too
			t.Errorf("%d runs after a minute, want 7", n)
		}
		if len(begun) != 2 || begun[0].Sub(day(1, 0, 0)) > 20*time.Second || begun[1].Sub(begun[0]) > 2*time.Second {
			t.Errorf("the role began at %v", begun)
		}
	})
}

// With an elector and no store efficiency jobs of the leader run on whom it has elected, and nowhere else; only that one knows.
func TestLeaderWithoutAStore(t *testing.T) {
	withElection(t, true, func(t *testing.T, e *election) {
		e.store = nil
		job := ofLeader(quick)
		job.Guarantee = jobs.Efficiency
		a := e.start("a", job)
		e.start("b", job)
		at(25 * time.Second)
		e.static.Elect("a")
		at(55 * time.Second)
		e.static.Elect("b")
		at(85 * time.Second)
		var got []string
		for _, r := range e.ran("report") {
			if want := map[string]int64{"a": 1, "b": 2}[r.by]; r.Term != want || r.Fence != 0 {
				t.Errorf("%+v", r)
			}
			got = append(got, r.by+r.Due.Format("05"))
		}
		if want := []string{"a30", "a40", "a50", "b00", "b10", "b20"}; !slices.Equal(got, want) {
			t.Errorf("ran %v, want %v", got, want)
		}
		if terms := e.terms(); len(terms) != 2 || terms[0].Term != 1 || terms[1].Term != 2 {
			t.Errorf("%+v", terms)
		}
		_, err := a.Leader(t.Context())
		want(t, err, scheduler.ErrNoStore, "there is none")
	})
}

// Where nobody has led for HandOverAfter, the owners of the job's keys run it, each due once, until somebody leads.
func TestHandOver(t *testing.T) {
	withElection(t, true, func(t *testing.T, e *election) {
		job := ofLeader(quick)
		job.HandOverAfter = 25 * time.Second
		e.start("a", job)
		e.start("b", job)
		at(22 * time.Second)
		if runs := e.ran("report"); len(runs) > 0 {
			t.Errorf("too early: %+v", runs)
		}
		at(45 * time.Second)
		e.static.Elect("b")
		at(65 * time.Second)
		var terms []int64
		dues := map[time.Time]bool{}
		for _, r := range e.ran("report") {
			terms = append(terms, r.Term)
			dues[r.Due] = true
		}
		if want := []int64{0, 0, 0, 0, 1, 1}; !slices.Equal(terms, want) || len(dues) != 6 {
			t.Errorf("ran in the terms %v, want %v, of %d dues", terms, want, len(dues))
		}
	})
}
