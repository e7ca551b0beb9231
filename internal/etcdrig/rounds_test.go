//go:build unix

package etcdrig

import (
	"errors"
	"slices"
	"syscall"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// One round of each fault, one after the other, on three etcd servers: what the race detector looks at too.
func TestEach(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3)
	f.stop(0)
	f.revoke()
	f.depart()
	f.cut(0)
	f.blind()
	f.kill(0)
	f.settle()
}

// F01-F07 of a leader: it is killed, at each point of its work or at any other moment, and is started again.
func TestKilled(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	f := newFleet(t, 1)
	for i := range times(2) {
		f.kill(i)
	}
	f.settle()
}

// F52, LD-04: the leader stands still until others have done what it held, and goes on: it starts nothing in its old term, and what it
// finishes late, the store refuses.
func TestStopped(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	f := newFleet(t, 1)
	for i := range times(2) {
		f.stop(i)
	}
	f.settle()
}

// F51, LD-11: the leader's lease is revoked while it runs a due: the run goes on and is done once. And DP-07: it leaves in order.
func TestRevokedAndLeft(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	f := newFleet(t, 1)
	for range times(2) {
		f.revoke()
		f.depart()
	}
	f.settle()
}

// F50: etcd loses its quorum, and later gets it back. Nobody leads without it.
func TestQuorumLost(t *testing.T) {
	skipSlow(t)
	t.Parallel()
	f := newFleet(t, 3)
	for range times(2) {
		f.blind()
	}
	f.settle()
}

// The same where the store elects.
func TestStoreElects(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 0)
	for i := range times(1) {
		f.kill(i)
		f.stop(i)
		f.depart()
	}
	f.settle()
}

func skipSlow(t *testing.T) {
	t.Helper()
	if slow && *rounds == 0 {
		t.Skip("skipped with the race detector, which slows processes several times; TestEach and TestStoreElects are not, and -etcdrig.rounds 1 runs it")
	}
}

// kill kills the leader, at a point that the round's number picks.
func (f *fleet) kill(round int) {
	f.Helper()
	point := []string{decided, answered, handler, anywhere}[round%4]
	p, from := f.strike(fault{point, syscall.SIGKILL})
	f.dead(p)
	f.start(p.name)
	f.next("killed, next leader", from)
	f.ready()
}

// stop has the leader stand still until another has led and has, or does, what it held, and go on.
func (f *fleet) stop(round int) {
	f.Helper()
	point := []string{handler, decided, looking, answered}[round%4]
	p, from := f.strike(fault{point, syscall.SIGSTOP})
	f.stopped[p.Pid()] = true
	f.next("stopped, next leader", from)
	if point == handler { // what it finishes late, it finishes while another is at it, if it is quick
		f.await("another to start what the stopped leader holds", func() bool {
			return f.first(0, func(l line) bool { return l.Phase == started && l.Due == from.Due && l.Pid != p.Pid() }) != nil
		})
	}
	resumed := len(f.book.lines)
	f.signal(p, syscall.SIGCONT)
	f.await("the old leader to leave its role", func() bool { // or it had left before, with a run of its term under way
		return f.first(0, func(l line) bool { return l.Phase == leftRole && l.Pid == p.Pid() && l.Term == from.Term }) != nil
	})
	if point == handler {
		f.await("its late finish to be answered", func() bool { // as refused, or the judge says so
			return f.first(resumed, func(l line) bool {
				return (l.Phase == refused && l.Text == "fenced" || l.Phase == committed) && l.Pid == p.Pid() && l.Due == from.Due
			}) != nil
		})
	}
	f.ready()
}

// depart has the leader leave in order, at any moment, and starts it again.
func (f *fleet) depart() {
	f.Helper()
	p, term := f.leader()
	pass(f.ctx, time.Duration(f.rng.Int64N(int64(time.Second))))
	from := line{At: mono(), Term: term}
	f.left[term] = true
	f.leave(p)
	f.next("left, next leader", from)
	f.start(p.name)
	f.ready()
}

