//go:build unix

package rig

import (
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// web carries the gossip of replicas, each of which advertises its wire instead of the address that it binds.
type web struct {
	*testing.T
	work sync.WaitGroup

	mu    sync.Mutex
	wires map[string]*wire      // by the replica's name
	from  map[string]string     // the replica's name by the address that it binds
	side  map[string]int        // by name; nil: nothing is cut
	open  map[*net.TCPConn]bool // nil: no more
}

// wire is where the others reach one replica.
type wire struct {
	*web
	name, bind string
	udp        *net.UDPConn
	tcp        *net.TCPListener
}

func newWeb(t *testing.T) *web {
	w := &web{T: t, wires: map[string]*wire{}, from: map[string]string{}, open: map[*net.TCPConn]bool{}}
	t.Cleanup(func() {
		for _, x := range w.wires {
			x.udp.Close()
			x.tcp.Close()
		}
		w.hangUp(nil)
		w.work.Wait()
	})
	return w
}

// both listens for UDP and TCP at one free port.
func (w *web) both() (*net.UDPConn, *net.TCPListener) {
	w.Helper()
	for range 10 {
		tcp, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			w.Fatal(err)
		}
		udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: tcp.Addr().(*net.TCPAddr).Port})
		if err == nil {
			return udp, tcp
		}
		tcp.Close()
	}
	w.Fatal("no port is free for UDP and TCP")
	return nil, nil
}

// wire makes one, and returns what the replica is to bind and to advertise.
func (w *web) wire(name string) (bind, advertise string) {
	w.Helper()
	udp, tcp := w.both()
	bind = tcp.Addr().String() // free again in a moment, and nobody else's by all likelihood
	udp.Close()
	tcp.Close()
	x := &wire{web: w, name: name, bind: bind}
	x.udp, x.tcp = w.both()
	w.mu.Lock()
	w.wires[name], w.from[bind] = x, name
	w.mu.Unlock()
	w.work.Go(x.packets)
	w.work.Go(x.calls)
	return bind, x.tcp.Addr().String()
}

// split cuts every pair of replicas that are on different sides. A call does not tell who makes it, so none gets
// through at all: within a side packets suffice to know each other alive.
func (w *web) split(sides ...[]string) {
	side := map[string]int{}
	for i, names := range sides {
		for _, name := range names {
			side[name] = i
		}
	}
	w.mu.Lock()
	w.side = side
	w.mu.Unlock()
	w.hangUp(map[*net.TCPConn]bool{})
}

func (w *web) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.side = nil
}

// hangUp closes what is open and goes on with these.
func (w *web) hangUp(with map[*net.TCPConn]bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.open {
		c.Close()
	}
	w.open = with
}

func (w *web) cut(from, to string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.side != nil && w.side[w.from[from]] != w.side[to]
}

func (x *wire) packets() {
	to, err := net.ResolveUDPAddr("udp", x.bind)
	if err != nil {
		x.Error(err)
		return
	}
	b := make([]byte, 64<<10)
	for {
		n, from, err := x.udp.ReadFromUDP(b)
		if err != nil {
			return // closed
		}
		if !x.cut(from.String(), x.name) {
			_, _ = x.udp.WriteToUDP(b[:n], to) // packets may be lost
		}
	}
}

func (x *wire) calls() {
	for {
		c, err := x.tcp.AcceptTCP()
		if err != nil {
			return // closed
		}
		x.work.Go(func() { x.call(c) })
	}
}

func (x *wire) call(c *net.TCPConn) {
	defer c.Close()
	there, err := net.DialTimeout("tcp", x.bind, time.Second)
	if err != nil {
		return
	}
	d := there.(*net.TCPConn)
	defer d.Close()
	if !x.keep(c, d) {
		return
	}
	defer x.drop(c, d)
	var both sync.WaitGroup
	for _, way := range [][2]*net.TCPConn{{c, d}, {d, c}} {
		both.Go(func() {
			_, _ = io.Copy(way[1], way[0])
			_ = way[1].CloseWrite()
		})
	}
	both.Wait()
}

func (x *wire) keep(both ...*net.TCPConn) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.side != nil || x.open == nil {
		return false
	}
	for _, c := range both {
		x.open[c] = true
	}
	return true
}

func (x *wire) drop(both ...*net.TCPConn) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, c := range both {
		delete(x.open, c)
	}
}
