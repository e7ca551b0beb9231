package membership

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/sim"
	"github.com/belfry-go/belfry/internal/simnet"
	"github.com/belfry-go/belfry/scheduler"
)

// undo ends a fault, at its time.
type undo struct {
	at time.Time
	do func()
}

// fault is a kind of trouble. It returns how it is undone, or nil where it cannot be now.
type fault struct {
	name   string
	weight int
	do     func(c *trial) func()
}

var trialFaults = []fault{
	{"restart", 4, (*trial).restart},
	{"kill", 5, (*trial).kill},
	{"split", 4, (*trial).split},
	{"one way", 3, (*trial).oneWay},
	{"loss", 3, (*trial).loss},
	{"blind", 4, (*trial).blindOne},
	{"blink", 6, (*trial).blink},
	{"cut off", 3, (*trial).cutOff},
	{"outage", 2, (*trial).outage},
	{"slow store", 3, (*trial).slowStore},
	{"fourth", 2, (*trial).fourth},
	{"no code", 3, (*trial).noCode},
	{"pause", 2, (*trial).pause},
}

// weather lets faults befall the fleet until an instant: one a minute, on average, and an order of a person each two.
func (c *trial) weather(until time.Time) {
	fault, order := c.soon(time.Minute), c.soon(2*time.Minute)
	for {
		next := fault
		if order.Before(next) {
			next = order
		}
		i := c.firstUndo()
		if i >= 0 && c.undo[i].at.Before(next) {
			next = c.undo[i].at
		}
		if !next.Before(until) {
			rest(time.Until(until))
			return
		}
		rest(time.Until(next))
		switch {
		case i >= 0 && next.Equal(c.undo[i].at):
			u := c.undo[i]
			c.undo = slices.Delete(c.undo, i, i+1)
			u.do()
		case next.Equal(fault):
			c.strike()
			fault = c.soon(time.Minute)
		default:
			c.order()
			order = c.soon(2 * time.Minute)
		}
	}
}

func (c *trial) soon(most time.Duration) time.Time {
	return time.Now().Add(time.Duration(c.rand.Int64N(int64(2 * most))))
}

func (c *trial) firstUndo() int {
	first := -1
	for i, u := range c.undo {
		if first < 0 || u.at.Before(c.undo[first].at) {
			first = i
		}
	}
	return first
}

// strike lets one fault happen, for up to six leases; each kind once at a time.
func (c *trial) strike() {
	sum := 0
	for _, f := range trialFaults {
		sum += f.weight
	}
	n := c.rand.IntN(sum)
	i := 0
	for ; n >= trialFaults[i].weight; i++ {
		n -= trialFaults[i].weight
	}
	f := trialFaults[i]
	if c.busy[f.name] {
		return
	}
	end := f.do(c)
	if end == nil {
		return
	}
	c.count.faults++
	c.busy[f.name] = true
	c.undo = append(c.undo, undo{c.soon(3 * c.lease), func() {
		end()
		delete(c.busy, f.name)
	}})
}

// one is the index of a replica that runs; -1 where none does.
func (c *trial) one() int {
	up := c.up()
	if len(up) == 0 {
		return -1
	}
	return up[c.rand.IntN(len(up))]
}

// restart stops a process as a deploy does, and starts it later.
func (c *trial) restart() func() {
	i := c.one()
	if i < 0 {
		return nil
	}
	c.stopOne(i)
	return func() { c.again(i) }
}

// again starts what is not started yet.
func (c *trial) again(i int) {
	if c.posts[i] == nil {
		c.start(i)
	}
}

func (c *trial) stopOne(i int) {
	p := c.posts[i]
	c.posts[i] = nil
	p.stop()
	<-p.ended
	c.leave(p.member)
}

// kill takes a process away without a word: what its goroutines still do reaches nobody.
func (c *trial) kill() func() {
	i := c.one()
	if i < 0 {
		return nil
	}
	p := c.posts[i]
	c.posts[i] = nil
	p.dead.Store(true)
	p.way.Cut(true)
	c.net.Kill(p.member.Addr())
	c.all = slices.DeleteFunc(c.all, func(o *Cluster) bool { return o == p.member })
	p.stop()
	c.wg.Go(func() {
		<-p.ended
		_ = p.member.Close() // it has no network to say goodbye on
	})
	return func() { c.again(i) }
}

// fourth lets one more replica join for a while.
func (c *trial) fourth() func() {
	if c.posts[trialCrew] != nil {
		return nil
	}
	c.start(trialCrew)
	return c.three
}

// three stops the fourth.
func (c *trial) three() {
	if c.posts[trialCrew] != nil {
		c.stopOne(trialCrew)
	}
}

// split cuts gossip between two sides.
func (c *trial) split() func() {
	var sides [2][]string
	for _, m := range c.all {
		n := c.rand.IntN(2)
		sides[n] = append(sides[n], m.Addr())
	}
	if len(sides[0]) == 0 || len(sides[1]) == 0 {
		return nil
	}
	c.net.Split(sides[0], sides[1])
	return c.net.Heal
}