// revoke revokes the lease of the leader's key while it runs a due.
func (f *fleet) revoke() {
	f.Helper()
	from, lease := f.atWork()
	from.At = mono()
	for {
		_, err := f.seen.client.Revoke(f.ctx, lease)
		if err == nil {
			break
		}
		if !errors.Is(err, rpctypes.ErrLeaseNotFound) { // it has ended by itself
			f.Fatal(err)
		}
		from, lease = f.atWork()
		from.At = mono()
	}
	f.revoked[from.Term] = true
	f.next("revoked, next leader", from)
	f.await("the run that was under way to end", func() bool { return f.ended(from.Due) })
	f.ready()
}

// atWork waits until the leader runs a due, and returns the effect of that, and the lease of its term in etcd.
func (f *fleet) atWork() (at line, lease clientv3.LeaseID) {
	f.Helper()
	from := len(f.book.lines)
	f.await("the leader to run a due", func() bool {
		i := slices.IndexFunc(f.book.lines[from:], func(l line) bool { return l.Phase == effect })
		if i < 0 {
			return false
		}
		at, from = f.book.lines[from+i], from+i+1
		lease = f.seen.lease(at.Term)
		return lease != 0 // else the term is over by itself
	})
	return at, lease
}

// blind takes the quorum from etcd, for up to a lease after its leader has given up, and gives it back.
func (f *fleet) blind() {
	f.Helper()
	_, term := f.leader()
	pass(f.ctx, time.Duration(f.rng.Int64N(int64(time.Second))))
	lost, began := f.rng.Perm(3)[:2], mono()
	for _, i := range lost {
		f.etcd.Stop(i)
	}
	f.await("the leader to notice", func() bool {
		i := slices.IndexFunc(f.book.lines, func(l line) bool { return l.Phase == over && l.Term >= term })
		return i >= 0 && !slices.ContainsFunc(f.book.lines[i:], func(l line) bool { return l.Phase == trusted })
	})
	from := line{At: mono(), Term: term}
	f.took["quorum lost, noticed"] = append(f.took["quorum lost, noticed"], time.Duration(from.At-began))
	pass(f.ctx, time.Duration(f.rng.Int64N(int64(f.base.Lease))))
	alone := len(f.book.lines)
	f.await("the ledger", func() bool { return true })
	if l := f.first(alone, func(l line) bool { return l.Phase == trusted }); l != nil {
		f.Errorf("without a quorum of etcd %s leads in term %d", l.Replica, l.Term)
	}
	from.At = mono()
	for _, i := range lost {
		f.etcd.Restart(f.T, i)
	}
	f.next("quorum back, next leader", from)
	f.ready()
}

// strike has a fault hit the leader, and returns which process it hit, and when and in which term.
func (f *fleet) strike(x fault) (p *proc, at line) {
	f.Helper()
	for from := len(f.book.lines); ; {
		p, term := f.leader()
		if x.Point == anywhere {
			pass(f.ctx, time.Duration(f.rng.Int64N(int64(time.Second))))
			at := line{At: mono(), Term: term}
			f.signal(p, x.Act)
			return p, at
		}
		if err := p.Send(order{Arm: x}); err != nil {
			f.Fatal(err)
		}
		struck := false
		f.await(p.name+": "+x.String(), func() bool {
			if l := f.find(from, faulted, p.Pid()); l != nil {
				at, struck = *l, true
			}
			return struck || f.first(from, func(l line) bool { return l.Phase == inRole && l.Term > term }) != nil
		})
		at.Term = term
		if struck {
			return p, at
		}
		if err := p.Send(order{}); err != nil { // it leads no more by itself
			f.Fatal(err)
		}
	}
}

// next waits until somebody leads in a later term, and has applied an effect in it.
func (f *fleet) next(kind string, from line) {
	f.Helper()
	var first *line
	f.await("the next leader", func() bool {
		first = f.first(0, func(l line) bool { return l.Phase == inRole && l.Term > from.Term })
		return first != nil
	})
	f.took[kind] = append(f.took[kind], time.Duration(first.At-from.At))
	f.await("the next leader to work", func() bool {
		return slices.ContainsFunc(f.book.lines, func(l line) bool { return l.Phase == effect && l.Term > from.Term })
	})
}
