package schedulertest

import (
	"slices"
	"testing/synctest"
	"time"
)

// Advance lets d pass, and waits until all is done that is to be done by then. 0: only that.
func (c *Cluster) Advance(d time.Duration) {
	c.t.Helper()
	if d < 0 {
		c.t.Fatalf("schedulertest: Advance(%v): time does not go back; pass a duration from 0", d)
	}
	time.Sleep(d)
	synctest.Wait()
}

// AdvanceTo lets time pass until at, which is not over yet, and waits until all is done that is to be done by then. A handler that takes time is
// still at work after AdvanceTo of its due.
func (c *Cluster) AdvanceTo(at time.Time) {
	c.t.Helper()
	now := time.Now()
	if at.Before(now) {
		c.t.Fatalf("schedulertest: AdvanceTo(%v): it is %v already, and time does not go back; pass a later time, or set Options.Start to an earlier one", at, now)
	}
	c.Advance(at.Sub(now))
}

// Partition splits the members into groups that do not see each other: each of the given ones, and those that are in none of them
// as one more. It replaces the partition before. All still reach the store, so that for correctness jobs the
// groups disagree about who owns a key, and nothing else. To each group the others are missing (jobs.Posture), from when they were cut
// off until Heal, jobs.MissingFor at most.
func (c *Cluster) Partition(groups ...[]int) {
	c.t.Helper()
	side := map[string]int{}
	for g, group := range groups {
		for _, i := range group {
			c.check("Partition", i)
			name := nameOf(i)
			if _, twice := side[name]; twice {
				c.t.Fatalf("schedulertest: Partition: replica %d is in two groups; name it once", i)
			}
			side[name] = g + 1
		}
	}
	c.network.split(side)
	synctest.Wait()
}

// Heal ends the partition.
func (c *Cluster) Heal() {
	c.network.split(nil)
	synctest.Wait()
}

// Crash ends a replica as kill -9 does: nothing of it reaches the store or the other members any more, no hook of it is called, and its
// session lapses. To those on its side of a partition it is missing (jobs.Posture), until it is started again and
// jobs.MissingFor at most. Since a goroutine cannot be killed, the contexts of its handlers end; what they do after that no
// record tells. What it had at work is taken up by others when its Lease has ended.
func (c *Cluster) Crash(replica int) {
	c.t.Helper()
	p := c.running("Crash", replica)
	synctest.Wait()
	p.kill()
	c.replicas[replica] = nil
	synctest.Wait()
}

// Stop ends a replica as SIGTERM does, and waits until its Run has returned, what may take Config.Drain and some seconds more. It returns what Run
// returned: nil after a clean drain, else what was cut off.
func (c *Cluster) Stop(replica int) error {
	c.t.Helper()
	p := c.running("Stop", replica)
	p.stop()
	<-p.ended
	p.seat.leave()
	c.replicas[replica] = nil
	synctest.Wait()
	return p.err
}

// Start starts a replica that was stopped or has crashed, as a new process of the same name, and waits until it is ready.
func (c *Cluster) Start(replica int) {
	c.t.Helper()
	c.check("Start", replica)
	if c.replicas[replica] != nil {
		c.t.Fatalf("schedulertest: Start(%d): replica %d is running; Stop or Crash it first", replica, replica)
	}
	c.launch(replica)
	c.awaitReady(replica)
}

// Leader is the index of the replica that leads, as the store knows it; -1: nobody does. A crashed one leads until its session has lapsed. So
// the one to Stop or Crash is c.Leader(). Without a job or a role of the leader nobody ever leads.
func (c *Cluster) Leader() int {
	c.t.Helper()
	synctest.Wait()
	l, err := c.store.Leader(c.context(), c.config.Namespace)
	if err != nil {
		c.t.Fatal(err)
	}
	for i := range c.replicas {
		if l.Term > 0 && l.Until.IsZero() && l.Replica == nameOf(i) {
			return i
		}
	}
	return -1
}

// readyWithin is more than a replica needs whose store and members are there.
const readyWithin = 10 * time.Second

// awaitReady lets time pass only where that is needed.
func (c *Cluster) awaitReady(replica int) {
	c.t.Helper()
	const step = 100 * time.Millisecond
	p := c.replicas[replica]
	for waited := time.Duration(0); ; waited += step {
		synctest.Wait()
		err := p.scheduler.Ready()
		if err == nil {
			return
		}
		if waited > readyWithin {
			c.t.Fatalf("schedulertest: replica %d is not ready after %v: %v", replica, waited, err)
		}
		time.Sleep(step)
	}
}

func (c *Cluster) check(method string, replica int) {
	c.t.Helper()
	if replica < 0 || replica >= len(c.replicas) {
		c.t.Fatalf("schedulertest: %s(%d): there are replicas 0 to %d; raise Options.Replicas for more", method, replica, len(c.replicas)-1)
	}
}

// running is the process of a replica, which must be running.
func (c *Cluster) running(method string, replica int) *process {
	c.t.Helper()
	c.check(method, replica)
	p := c.replicas[replica]
	if p == nil {
		c.t.Fatalf("schedulertest: %s(%d): replica %d is not running; Start it first", method, replica, replica)
	}
	return p
}

// atWork names the runs whose handlers have not returned, each once.
func (c *Cluster) atWork() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var ids []string
	for a := range c.working {
		ids = append(ids, a.id)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}
