package faultproxy

import (
	"errors"
	"io"
	"net"
	"time"
)

const chunkSize = 64 << 10 // bytes

// link is a client's connection with the one to the target.
type link struct {
	client, server     *net.TCPConn
	toServer, toClient *pipe
	done               chan struct{} // closed with the connections
	ended              bool
}

// endLocked ends both connections, unless how is Hang or they have been ended before.
func (l *link) endLocked(how End) bool {
	if l.ended || how == Hang {
		return false
	}
	l.ended = true
	close(l.done)
	for _, c := range []*net.TCPConn{l.client, l.server} {
		if how == Reset {
			abort(c)
		} else {
			c.Close() // its error says nothing that matters to a connection given up
		}
	}
	return true
}

// abort closes a connection by a reset.
func abort(c *net.TCPConn) {
	c.SetLinger(0) // errs only if it is closed
	c.Close()
}

// wait returns after d, or when the link ends.
func (l *link) wait(d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-l.done:
	}
}

// pipe is one way of one link.
type pipe struct {
	link     *link
	way      *Way
	other    *pipe
	from, to *net.TCPConn

	// Guarded by the proxy's mu.
	dead   bool  // something was lost, so all that follows is
	doomed *loss // LoseReply's, once a request matched: what comes next is lost
	passed int64 // bytes
}

// carry reads until the sender has ended, also where the way is dead: a sender whose bytes pile up would notice.
func (p *pipe) carry() {
	buf := make([]byte, chunkSize)
	for {
		n, err := p.from.Read(buf)
		if n > 0 {
			p.pass(buf[:n])
		}
		if err != nil {
			p.finish(err)
			return
		}
	}
}

// pass brings a chunk to the other side, or what is left of it, or ends the link.
func (p *pipe) pass(chunk []byte) {
	mu, counts := &p.way.proxy.mu, &p.way.proxy.counts
	mu.Lock()
	delay := p.way.delay
	if delay != nil {
		counts.Delayed++
	}
	mu.Unlock()
	if delay != nil {
		p.link.wait(delay())
	}

	mu.Lock()
	var lose, replies *loss
	if !p.dead { // else nobody is asked about it
		lose, replies = p.way.lose, p.way.replies
	}
	mu.Unlock()
	if !lose.matches(chunk) {
		lose = nil
	}
	if !replies.matches(chunk) {
		replies = nil
	}

	mu.Lock()
	chunk, end := p.judgeLocked(chunk, lose, replies)
	mu.Unlock()
	if len(chunk) > 0 {
		if _, err := p.to.Write(chunk); err != nil {
			end = Reset // the receiver is gone
		}
	}
	mu.Lock()
	defer mu.Unlock()
	p.link.endLocked(end)
}

// judgeLocked says how much of a chunk goes through, and what becomes of the link then. The rules are those that match.
func (p *pipe) judgeLocked(chunk []byte, lose, replies *loss) (through []byte, end End) {
	counts := &p.way.proxy.counts
	left := p.way.cut - p.passed
	switch {
	case p.dead || p.way.swallow:
		counts.Swallowed++
	case p.doomed != nil:
		counts.Replies++
		end = p.doomed.end
	case lose != nil:
		counts.Lost++
		end = lose.end
	case int64(len(chunk)) >= left:
		counts.Cut++
		through, end = chunk[:max(0, left)], p.way.cutEnd
	default:
		if replies != nil {
			p.other.doomed = replies
		}
		p.passed += int64(len(chunk))
		return chunk, Hang
	}
	p.dead = true
	return through, end
}

// finish tells the other side that the sender has ended, as far as that gets through.
func (p *pipe) finish(err error) {
	mu := &p.way.proxy.mu
	mu.Lock()
	defer mu.Unlock()
	switch {
	case p.dead || p.way.swallow:
		p.dead = true
	case p.doomed != nil: // the server ended instead of replying
		p.dead = true
		p.way.proxy.counts.Replies++
		p.link.endLocked(p.doomed.end)
	case errors.Is(err, io.EOF):
		p.to.CloseWrite() // errs only if it is closed
	default:
		p.link.endLocked(Reset)
	}
}
