package schedulertest_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/membership/electortest"
	"github.com/belfry-go/belfry/scheduler"
	"github.com/belfry-go/belfry/scheduler/schedulertest"
)

func leaders() jobs.Job {
	j := hourly(quick)
	j.Placement = jobs.Leader
	return j
}

// tape notes what roles did, in order.
type tape struct {
	mu    sync.Mutex
	notes []string
}

func (p *tape) note(s string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.notes = append(p.notes, s)
}

// roleOf is one role on each replica, which notes its beginnings and ends.
func (p *tape) roleOf(replica int) map[string]schedulertest.Role {
	name := string(rune('0' + replica))
	return map[string]schedulertest.Role{"poller": func(ctx context.Context, _ int64) error {
		p.note("begin " + name)
		<-ctx.Done()
		p.note("end " + name)
		return nil
	}}
}

// A job and a role of the leader, as a user tests them: the leader runs them, and when it stops or crashes another one does.
func TestLeader(t *testing.T) {
	t.Parallel()
	var p tape
	o := &schedulertest.Options{RolesOf: p.roleOf}
	schedulertest.Test(t, o, []jobs.Job{leaders()}, func(t *testing.T, c *schedulertest.Cluster) {
		c.AdvanceTo(one)
		first := c.Leader()
		if r := theOnly(t, c); indexOf(t, r.Replica) != first || r.Term == 0 {
			t.Errorf("replica %d leads, and %s ran it in term %d", first, r.Replica, r.Term)
		}
		if err := c.Stop(first); err != nil {
			t.Fatal(err)
		}
		c.Advance(time.Second)
		second := c.Leader()
		if second < 0 || second == first {
			t.Fatalf("replica %d leads a second after replica %d was stopped", second, first)
		}
		c.AdvanceTo(one.Add(time.Hour))
		c.Crash(second)
		if l := c.Leader(); l != second {
			t.Errorf("replica %d leads as the leader has just crashed, want %d: nobody can know yet", l, second)
		}
		c.AdvanceTo(one.Add(2 * time.Hour))
		third := c.Leader()
		runs := c.Runs()
		if len(runs) != 3 || indexOf(t, runs[1].Replica) != second || indexOf(t, runs[2].Replica) != third || third == second || third == first {
			t.Errorf("replicas %d, %d and %d led; ran %+v", first, second, third, runs)
		}
		if runs[1].Term <= runs[0].Term || runs[2].Term <= runs[1].Term {
			t.Errorf("terms do not rise: %+v", runs)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		var want []string
		for _, i := range []int{first, second, third} {
			want = append(want, "begin "+string(rune('0'+i)), "end "+string(rune('0'+i)))
		}
		if !slices.Equal(p.notes, want[:5]) {
			t.Errorf("the role: %q, want %q", p.notes, want[:5])
		}
	})
}

// Without anything for a leader nobody leads.
func TestNobodyLeads(t *testing.T) {
	t.Parallel()
	schedulertest.Test(t, nil, []jobs.Job{hourly(quick)}, func(t *testing.T, c *schedulertest.Cluster) {
		c.AdvanceTo(one)
		if l := c.Leader(); l != -1 {
			t.Errorf("replica %d leads, and has nothing to do as such", l)
		}
	})
}

// A test that steers who leads gives each replica its part in an election of its own.
func TestElectorOf(t *testing.T) {
	t.Parallel()
	var election *electortest.Static
	names := []string{"x", "y", "z"}
	o := &schedulertest.Options{ElectorOf: func(replica int) scheduler.Elector {
		if election == nil { // it has channels, so that the bubble is the place to make it
			election = electortest.NewStatic()
		}
		return election.For(names[replica])
	}}
	schedulertest.Test(t, o, []jobs.Job{leaders()}, func(t *testing.T, c *schedulertest.Cluster) {
		c.AdvanceTo(one)
		if n := len(c.Runs()); n != 0 || c.Leader() != -1 {
			t.Errorf("nobody was elected: %d runs, replica %d leads", n, c.Leader())
		}
		election.Elect("y")
		c.Advance(time.Minute)
		if r := theOnly(t, c); r.Replica != "replica-1" || c.Leader() != 1 || !r.Due.Equal(one) || r.Term != 1 {
			t.Errorf("%+v; replica %d leads", r, c.Leader())
		}
		election.Elect("z")
		c.AdvanceTo(one.Add(time.Hour))
		if runs := c.Runs(); len(runs) != 2 || runs[1].Replica != "replica-2" || runs[1].Term != 2 {
			t.Errorf("%+v", runs)
		}
	})
}
