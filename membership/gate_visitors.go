package membership

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"sync"
	"sync/atomic"
)

const (
	inboundMost  = 128      // connections that are being read
	visitBytes   = 32 << 20 // that they hold in all
	outboundMost = 1024     // of our own calls; the inbound bound them, this is the fence behind
	firstRead    = 2 << 10
)

// visitors are connections whose message is being read. Where there are too many, or they hold too much, the oldest is
// closed: a peer says what it has to say at once, so however many say nothing, it gets in.
type visitors struct {
	most    int
	crowded func(net.Conn) // is told of each that was closed; without the lock

	mu     sync.Mutex
	all    []*visitor // oldest first
	bytes  int
	closed bool
}

type visitor struct {
	conn  net.Conn
	out   chan struct{} // closed when it was closed for others
	bytes int
}

// enter adds a connection; nil after close.
func (vs *visitors) enter(c net.Conn) *visitor {
	v := &visitor{conn: c, out: make(chan struct{})}
	vs.mu.Lock()
	if vs.closed {
		vs.mu.Unlock()
		return nil
	}
	vs.all = append(vs.all, v)
	out := vs.makeRoomLocked()
	vs.mu.Unlock()
	vs.turnOut(out)
	return v
}

// grow counts n bytes more.
func (vs *visitors) grow(v *visitor, n int) {
	vs.mu.Lock()
	var out []*visitor
	if slices.Contains(vs.all, v) {
		v.bytes += n
		vs.bytes += n
		out = vs.makeRoomLocked()
	}
	vs.mu.Unlock()
	vs.turnOut(out)
}

// leave takes v off, and reports false if it had been closed before.
func (vs *visitors) leave(v *visitor) bool {
	vs.mu.Lock()
	defer vs.mu.Unlock()
	i := slices.Index(vs.all, v)
	if i < 0 {
		return false
	}
	vs.all = slices.Delete(vs.all, i, i+1)
	vs.bytes -= v.bytes
	return true
}

func (vs *visitors) makeRoomLocked() (out []*visitor) {
	for len(vs.all) > vs.most || vs.bytes > visitBytes {
		v := vs.all[0]
		vs.all = slices.Delete(vs.all, 0, 1)
		vs.bytes -= v.bytes
		out = append(out, v)
	}
	return out
}

// turnOut closes the connections of those that were taken off.
func (vs *visitors) turnOut(out []*visitor) {
	for _, v := range out {
		close(v.out)
		_ = v.conn.Close()
		vs.crowded(v.conn)
	}
}

// close closes all connections, and those that will come.
func (vs *visitors) close() {
	vs.mu.Lock()
	vs.closed = true
	all := vs.all
	vs.all, vs.bytes = nil, 0
	vs.mu.Unlock()
	for _, v := range all {
		close(v.out)
		_ = v.conn.Close()
	}
}

// intake reads what a visitor sends, into a buffer that grows with what has come, never with what is announced.
type intake struct {
	visitors *visitors
	visitor  *visitor
	received *atomic.Int64
}

// errSilent is a connection that ended without a byte, as a health check's does.
var errSilent = errors.New("closed without a word")

// more reads once and returns b with what came; want is the length that b is to have in the end.
func (in *intake) more(b []byte, want int) ([]byte, error) {
	if want > maxMessage {
		return b, refuse(RefusedSize, "a message of more than %d bytes", maxMessage)
	}
	if len(b) == cap(b) {
		size := min(max(2*cap(b), firstRead), maxMessage)
		in.visitors.grow(in.visitor, size-cap(b))
		b = append(make([]byte, 0, size), b...)
	}
	n, err := in.visitor.conn.Read(b[len(b):cap(b)])
	in.received.Add(int64(n))
	b = b[:len(b)+n]
	switch {
	case n > 0 || err == nil:
		return b, nil // an error comes again
	case errors.Is(err, os.ErrDeadlineExceeded) && len(b) == 0:
		return b, refuse(RefusedSlow, "it said nothing; a health check belongs to the program's own HTTP port")
	case errors.Is(err, os.ErrDeadlineExceeded):
		return b, refuse(RefusedSlow, "only %d bytes came in time", len(b))
	case len(b) == 0:
		return b, errSilent
	case errors.Is(err, io.EOF):
		return b, refuse(RefusedMalformed, "it ends after %d bytes", len(b))
	}
	return b, refuse(RefusedMalformed, "it broke off after %d bytes: %v", len(b), err)
}
