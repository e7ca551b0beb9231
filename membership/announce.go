package membership

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"
)

const (
	announceWait    = 700 * time.Millisecond // until gossip has sent an announcement: one tick of WAN's, and some
	announcePackets = 6                      // that have carried an announcement, for it to count as sent: what LAN sends in two ticks
)

// again is when an announcement is repeated, each time after the one before. Two that come soon after each other are what
// gossip loses; the last is for what a bad moment of the network swallowed.
var again = []time.Duration{400 * time.Millisecond, 400 * time.Millisecond, 2 * time.Second}

// Announce tells all members what this replica is: serving, draining or unfit; the layout of its ring, at most 64
// bytes; a reason for people, shortened to 128 bytes; and facts, at most 8, with 152 bytes for all (keys, values and
// 4 bytes for each). It replaces all that was announced before, takes effect in this replica's own view at once,
// and waits until gossip has sent it to some members, until ctx ends or for 0.7 s. It may still not have reached all
// when it returns, and goes on spreading when ctx has ended.
//
// The fact "store" names the replica's store: where those differ, only who agrees with most owns. While Expect holds this
// replica back, every state is told as joining.
//
// The errors are a bad argument, a closed cluster, and ctx's.
func (c *Cluster) Announce(ctx context.Context, state, layout, reason string, facts map[string]string) error {
	st, err := announced(state)
	if err != nil {
		return err
	}
	said := c.view.identity()
	said.state, said.layout, said.reason, said.facts = st, layout, clip(reason), maps.Clone(facts)
	if err := said.check(); err != nil {
		return fmt.Errorf("membership: announce: %w", err)
	}
	sent := make(chan struct{}, 1)
	if err := c.say(said, sent); err != nil {
		return err
	}
	select {
	case <-sent:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("membership: announce %s: %w", state, ctx.Err())
	}
}

// say puts an announcement into the own view and hands it to the loop that owns sending.
func (c *Cluster) say(said meta, sent chan<- struct{}) error {
	c.mu.Lock()
	closed := c.closed
	if !closed {
		c.waiters = append(c.waiters, sent)
	}
	c.mu.Unlock()
	if closed {
		return errors.New("membership: announce: the cluster is closed")
	}
	if !c.view.say(said) { // logs, so without the lock
		c.view.retell()
	}
	return nil
}

// announceLoop sends announcements in their order; those that pile up go as the last of them. It ends with ctx, and wakes
// all that wait. Each is repeated: gossip is lossy, and memberlist's queue can lose a message of the same length as another
// after one about the same member was replaced in it.
func (c *Cluster) announceLoop(ctx context.Context) {
	defer func() { wake(c.takeWaiters()) }()
	var repeat <-chan time.Time
	var left []time.Duration // until further repeats
	for {
		if repeat == nil && len(left) > 0 {
			repeat, left = time.After(left[0]), left[1:]
		}
		select {
		case <-ctx.Done():
			return
		case <-repeat:
			repeat = nil
			_ = c.gossip.UpdateNode(time.Nanosecond)
		case <-c.view.tell:
			now := c.takeWaiters()
			c.send(ctx)
			wake(now)
			repeat, left = nil, again
		}
	}
}

// send hands what we say of ourselves to gossip, and returns when some packets have carried it, or when there is something
// newer to say. Only one goroutine may call UpdateNode at a time.
func (c *Cluster) send(ctx context.Context) {
	_ = c.gossip.UpdateNode(time.Nanosecond) // queues it; the only error is that it does not wait
	if c.view.alone() {
		return
	}
	late := time.NewTimer(announceWait)
	defer late.Stop()
	for enough := c.view.packets.Load() + announcePackets; c.view.packets.Load() < enough; {
		select {
		case <-c.view.sent:
		case <-c.view.tell:
			c.view.retell()
			return
		case <-late.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// takeWaiters returns who waits now, and forgets them.
func (c *Cluster) takeWaiters() []chan<- struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.waiters
	c.waiters = nil
	return now
}

func wake(waiters []chan<- struct{}) {
	for _, w := range waiters {
		w <- struct{}{}
	}
}

// retell asks for what we say of ourselves to be sent.
func (v *view) retell() {
	select {
	case v.tell <- struct{}{}:
	default:
	}
}

// GetBroadcasts has none. memberlist asks once for each packet that it fills with what is to be spread.
func (v *view) GetBroadcasts(int, int) [][]byte {
	v.packets.Add(1)
	select {
	case v.sent <- struct{}{}:
	default:
	}
	return nil
}
