package simnet

import (
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
)

// conn is one end of a connection. No lock is held while a goroutine waits, unlike in net.Pipe: in a bubble that
// would stop the clock.
type conn struct {
	host, peer *Host
	in, out    *half
}

// half carries bytes in one direction.
type half struct {
	mu     sync.Mutex
	chunks []chunk
	last   time.Time     // arrival of the newest chunk: bytes do not overtake each other
	shut   bool          // the reader has closed
	until  time.Time     // read deadline; zero: none
	wake   chan struct{} // closed and replaced at each change
}

// chunk is what one Write sent, or the end of the stream: io.EOF, or what broke it.
type chunk struct {
	at   time.Time
	data []byte
	end  error
}

func pair(a, b *Host) (*conn, *conn) {
	x, y := &half{wake: make(chan struct{})}, &half{wake: make(chan struct{})}
	return &conn{host: a, peer: b, in: x, out: y}, &conn{host: b, peer: a, in: y, out: x}
}

func (h *half) wakeLocked() {
	close(h.wake)
	h.wake = make(chan struct{})
}

// take returns bytes that have arrived, or what to wait for: a change, or an instant (zero: none).
func (h *half) take(b []byte) (n int, wake <-chan struct{}, next time.Time, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	switch {
	case h.shut:
		return 0, nil, next, net.ErrClosed
	case !h.until.IsZero() && !now.Before(h.until):
		return 0, nil, next, os.ErrDeadlineExceeded
	}
	next = h.until
	if len(h.chunks) == 0 {
		return 0, h.wake, next, nil
	}
	c := &h.chunks[0]
	if now.Before(c.at) {
		if next.IsZero() || c.at.Before(next) {
			next = c.at
		}
		return 0, h.wake, next, nil
	}
	if c.end != nil {
		return 0, nil, next, c.end
	}
	n = copy(b, c.data)
	if c.data = c.data[n:]; len(c.data) == 0 {
		h.chunks = h.chunks[1:]
	}
	return n, nil, next, nil
}

// Read waits for bytes, the end, or the deadline.
func (c *conn) Read(b []byte) (int, error) {
	for {
		n, wake, next, err := c.in.take(b)
		if wake == nil {
			if err != nil && err != io.EOF {
				err = opError("read", c.peer.Addr(), err)
			}
			return n, err
		}
		if next.IsZero() {
			<-wake
			continue
		}
		alarm := time.NewTimer(time.Until(next))
		select {
		case <-wake:
		case <-alarm.C:
		}
		alarm.Stop()
	}
}

// Write sends bytes, or loses them where the link is cut; it never waits.
func (c *conn) Write(b []byte) (int, error) {
	c.in.mu.Lock()
	shut := c.in.shut
	c.in.mu.Unlock()
	if shut {
		return 0, opError("write", c.peer.Addr(), net.ErrClosed)
	}
	if len(b) == 0 {
		return 0, nil
	}
	p := c.host.net.path(c.host.Addr(), c.peer.Addr())
	if p.cut {
		return len(b), nil
	}
	if p.reset {
		c.in.put(chunk{end: syscall.ECONNRESET}, 0)
		c.out.put(chunk{end: syscall.ECONNRESET}, p.delay)
		return 0, opError("write", c.peer.Addr(), syscall.ECONNRESET)
	}
	c.out.put(chunk{data: slices.Clone(b)}, p.delay)
	return len(b), nil
}

func (h *half) put(k chunk, delay time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	k.at = time.Now().Add(delay)
	if k.at.Before(h.last) {
		k.at = h.last
	}
	h.last = k.at
	h.chunks = append(h.chunks, k)
	h.wakeLocked()
}

// Close ends both directions; the other side reads what was sent, then the end.
func (c *conn) Close() error {
	c.in.mu.Lock()
	again := c.in.shut
	c.in.shut = true
	if !again {
		c.in.wakeLocked()
	}
	c.in.mu.Unlock()
	if !again {
		if p := c.host.net.path(c.host.Addr(), c.peer.Addr()); !p.cut {
			c.out.put(chunk{end: io.EOF}, p.delay)
		}
		c.host.disown(c)
	}
	return nil
}

func (c *conn) LocalAddr() net.Addr  { return address(c.host.Addr()) }
func (c *conn) RemoteAddr() net.Addr { return address(c.peer.Addr()) }

// SetDeadline bounds reads; writes never wait.
func (c *conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

func (c *conn) SetReadDeadline(t time.Time) error {
	c.in.mu.Lock()
	defer c.in.mu.Unlock()
	c.in.until = t
	c.in.wakeLocked()
	return nil
}

func (c *conn) SetWriteDeadline(time.Time) error { return nil }
