package membership

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/hashicorp/memberlist"
)

// explainWait bounds how long a refused caller may take to hear why.
const explainWait = time.Second

// receive takes a connection in; it does not wait for it.
func (g *gate) receive(c net.Conn) {
	if err := g.checkSource(c.RemoteAddr()); err != nil {
		g.count("a connection", c.RemoteAddr(), err)
		_ = c.Close()
		return
	}
	v := g.inbound.enter(c)
	if v == nil {
		_ = c.Close()
		return
	}
	g.working.Go(func() { g.visit(v) })
}

// visit reads a caller's message, and hands it on or turns it away.
func (g *gate) visit(v *visitor) {
	_ = v.conn.SetDeadline(time.Now().Add(g.patience)) // fails only if it is closed, as the read will
	c := cursor{in: &intake{visitors: g.inbound, visitor: v, received: &g.counters.received}}
	err := g.checkLabel(&c)
	if err == nil {
		err = g.body(&c, (*cursor).call)
	}
	if err == nil {
		g.hand(v, c.b)
		return
	}
	select {
	case <-v.out: // closed under the reader's hands
		return
	default:
	}
	g.count("a connection", v.conn.RemoteAddr(), err)
	if r, ok := err.(*refusedError); ok {
		g.explain(v.conn, r.why)
	}
	if g.inbound.leave(v) {
		_ = v.conn.Close()
	}
}

// hand gives memberlist a connection whose message was vetted.
func (g *gate) hand(v *visitor, message []byte) {
	places, ok := g.turnstile.enter(len(message), v.out)
	if !ok {
		return // closed by whoever ended it
	}
	if !g.inbound.leave(v) {
		g.turnstile.leave(places)
		return
	}
	_ = v.conn.SetDeadline(time.Time{}) // memberlist sets its own
	to := &guest{Conn: v.conn, message: message, sent: &g.counters.sent, release: func() { g.turnstile.leave(places) }}
	select {
	case g.streams <- to:
	case <-g.stop:
		_ = to.Close()
	}
}

// explain answers a caller that was refused: our label and the reason. A replica of ours that calls the wrong cluster,
// or with the wrong key, can then say so in its own log. It is no secret: the label is on all that we send.
func (g *gate) explain(c net.Conn, why Refusal) {
	switch why {
	case RefusedLabel, RefusedPlaintext, RefusedKey, RefusedSize:
	default: // nobody of ours, or past listening
		return
	}
	_ = c.SetDeadline(time.Now().Add(explainWait))
	b := append([]byte{msgLabel, byte(len(g.label))}, g.label...)
	n, err := c.Write(append(b, byte(why)))
	g.counters.sent.Add(int64(n))
	if err != nil {
		return
	}
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		_ = half.CloseWrite()
	}
	// Closed with bytes unread, TCP would take the answer back.
	unread, _ := io.CopyN(io.Discard, c, maxMessage)
	g.counters.received.Add(unread)
}

// DialTimeout calls addr.
func (g *gate) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return g.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

// DialAddressTimeout calls a, unless it is outside of Allow.
func (g *gate) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	if ap, err := netip.ParseAddrPort(a.Addr); err == nil && !allowed(g.allow, ap.Addr()) {
		// memberlist takes an error of another kind for a fault of its own.
		return nil, &net.OpError{Op: "dial", Net: "tcp", Addr: net.TCPAddrFromAddrPort(ap),
			Err: errors.New("it is not in Config.Allow; add its network there, or take the seed out")}
	}
	c, err := g.NodeAwareTransport.DialAddressTimeout(a, timeout)
	if err != nil {
		return nil, err
	}
	return &outgoing{Conn: c, gate: g}, nil
}

// outgoing is a connection of ours; memberlist reads the answer from it once it is vetted, and then its end.
type outgoing struct {
	net.Conn
	gate   *gate
	asked  bool
	answer []byte
	err    error
}

func (c *outgoing) Read(b []byte) (int, error) {
	if !c.asked {
		c.asked = true
		if c.answer, c.err = c.gate.await(c.Conn); c.err != nil {
			c.err = fmt.Errorf("%s: %w", c.RemoteAddr(), c.err)
		}
	}
	if c.err != nil {
		return 0, c.err
	}
	return replay(&c.answer, b)
}

func (c *outgoing) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	c.gate.counters.sent.Add(int64(n))
	if errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		err = fmt.Errorf("%w: %w", errUnheard, err)
	}
	return n, err
}

// errUnheard is what a caller sees of a refusal without a reason.
var errUnheard = errors.New("it closed the connection without an answer: it is no replica, or does not accept this one; see its log")

// await reads a whole answer. The deadline is memberlist's.
func (g *gate) await(conn net.Conn) ([]byte, error) {
	v := g.outbound.enter(conn)
	if v == nil {
		return nil, net.ErrClosed
	}
	defer g.outbound.leave(v)
	c := cursor{in: &intake{visitors: g.outbound, visitor: v, received: &g.counters.received}}
	err := g.vetAnswer(&c)
	r, refused := err.(*refusedError)
	switch {
	case err == errSilent:
		return nil, errUnheard
	case refused && r.why == RefusedSlow:
		return nil, fmt.Errorf("no whole answer in time: %s", r.what)
	case refused:
		select {
		case <-v.out:
			return nil, net.ErrClosed
		default:
		}
		g.count("an answer", conn.RemoteAddr(), err)
		return nil, fmt.Errorf("its answer was refused: %w; %s", err, advice[r.why].do)
	}
	return c.b, err
}

func (g *gate) vetAnswer(c *cursor) error {
	if err := c.need(1); err != nil {
		return err
	}
	switch b := c.b[0]; {
	case b == msgLabel:
		return g.explained(c)
	case b >= messages:
		return refuse(RefusedStranger, "%s", guess(c.b))
	}
	return g.body(c, (*cursor).answer)
}

// explained reads why the other side refused us.
func (g *gate) explained(c *cursor) error {
	_, _ = c.byte()
	theirs, err := c.label()
	if err != nil {
		return err
	}
	theirs = append([]byte(nil), theirs...)
	b, err := c.byte()
	if err != nil {
		return err
	}
	switch why := Refusal(b); why {
	case RefusedLabel:
		return fmt.Errorf("it refused this replica: label: it is of %.80q, this one of %q; %s", theirs, g.label, advice[why].do)
	case RefusedPlaintext:
		return errors.New("it refused this replica: plaintext: it has a key, this one has none; set Config.Secrets to that of the others")
	case RefusedKey:
		return errors.New("it refused this replica: key: it has another one, or none; give all replicas a key in common in Config.Secrets")
	case RefusedSize:
		return errors.New("it refused this replica: size: what this one sends is too large for it; look for another version of the program")
	}
	return refuse(RefusedMalformed, "it refused for a reason of number %d", b)
}
