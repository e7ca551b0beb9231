package membership

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

// A connection's first message has to be there in this time.
const (
	patience    = 5 * time.Second
	patienceWAN = 10 * time.Second
)

// gate stands between a transport and memberlist. Each packet and each connection's message is vetted here, whole, so
// that memberlist sees none that is cut off, hostile, from a stranger or from another cluster: it would make room for
// what a header announces, or panic, before it knew better. It replays what was vetted, as it was on the wire.
//
// The transport's own goroutines are never held up: packets are vetted one after the other, in microseconds, and each
// connection in a goroutine of its own.
type gate struct {
	memberlist.NodeAwareTransport
	allow    []netip.Prefix
	label    string
	labelled []byte // the same, which packets are authenticated with
	patience time.Duration
	packet   *decrypter // nil: gossip is in the clear
	stream   *decrypter // its own, since a large message takes it longer than a packet may wait
	counters *counters

	packets   chan *memberlist.Packet // unbuffered; what comes after Shutdown is dropped
	streams   chan net.Conn           // the same
	inbound   *visitors               // who called us
	outbound  *visitors               // whom we called, while they answer
	turnstile *turnstile

	stop    chan struct{} // closed by Shutdown: nothing is handed on any more
	done    chan struct{} // closed once the transport is down
	working sync.WaitGroup
	once    sync.Once
	err     error // of Shutdown
}

// newGate takes over t, and ends with its Shutdown.
func newGate(t memberlist.NodeAwareTransport, c Config, keys *memberlist.Keyring, n *counters) *gate {
	label := clusterLabel(c.Namespace)
	g := &gate{NodeAwareTransport: t, label: label, labelled: []byte(label), patience: patience, counters: n,
		packets: make(chan *memberlist.Packet), streams: make(chan net.Conn),
		stop: make(chan struct{}), done: make(chan struct{})}
	for _, p := range c.Allow {
		g.allow = append(g.allow, unmapped(p))
	}
	if c.Profile == WAN {
		g.patience = patienceWAN
	}
	if keys != nil {
		g.packet, g.stream = &decrypter{ring: keys}, &decrypter{ring: keys}
	}
	crowded := func(c net.Conn) {
		n.refuse(RefusedCrowded, "a connection", c.RemoteAddr(), "too many are being read, and it was the oldest")
	}
	g.inbound = &visitors{most: inboundMost, crowded: crowded}
	g.outbound = &visitors{most: outboundMost, crowded: crowded}
	g.turnstile = newTurnstile(g.stop)
	g.working.Go(g.passPackets)
	g.working.Go(g.passStreams)
	return g
}

// clusterLabel is the label of a namespace, which memberlist puts before all that it sends.
func clusterLabel(namespace string) string { return "belfry/" + namespace }

// PacketCh returns the packets that passed.
func (g *gate) PacketCh() <-chan *memberlist.Packet { return g.packets }

// StreamCh returns the connections whose message passed.
func (g *gate) StreamCh() <-chan net.Conn { return g.streams }

// WriteTo sends a packet.
func (g *gate) WriteTo(b []byte, addr string) (time.Time, error) {
	return g.WriteToAddress(b, memberlist.Address{Addr: addr})
}

// WriteToAddress sends a packet.
func (g *gate) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	t, err := g.NodeAwareTransport.WriteToAddress(b, a)
	if err == nil {
		g.counters.sent.Add(int64(len(b)))
	}
	return t, err
}

// Shutdown takes the transport down and waits for the gate's goroutines. What memberlist was handed stays open.
func (g *gate) Shutdown() error {
	g.once.Do(func() {
		close(g.stop)
		g.inbound.close()
		g.outbound.close()
		// The transport waits for its goroutines, which wait for somebody to take what they have.
		g.err = g.NodeAwareTransport.Shutdown()
		close(g.done)
		g.working.Wait()
	})
	return g.err
}

func (g *gate) passPackets() {
	for {
		select {
		case <-g.done:
			return
		case p := <-g.NodeAwareTransport.PacketCh():
			if err := g.vetPacket(p); err != nil {
				g.count("a packet", p.From, err)
				continue
			}
			select {
			case g.packets <- p:
			case <-g.stop:
			}
		}
	}
}

func (g *gate) passStreams() {
	for {
		select {
		case <-g.done:
			return
		case c := <-g.NodeAwareTransport.StreamCh():
			g.receive(c)
		}
	}
}

// count counts what was refused; an error of another kind is not our decision.
func (g *gate) count(thing string, from net.Addr, err error) {
	if r, ok := err.(*refusedError); ok {
		g.counters.refuse(r.why, thing, from, r.what)
	}
}

