//go:build unix

package rig

import (
	"io"
	"net"
	"sync"
	"testing"
)

// relay stands for a server on a host of a network. It is out of reach of whoever is cut from that host, and what was
// under way then stays open on the server's side, as with a real one.
type relay struct {
	listener net.Listener
	to       string
	work     sync.WaitGroup

	mu   sync.Mutex
	open map[net.Conn]bool // nil: no more
}

// newRelay makes one that ends with the test. It takes the listener.
func newRelay(t *testing.T, l net.Listener, to string) *relay {
	r := &relay{listener: l, to: to, open: map[net.Conn]bool{}}
	r.work.Go(r.accept)
	t.Cleanup(func() {
		l.Close()
		r.mu.Lock()
		for c := range r.open {
			c.Close()
		}
		r.open = nil
		r.mu.Unlock()
		r.work.Wait()
	})
	return r
}

func (r *relay) accept() {
	for {
		c, err := r.listener.Accept()
		if err != nil {
			return // closed
		}
		r.work.Go(func() { r.carry(c) })
	}
}

func (r *relay) carry(c net.Conn) {
	defer c.Close()
	s, err := net.Dial("tcp", r.to)
	if err != nil {
		return
	}
	defer s.Close()
	if !r.keep(c, s) {
		return
	}
	defer r.drop(c, s)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{c, s}, {s, c}} {
		both.Go(func() {
			_, _ = io.Copy(way[1], way[0])
			_ = way[1].(*net.TCPConn).CloseWrite() // errs where it is closed
		})
	}
	both.Wait()
}

func (r *relay) keep(both ...net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.open == nil {
		return false
	}
	for _, c := range both {
		r.open[c] = true
	}
	return true
}

func (r *relay) drop(both ...net.Conn) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range both {
		delete(r.open, c)
	}
}
