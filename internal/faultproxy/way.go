package faultproxy

import (
	"math"
	"time"
)

const never = math.MaxInt64 // bytes

// End is what becomes of a connection after a fault struck it.
type End int

const (
	// Hang keeps it open on both sides, and nothing more goes the way that the fault was on.
	Hang End = iota
	// Close ends it on both sides in order, behind what was carried before.
	Close
	// Reset ends it on both sides by a reset. A receiver may then lose also what had reached it.
	Reset
)

// Match looks at a chunk, which is its to read until it returns, and says whether it is the one. It is called from
// several goroutines, one for each connection.
type Match func(chunk []byte) bool

// Way is one direction of a proxy.
type Way struct {
	proxy *Proxy

	delay   func() time.Duration
	swallow bool
	lose    *loss
	replies *loss // to what goes this way
	cut     int64 // bytes
	cutEnd  End
}

// loss is what Lose and LoseReply were given.
type loss struct {
	match Match
	end   End
}

// Delay holds each chunk for as long as d then says, and those behind it too. It is called from several goroutines. Nil:
// no delay, as at first.
func (w *Way) Delay(d func() time.Duration) {
	w.proxy.mu.Lock()
	defer w.proxy.mu.Unlock()
	w.delay = d
}

// Swallow loses all that comes from now on, or that comes on new connections no longer. Neither side is told: the
// connections are half-open.
func (w *Way) Swallow(on bool) {
	w.proxy.mu.Lock()
	defer w.proxy.mu.Unlock()
	w.swallow = on
}

// Lose loses, on each connection, the first chunk that matches and all behind it. Nil: no longer, as at first.
func (w *Way) Lose(match Match, end End) {
	w.proxy.mu.Lock()
	defer w.proxy.mu.Unlock()
	w.lose = newLoss(match, end)
}

// CutAfter tears each connection when n bytes have gone this way since it was made: these are delivered, those behind
// them are not. A live connection beyond n is torn at its next chunk. Negative: no longer, as at first.
func (w *Way) CutAfter(n int64, end End) {
	if n < 0 {
		n = never
	}
	w.proxy.mu.Lock()
	defer w.proxy.mu.Unlock()
	w.cut, w.cutEnd = n, end
}

// LoseReply loses, on each connection, whatever the server sends after the first chunk from the client that matches. The
// chunk itself goes through, and the connection ends only when the server has answered, so that the server has acted
// upon it. Replies under way to earlier requests are lost too. Nil: no longer, as at first.
func (p *Proxy) LoseReply(match Match, end End) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ToServer.replies = newLoss(match, end)
}

func newLoss(match Match, end End) *loss {
	if match == nil {
		return nil
	}
	return &loss{match, end}
}

// matches calls the caller's function, so the lock must not be held.
func (l *loss) matches(chunk []byte) bool { return l != nil && l.match(chunk) }
