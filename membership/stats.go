package membership

import (
	"fmt"
	"sync/atomic"
	"time"
)

// Stats is what gossip has sent, received and refused since Join.
type Stats struct {
	// Sent and Received are the bytes of gossip's packets and connections as they were on the wire, without the headers
	// of UDP, TCP and IP. Received counts what was refused too, except for its address.
	Sent, Received int64
	// Refused counts what was not let through, a packet, a connection, an answer or a member's announcement each, by reason. All reasons are there, those that
	// never occurred with 0, so that a metric exists before it rises.
	Refused map[Refusal]int64
}

// Stats returns counts that only rise. It is cheap, does not block, and may be called at any time, also after Close.
// The map is the caller's.
func (c *Cluster) Stats() Stats { return c.counters.stats() }

// counters is what Stats reports. It also logs refusals, through the pump.
type counters struct {
	pump           *pump
	born           time.Time // Join's; its monotonic clock does not step
	sent, received atomic.Int64
	refused        [refusals]refusedCount
}

type refusedCount struct {
	n    atomic.Int64
	said atomic.Int64 // n at the last line
	next atomic.Int64 // no line before this, in nanoseconds since born
}

func newCounters(p *pump) *counters { return &counters{pump: p, born: time.Now()} }

func (c *counters) stats() Stats {
	s := Stats{Sent: c.sent.Load(), Received: c.received.Load(), Refused: make(map[Refusal]int64, refusals)}
	for r := range c.refused {
		s.Refused[Refusal(r)] = c.refused[r].n.Load()
	}
	return s
}

// refuse counts one, and says so unless the same reason was given in the last minute: one neighbour's flood must not
// hide another's first word. thing is such as "a packet", from an address.
func (c *counters) refuse(why Refusal, thing string, from any, what string) {
	r := &c.refused[why]
	n := r.n.Add(1)
	now, next := int64(time.Since(c.born)), r.next.Load()
	if now < next || !r.next.CompareAndSwap(next, now+int64(logWindow)) {
		return
	}
	text := fmt.Sprintf("refused %s from %v: %s: %s; %s", thing, from, why, what, advice[why].do)
	if more := n - r.said.Swap(n) - 1; more > 0 {
		text += fmt.Sprintf(" (%d more for this reason since the last such line)", more)
	}
	c.pump.say(text)
}
