package simnet

import (
	"slices"
	"sync"
)

// Tape is all packets that were sent to one address.
type Tape struct {
	net *Net
	to  string

	mu   sync.Mutex
	sent []sent
}

type sent struct {
	from string
	b    []byte
}

// Record keeps what is sent to addr from now on, for Replay.
func (n *Net) Record(addr string) *Tape {
	t := &Tape{net: n, to: addr}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.tapes = append(n.tapes, t)
	return t
}

func (t *Tape) add(from, to string, b []byte) {
	if to != t.to {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sent = append(t.sent, sent{from, slices.Clone(b)})
}

// Replay stops recording and sends everything again, as an attacker would, or a network that holds packets back.
func (t *Tape) Replay() {
	t.net.mu.Lock()
	t.net.tapes = slices.DeleteFunc(t.net.tapes, func(o *Tape) bool { return o == t })
	t.net.mu.Unlock()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, s := range t.sent {
		t.net.send(s.from, t.to, s.b)
	}
}