// oneWay cuts gossip in some directions.
func (c *trial) oneWay() func() {
	for _, from := range c.all {
		for _, to := range c.all {
			if from != to && c.rand.IntN(3) == 0 {
				c.net.Cut(from.Addr(), to.Addr())
			}
		}
	}
	return c.net.Heal
}

func (c *trial) loss() func() {
	slowest := time.Duration(1+c.rand.IntN(500)) * time.Millisecond
	c.net.Impair(simnet.Impairment{
		DelayMin: time.Millisecond, DelayMax: time.Millisecond + slowest,
		Loss: c.rand.Float64() * .4, Duplicate: c.rand.Float64() * .2, Corrupt: c.rand.Float64() * .05, Reset: c.rand.Float64() * .1,
	})
	return func() { c.net.Impair(simnet.Impairment{}) }
}

// blindOne cuts one off from the store.
func (c *trial) blindOne() func() {
	i := c.one()
	if i < 0 {
		return nil
	}
	p := c.posts[i]
	c.blind(p)
	return p.sees
}

// blink cuts one off from the store for a moment: answers are lost.
func (c *trial) blink() func() {
	i := c.one()
	if i < 0 {
		return nil
	}
	p := c.posts[i]
	c.blind(p)
	rest(time.Duration(1 + c.rand.Int64N(int64(c.lease/5))))
	p.sees()
	return func() {}
}

// cutOff cuts one off from the store and from all others (F14).
func (c *trial) cutOff() func() {
	i := c.one()
	if i < 0 {
		return nil
	}
	p := c.posts[i]
	var others []string
	for _, m := range c.all {
		if m != p.member {
			others = append(others, m.Addr())
		}
	}
	c.net.Split([]string{p.member.Addr()}, others)
	c.blind(p)
	return func() {
		c.net.Heal()
		p.sees()
	}
}

// outage takes the store from all.
func (c *trial) outage() func() {
	var all []*post
	for _, i := range c.up() {
		c.blind(c.posts[i])
		all = append(all, c.posts[i])
	}
	return func() {
		for _, p := range all {
			p.sees()
		}
	}
}

// slowStore makes each call take up to what one may take at most.
func (c *trial) slowStore() func() {
	c.slow.Store(int64(c.lease / 5))
	c.slowness.comes()
	return func() {
		c.slow.Store(int64(5 * time.Millisecond))
		c.slowness.goes()
	}
}

// noCode takes a job from one replica, as half a deploy does (F27).
func (c *trial) noCode() func() {
	i := c.one()
	if i < 0 {
		return nil
	}
	p, name := c.posts[i], c.anyJob()
	if err := p.sched.Remove(name); err != nil {
		c.Errorf("seed %d: %v", c.seed, err)
	}
	return func() {
		if c.posts[i] != p {
			return // it is gone
		}
		if err := p.sched.Add(trialJobs[name].job(name, c.lease, c.handler(p))); err != nil {
			c.Errorf("seed %d: %v", c.seed, err)
		}
	}
}

func (c *trial) anyJob() string {
	all := make([]string, 0, len(trialJobs))
	for name := range trialJobs {
		all = append(all, name)
	}
	slices.Sort(all)
	return all[c.rand.IntN(len(all))]
}

func (c *trial) by() scheduler.By { return scheduler.By{Actor: "somebody", Reason: "because"} }

func (c *trial) pause() func() {
	name := c.anyJob()
	if _, err := c.client.Pause(context.Background(), name, c.by()); err != nil {
		c.Errorf("seed %d: %v", c.seed, err)
	}
	return func() {
		if _, err := c.client.Resume(context.Background(), name, c.by()); err != nil {
			c.Errorf("seed %d: %v", c.seed, err)
		}
	}
}

// order is what a person wants; it may be too late for it.
func (c *trial) order() {
	name := c.anyJob()
	key := name
	if all := trialJobs[name].names(); len(all) > 0 {
		if key = all[c.rand.IntN(len(all))]; c.rand.IntN(3) == 0 {
			key = ""
		}
	}
	ctx, now := context.Background(), time.Now().UTC().Truncate(time.Second)
	switch c.rand.IntN(5) {
	case 0:
		_, _ = c.client.Trigger(ctx, name, key, []byte(fmt.Sprint(c.count.orders)), c.by())
	case 1:
		_, _ = c.client.SkipNext(ctx, name, key, c.by())
	case 2:
		_, _ = c.client.Backfill(ctx, name, key, now.Add(-10*time.Minute), now.Add(-5*time.Minute), c.by())
	case 3:
		if id, ok := c.run1(func(r idempotency.Run) bool { return r.State != idempotency.Ended }); ok {
			_, _ = c.client.Cancel(ctx, id, c.by())
		}
	case 4:
		if id, ok := c.run1(func(r idempotency.Run) bool { return r.Outcome == idempotency.Failed }); ok {
			_, _ = c.client.Retry(ctx, id, c.by())
		}
	}
	c.count.orders++
}

// run1 is the newest run that is ok.
func (c *trial) run1(ok func(idempotency.Run) bool) (idempotency.ID, bool) {
	for r, err := range c.client.Runs(context.Background(), idempotency.Filter{Namespace: sim.Namespace, Newest: true, Limit: 200}) {
		if err == nil && ok(r) {
			return r.ID, true
		}
	}
	return idempotency.ID{}, false
}