// vetPacket checks a packet, and makes it as small as it is: memberlist queues it, and with it the transport's buffer
// of 64 KiB.
func (g *gate) vetPacket(p *memberlist.Packet) error {
	g.counters.received.Add(int64(len(p.Buf)))
	if err := g.checkSource(p.From); err != nil {
		return err
	}
	if len(p.Buf) > maxPacket {
		return refuse(RefusedSize, "a packet of %d bytes; at most %d", len(p.Buf), maxPacket)
	}
	c := cursor{b: p.Buf}
	if err := g.checkLabel(&c); err != nil {
		return err
	}
	if err := g.vetSealed(c.b[c.at:]); err != nil {
		return err
	}
	if cap(p.Buf) > 2*len(p.Buf) {
		p.Buf = bytes.Clone(p.Buf)
	}
	return nil
}

// vetSealed checks a packet behind its label.
func (g *gate) vetSealed(b []byte) error {
	if g.packet == nil {
		err := vetPacket(b)
		if err != nil && looksSealed(b) {
			return refuse(RefusedKey, "it is encrypted, and this replica has no key")
		}
		return err
	}
	err := g.packet.open(b, g.labelled, vetPacket)
	if err != nil && vetPacket(b) == nil {
		return refuse(RefusedPlaintext, "it is not encrypted")
	}
	return err
}

// looksSealed reports whether b begins as what is encrypted does, and not as the plain message of that number: there a
// map follows.
func looksSealed(b []byte) bool {
	return len(b) >= sealMin && b[0] == sealVersion && b[1]&0xf0 != 0x80
}

// checkLabel reads the label that all of a cluster's packets and calls begin with.
func (g *gate) checkLabel(c *cursor) error {
	b, err := c.byte()
	if err != nil {
		return err
	}
	if b != msgLabel {
		return refuse(RefusedStranger, "%s", guess(c.b))
	}
	theirs, err := c.label()
	if err != nil {
		return err
	}
	if string(theirs) != g.label {
		return refuse(RefusedLabel, "it is of %.80q, this replica of %q", theirs, g.label)
	}
	return nil
}

// guess says what a stranger may be, by what it begins with.
func guess(b []byte) string {
	for _, verb := range []string{"GET ", "HEAD ", "POST ", "PUT ", "OPTIONS ", "PRI ", "HTTP/"} {
		if bytes.HasPrefix(b, []byte(verb)) {
			return "it speaks HTTP"
		}
	}
	switch {
	case bytes.HasPrefix(b, []byte{0x16, 3}):
		return "it speaks TLS"
	case b[0] < messages:
		return "it has no label; it may be the gossip of another program"
	}
	return "it has no label"
}

// body checks what follows the label of a call, and all of an answer: plain says how to read it once it is decrypted.
func (g *gate) body(c *cursor, plain func(*cursor) error) error {
	if err := c.need(1); err != nil {
		return err
	}
	t := c.b[c.at]
	if g.stream == nil {
		if t == msgEncrypt {
			return refuse(RefusedKey, "it is encrypted, and this replica has no key")
		}
		return plain(c)
	}
	switch {
	case t >= messages:
		return c.wrongType(t)
	case t != msgEncrypt:
		return refuse(RefusedPlaintext, "it is not encrypted")
	}
	head, err := c.take(5)
	if err != nil {
		return err
	}
	size := binary.BigEndian.Uint32(head[1:])
	data := append(bytes.Clone(head), g.label...)
	if size > maxMessage {
		return refuse(RefusedSize, "a message of %d bytes; at most %d", size, maxMessage)
	}
	sealed, err := c.take(int(size))
	if err != nil {
		return err
	}
	if err := c.end(); err != nil {
		return err
	}
	return g.stream.open(sealed, data, func(b []byte) error { return plain(&cursor{b: b}) })
}

// checkSource refuses a source outside of Allow.
func (g *gate) checkSource(from net.Addr) error {
	if len(g.allow) == 0 {
		return nil
	}
	var ip netip.Addr
	switch a := from.(type) {
	case *net.UDPAddr:
		ip = a.AddrPort().Addr()
	case *net.TCPAddr:
		ip = a.AddrPort().Addr()
	default:
		ap, _ := netip.ParseAddrPort(fmt.Sprint(from)) // none: outside
		ip = ap.Addr()
	}
	if !allowed(g.allow, ip) {
		return refuse(RefusedAddress, "it is not in Config.Allow")
	}
	return nil
}

// allowed reports whether ip is in one of the networks, or whether there are none.
func allowed(networks []netip.Prefix, ip netip.Addr) bool {
	ip = ip.Unmap().WithZone("")
	for _, n := range networks {
		if n.Contains(ip) {
			return true
		}
	}
	return len(networks) == 0
}

// unmapped returns the IPv4 network that p is within IPv6, or p.
func unmapped(p netip.Prefix) netip.Prefix {
	if p.Addr().Is4In6() && p.Bits() >= 96 {
		return netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p
}

// ipNets is Allow for memberlist, which refuses members outside by it.
func ipNets(networks []netip.Prefix) []net.IPNet {
	var all []net.IPNet
	for _, p := range networks {
		p = unmapped(p).Masked()
		all = append(all, net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())})
	}
	return all
}
