package faultproxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
)

// Proxy accepts connections and connects each to its target. Its methods may be called from any goroutine and by the
// functions that were given to it, Close excepted.
type Proxy struct {
	// ToServer and ToClient are its two directions.
	ToServer, ToClient *Way

	listener *net.TCPListener
	ctx      context.Context // of dialling; ended by Close
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu     sync.Mutex // guards the fields of the ways and links too
	target string
	refuse bool
	links  map[*link]struct{}
	counts Counts
	closed bool
	err    error // of accepting
}

// Counts says how often each fault struck.
type Counts struct {
	Accepted int // connections, those included that were refused
	Refused  int // connections

	Delayed   int // chunks
	Swallowed int // chunks, all that came for a way that is dead for their connection
	Lost      int // connections, by Lose
	Replies   int // connections, by LoseReply, once the reply came
	Cut       int // connections, by CutAfter
	Reset     int // connections, by the method Reset
}

// Listen starts a proxy to a host:port, on a port of its own. Close ends it.
func Listen(target string) (*Proxy, error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
	if err != nil {
		return nil, fmt.Errorf("faultproxy: %w", err)
	}
	p := &Proxy{listener: l, target: target, links: make(map[*link]struct{})}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.ToServer, p.ToClient = &Way{proxy: p, cut: never}, &Way{proxy: p, cut: never}
	p.running.Go(p.accept)
	return p, nil
}

// Addr is the host:port that clients connect to.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Target has connections made from now on go to another host:port. Those that live stay where they are; Reset ends them.
func (p *Proxy) Target(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = addr
}

// Refuse resets connections as soon as they are made, or no longer does. Those that live stay.
func (p *Proxy) Refuse(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.refuse = on
}

// Reset breaks all connections, with a reset for both sides.
func (p *Proxy) Reset() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		if l.endLocked(Reset) {
			p.counts.Reset++
		}
	}
}

// Counts returns how often each fault struck so far.
func (p *Proxy) Counts() Counts {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts
}

// Close ends all connections, and returns when nothing of the proxy runs any more. It fails where the proxy had
// stopped to accept connections before. Closing it again does nothing.
func (p *Proxy) Close() error {
	p.mu.Lock()
	p.closed = true
	for l := range p.links {
		l.endLocked(Close)
	}
	p.mu.Unlock()
	p.cancel()
	p.listener.Close() // errs only if it is closed
	p.running.Wait()
	return p.err
}

func (p *Proxy) accept() {
	for {
		c, err := p.listener.AcceptTCP()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil {
			p.err = fmt.Errorf("faultproxy: accept: %w", err)
			return
		}
		p.running.Go(func() { p.serve(c) })
	}
}

// serve connects a client with the target and carries bytes until both ways have ended.
func (p *Proxy) serve(client *net.TCPConn) {
	target, ok := p.admit()
	if !ok {
		abort(client)
		return
	}
	var d net.Dialer
	c, err := d.DialContext(p.ctx, "tcp", target)
	if err != nil {
		abort(client) // as near as it gets to a server that is not there
		return
	}
	l := p.link(client, c.(*net.TCPConn))
	var back sync.WaitGroup
	back.Go(l.toClient.carry)
	l.toServer.carry()
	back.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	l.endLocked(Close)
	delete(p.links, l)
}

func (p *Proxy) admit() (target string, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts.Accepted++
	if p.refuse {
		p.counts.Refused++
	}
	return p.target, !p.refuse
}

func (p *Proxy) link(client, server *net.TCPConn) *link {
	l := &link{client: client, server: server, done: make(chan struct{})}
	l.toServer = &pipe{link: l, way: p.ToServer, from: client, to: server}
	l.toClient = &pipe{link: l, way: p.ToClient, from: server, to: client, other: l.toServer}
	l.toServer.other = l.toClient
	p.mu.Lock()
	defer p.mu.Unlock()
	p.links[l] = struct{}{}
	if p.closed {
		l.endLocked(Close)
	}
	return l
}
