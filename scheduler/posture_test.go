package scheduler_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
	"github.com/belfry-go/belfry/scheduler"
)

// watched is a seat whose members can tell who is missing.
type watched struct {
	seat
	mu   *sync.Mutex
	gone *[]string
}

func (w watched) Missing() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return *w.gone
}

func held(posture jobs.Posture) jobs.Job {
	return jobs.Job{Name: "refresh", Schedule: jobs.Every(10 * time.Second), Run: quick, Guarantee: jobs.Efficiency, Posture: posture}
}

// A posture that nobody could keep is refused as the job is added; who is alone misses nobody.
func TestPostureNeedsMembersThatTell(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	for _, c := range []struct {
		members scheduler.Members
		posture jobs.Posture
		fine    bool
	}{
		{seat{newGossip(), "a"}, jobs.PostureRun, true},
		{seat{newGossip(), "a"}, jobs.PostureHold, false},
		{seat{newGossip(), "a"}, jobs.PostureMajority, false},
		{watched{seat{newGossip(), "a"}, &mu, new([]string)}, jobs.PostureMajority, true},
		{nil, jobs.PostureHold, true},
	} {
		s, err := scheduler.New(scheduler.Config{Namespace: "test", Members: c.members, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			t.Fatal(err)
		}
		err = s.Add(held(c.posture))
		if (err == nil) != c.fine {
			t.Errorf("posture %d with %T: %v", c.posture, c.members, err)
		}
		if err != nil && !strings.Contains(err.Error(), `job "refresh"`) {
			t.Errorf("the error names no job: %v", err)
		}
	}
}

// That members are missing is noticed within a sweep, also where the owners stay the same, and that they are back; a hook is told what
// did not run.
func TestPostureFollowsMembers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var gone []string
		g := newGossip()
		g.set("b", "serving") // two are in sight
		runs, refused := 0, 0
		j := held(jobs.PostureMajority)
		members, err := ring.New([]string{"a", "b"}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := 0; members.Owner(j.Name) != "a"; i++ {
			j.Name = fmt.Sprint("refresh-", i)
		}
		j.Run = func(context.Context, jobs.Occurrence) error { mu.Lock(); defer mu.Unlock(); runs++; return nil }
		s, err := scheduler.New(scheduler.Config{
			Namespace: "test", Members: watched{seat{g, "a"}, &mu, &gone}, Logger: slog.New(slog.DiscardHandler),
			Hooks: []scheduler.Hooks{{Refused: func(_ context.Context, r scheduler.Refused) {
				mu.Lock()
				defer mu.Unlock()
				if r.Cause == "posture" && r.Job == j.Name {
					refused++
				}
			}}},
		})
		if err == nil {
			err = s.Add(j)
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx) }()
		expect := func(wantRuns, wantRefused int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if runs != wantRuns || refused != wantRefused {
				t.Errorf("%d runs, %d refused; want %d and %d", runs, refused, wantRuns, wantRefused)
			}
		}
		lose := func(names ...string) {
			mu.Lock()
			defer mu.Unlock()
			gone = names
		}
		time.Sleep(25 * time.Second)
		expect(2, 0)
		lose("c")
		time.Sleep(10 * time.Second) // two of three are a majority
		expect(3, 0)
		lose("c", "d")
		time.Sleep(20 * time.Second)
		expect(3, 2)
		lose()
		time.Sleep(10 * time.Second)
		expect(4, 2)
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
