package core

import (
	"maps"
	"slices"
	"time"

	"github.com/belfry-go/belfry/ring"
)

// HintEvery is how far hints are apart, at least: those that a replica sends, and the sweeps that those which it gets
// make it do, and its looks at who leads. So handlers that end one after the other cost few messages, and a member that floods others
// with hints costs each of them ten small reads of the store a second, twenty where it has something for a leader to do, and no more.
const HintEvery = 100 * time.Millisecond

// hinter gathers whom to tell that something lies there for them.
//
// Hints are sent for what would wait for the next sweep of its owner, up to a Sweep, and what nobody else
// tells of: runs that a leaving replica gives back (which comes up to Drain after the others saw it leave, and looked),
// an opening of it that was answered late, and the end of its session, which frees what it could not give back.
// None is sent when it begins to leave: the others hear of that by gossip, which changes their rings, and
// look at once; before their rings have changed, a hint would find nothing that is theirs. Nothing depends on a hint.
type hinter struct {
	lately *ring.Ring // the last ring in which we owned something
	to     map[string]bool
	next   time.Duration // when the next hints may be sent
}

// givenBack notes that a run waits for the owner of its key, who is told; where that is ourselves and we leave, the
// next in rank, who is nearly always the new owner. Where it is ourselves and we stay, we look.
func (c *Core) givenBack(key string) {
	if c.ring == nil {
		return
	}
	for _, name := range c.ring.Owners(key, 2) {
		if name != c.cfg.Replica {
			c.hints.to[name] = true
			return
		}
		if !c.draining {
			c.sweeper.hinted = true
			return
		}
	}
}

// hintHeirs tells all those who own now what was ours. While our own ring still has us there are none: then
// theirs have yet to change as well, and they look when that happens.
func (c *Core) hintHeirs() {
	for _, m := range ring.Plan(c.hints.lately, c.ring) {
		if m.From == c.cfg.Replica && m.To != "" {
			c.hints.to[m.To] = true
		}
	}
}

// hintAll tells all members.
func (c *Core) hintAll() {
	for _, r := range []*ring.Ring{c.ring, c.hints.lately} {
		if r != nil {
			for _, name := range r.Members() {
				c.hints.to[name] = true
			}
			break
		}
	}
	delete(c.hints.to, c.cfg.Replica)
}

// flushHints sends the hints, unless others have just been sent: then they wait a little.
func (c *Core) flushHints() {
	if h := &c.hints; len(h.to) > 0 && c.now.Mono >= h.next {
		h.next = c.now.Mono + HintEvery
		c.emit(Hint{Members: slices.Sorted(maps.Keys(h.to))})
		clear(h.to)
	}
}

// lastHints tells, as the last thing before a replica stops, all who may have something to take up of it.
func (c *Core) lastHints() {
	if !c.cfg.Store {
		return
	}
	for _, h := range c.workers.held {
		if h.session != nil {
			c.givenBack(h.occ.Key)
		}
	}
	c.hintHeirs()
	c.hints.next = c.now.Mono // there is no later
	c.flushHints()
}
