package simnet

import (
	"net"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/memberlist"
)

// Host is one address of a network, as memberlist's transport.
type Host struct {
	net     *Net
	ip      net.IP
	packets chan *memberlist.Packet
	streams chan net.Conn
	down    chan struct{} // closed by Shutdown
	once    sync.Once

	mu    sync.Mutex
	conns map[*conn]bool // nil after Shutdown
}

var _ memberlist.NodeAwareTransport = (*Host)(nil)

// Addr returns host:port.
func (h *Host) Addr() string { return hostPort(h.ip) }

// FinalAdvertiseAddr returns the host's own address.
func (h *Host) FinalAdvertiseAddr(string, int) (net.IP, int, error) { return h.ip, port, nil }

// WriteTo sends a packet.
func (h *Host) WriteTo(b []byte, addr string) (time.Time, error) {
	select {
	case <-h.down:
		return time.Time{}, opError("write", addr, net.ErrClosed)
	default:
	}
	h.net.send(h.Addr(), addr, b)
	return time.Now(), nil
}

// WriteToAddress sends a packet.
func (h *Host) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	return h.WriteTo(b, a.Addr)
}

// PacketCh returns what has arrived.
func (h *Host) PacketCh() <-chan *memberlist.Packet { return h.packets }

// StreamCh returns who has called.
func (h *Host) StreamCh() <-chan net.Conn { return h.streams }

// DialTimeout calls addr.
func (h *Host) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	there, back := h.net.path(h.Addr(), addr), h.net.path(addr, h.Addr())
	wait, err := there.delay+back.delay, error(nil)
	switch {
	case there.cut || back.cut || wait > timeout:
		wait, err = timeout, os.ErrDeadlineExceeded
	case there.host == nil:
		err = syscall.ECONNREFUSED
	}
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-h.down:
		err = net.ErrClosed
	}
	if err != nil {
		return nil, opError("dial", addr, err)
	}
	ours, theirs := pair(h, there.host)
	if !h.own(ours) {
		return nil, opError("dial", addr, net.ErrClosed)
	}
	if !there.host.own(theirs) || !there.host.accept(theirs) {
		_ = ours.Close()
		return nil, opError("dial", addr, syscall.ECONNREFUSED)
	}
	return ours, nil
}

// DialAddressTimeout calls a.
func (h *Host) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	return h.DialTimeout(a.Addr, timeout)
}

func (h *Host) accept(c *conn) bool {
	select {
	case h.streams <- c:
		return true
	default:
		_ = c.Close()
		return false
	}
}

// Shutdown takes the host off the network and closes its connections. It never fails.
func (h *Host) Shutdown() error {
	h.once.Do(func() {
		h.net.remove(h.Addr())
		close(h.down)
		h.mu.Lock()
		all := h.conns
		h.conns = nil
		h.mu.Unlock()
		for c := range all {
			_ = c.Close()
		}
	})
	return nil
}

// own registers a connection to be closed with the host; false: the host is down.
func (h *Host) own(c *conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	select {
	case <-h.down:
		return false
	default:
	}
	if h.conns == nil {
		h.conns = map[*conn]bool{}
	}
	h.conns[c] = true
	return true
}

func (h *Host) disown(c *conn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.conns, c)
}

// opError is an error as sockets give it; memberlist blames itself for any other kind.
func opError(op, addr string, err error) error {
	return &net.OpError{Op: op, Net: "tcp", Addr: address(addr), Err: err}
}
