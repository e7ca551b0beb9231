package membership

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/internal/simnet"
	"github.com/hashicorp/memberlist"
)

var (
	testKey  = secret(1)
	otherKey = secret(2)
)

// gateOn makes a gate of the namespace "test" on a host, in a bubble; it ends with the test.
func gateOn(t testing.TB, h memberlist.NodeAwareTransport, c Config, secrets ...[]byte) *gate {
	t.Helper()
	c.Namespace = "test"
	keys, err := newKeys(secrets)
	if err != nil {
		t.Fatal(err)
	}
	g := newGate(h, c, keys, newCounters(newPump(quietLog())))
	t.Cleanup(func() {
		if err := g.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// inGate runs a test in a bubble, with a gate on one of two hosts. With keys it has two.
func inGate(t *testing.T, keyed bool, run func(t *testing.T, g *gate, h, other *simnet.Host)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var secrets [][]byte
		if keyed {
			secrets = [][]byte{testKey, otherKey}
		}
		network := simnet.New(1)
		h, other := network.Listen(), network.Listen()
		run(t, gateOn(t, h, Config{}, secrets...), h, other)
	})
}

func (g *gate) counted(why Refusal) int64 { return g.counters.stats().Refused[why] }

// TestGatePackets names the reason for each kind of packet.
func TestGatePackets(t *testing.T) {
	t.Parallel()
	ping := encode(msgPing, wirePing{SeqNo: 1, Node: "a@1"})
	old := func(b []byte) []byte { // padded, as memberlist's first version
		b[len(clusterLabel("test"))+2] = 0
		return b
	}
	for _, c := range []struct {
		name  string
		keyed bool
		b     []byte
		want  string
	}{
		{"good", false, packet("test", nil, ping), ""},
		{"good", true, packet("test", testKey, ping), ""},
		{"the second key", true, packet("test", otherKey, ping), ""},
		{"a stranger's key", true, packet("test", make([]byte, 16), ping), "key"},
		{"damaged", true, append(packet("test", testKey, ping), 1), "key"},
		{"plain", true, packet("test", nil, ping), "plaintext"},
		{"plain and indirect", true, packet("test", nil, encode(msgIndirectPing, wireIndirectPing{Target: make([]byte, 4)})), "plaintext"},
		{"encrypted without a key", false, packet("test", testKey, ping), "key"},
		{"the padded version", true, old(packet("test", testKey, ping)), "malformed"},
		{"nothing inside", true, packet("test", testKey, nil), "malformed"},
		{"hostile inside", true, packet("test", testKey, bomb(1)), "malformed"},
		{"another label", true, packet("other", testKey, ping), "label"},
		{"another label, plain", true, packet("other", nil, ping), "label"},
		{"no label", false, ping, "stranger"},
		{"HTTP", false, []byte("GET /metrics HTTP/1.1\r\n\r\n"), "stranger"},
		{"an empty label", false, []byte{msgLabel, 0, 1}, "malformed"},
		{"half a label", false, []byte{msgLabel, 200, 'b'}, "malformed"},
		{"no more than a label", false, labelled("test", nil), "malformed"},
		{"no more than a label", true, labelled("test", nil), "malformed"},
		{"4 KiB and one", true, make([]byte, maxPacket+1), "size"},
		{"a long name", false, packet("test", nil, alive(strings.Repeat("n", 200))), "size"},
	} {
		t.Run(fmt.Sprintf("%s keyed=%t", c.name, c.keyed), func(t *testing.T) {
			t.Parallel()
			inGate(t, c.keyed, func(t *testing.T, g *gate, h, from *simnet.Host) {
				if _, err := from.WriteTo(c.b, h.Addr()); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second)
				synctest.Wait()
				got := ""
				for why, n := range g.counters.stats().Refused {
					if n > 0 {
						got += why.String()
					}
				}
				if got != c.want {
					t.Errorf("refused %q; want %q", got, c.want)
				}
				select {
				case p := <-g.PacketCh():
					if c.want != "" || !bytes.Equal(p.Buf, c.b) || p.From.String() != from.Addr() {
						t.Errorf("memberlist saw %x of %s", p.Buf, p.From)
					}
				default:
					if c.want == "" {
						t.Error("memberlist saw nothing")
					}
				}
				if s := g.counters.stats(); s.Received != int64(len(c.b)) {
					t.Errorf("%d bytes received of %d", s.Received, len(c.b))
				}
			})
		})
	}
}

// talk calls a gate, says something, and returns what was answered until the end.
func talk(t *testing.T, from, to *simnet.Host, say []byte) []byte {
	t.Helper()
	c, err := from.DialTimeout(to.Addr(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := c.Write(say); err != nil {
		t.Fatal(err)
	}
	_ = c.SetDeadline(time.Now().Add(time.Minute))
	answer, _ := io.ReadAll(c) // what came before it was closed
	return answer
}

// TestGateStreams gives memberlist a vetted message whole, then its end, and explains to a member gone astray.
func TestGateStreams(t *testing.T) {
	t.Parallel()
	good := pushPull(wirePushPull{Nodes: 1, Join: true}, nil, state("a@1"))
	says := func(why Refusal) []byte { return labelled("test", []byte{byte(why)}) }
	for _, c := range []struct {
		name   string
		keyed  bool
		b      []byte
		want   Refusal // refusals: none
		answer []byte
	}{
		{"good", false, stream("test", nil, good), Refusal(refusals), []byte("answer")},
		{"good", true, stream("test", testKey, good), Refusal(refusals), []byte("answer")},
		{"a stranger's key", true, stream("test", make([]byte, 16), good), RefusedKey, says(RefusedKey)},
		{"plain", true, stream("test", nil, good), RefusedPlaintext, says(RefusedPlaintext)},
		{"encrypted without a key", false, stream("test", testKey, good), RefusedKey, says(RefusedKey)},
		{"another label", true, stream("other", testKey, good), RefusedLabel, says(RefusedLabel)},
		{"no label", false, good, RefusedStranger, nil},
		{"HTTP", true, []byte("GET /metrics HTTP/1.1\r\n\r\n"), RefusedStranger, nil},
		{"TLS", true, []byte{0x16, 3, 1, 0, 0}, RefusedStranger, nil},
		{"nothing inside", true, stream("test", testKey, nil), RefusedMalformed, nil},
		{"half, then nothing", true, stream("test", testKey, good)[:60], RefusedSlow, nil},
		{"nothing", true, nil, RefusedSlow, nil},
		{"30 MB, encrypted", true, labelled("test", []byte{msgEncrypt, 2, 0, 0, 0}), RefusedSize, says(RefusedSize)},
		{"0 bytes, encrypted", true, labelled("test", []byte{msgEncrypt, 0, 0, 0, 0}), RefusedMalformed, nil},
		{"a type that is none", true, labelled("test", []byte{99}), RefusedMalformed, nil},
		{"a bomb", true, stream("test", testKey, bomb(1<<20)), RefusedMalformed, nil},
		{"a byte too many", true, append(stream("test", testKey, good), 1), RefusedMalformed, nil},
		{"a byte too many inside", true, stream("test", testKey, append(bytes.Clone(good), 1)), RefusedMalformed, nil},
	} {
		t.Run(fmt.Sprintf("%s keyed=%t", c.name, c.keyed), func(t *testing.T) {
			t.Parallel()
			inGate(t, c.keyed, func(t *testing.T, g *gate, h, from *simnet.Host) {
				go func() {
					select {
					case s := <-g.StreamCh():
						if saw, err := io.ReadAll(s); err != nil || !bytes.Equal(saw, c.b) || c.want != Refusal(refusals) {
							t.Errorf("memberlist saw %x, %v", saw, err)
						}
						_, _ = s.Write([]byte("answer"))
						_ = s.Close()
					case <-t.Context().Done():
					}
				}()
				if answer := talk(t, from, h, c.b); !bytes.Equal(answer, c.answer) {
					t.Errorf("answered %q", answer)
				}
				for why, n := range g.counters.stats().Refused {
					if want := why == c.want; want != (n == 1) {
						t.Errorf("%d refused as %s", n, why)
					}
				}
				time.Sleep(time.Minute)
				if len(g.inbound.all) > 0 || g.inbound.bytes != 0 || len(g.turnstile.place) > 0 {
					t.Errorf("left behind: %d connections, %d bytes, %d places", len(g.inbound.all), g.inbound.bytes, len(g.turnstile.place))
				}
			})
		})
	}
}

// TestGateAnswers vets what a outgoing answers before memberlist sees any of it.
func TestGateAnswers(t *testing.T) {
	t.Parallel()
	good := pushPull(wirePushPull{Nodes: 1}, nil, state("a@1"))
	for _, c := range []struct {
		name    string
		answer  []byte
		says    string
		counted Refusal
	}{
		{"good", streamBody("test", testKey, good), "", Refusal(refusals)},
		{"a bomb", streamBody("test", testKey, bomb(1<<20)), "compressed", RefusedMalformed},
		{"a million states", streamBody("test", testKey, pushPull(wirePushPull{Nodes: 1 << 20}, nil)), "1048576 in field Nodes", RefusedSize},
		{"another key", streamBody("test", make([]byte, 16), good), "a key that this replica does not have", RefusedKey},
		{"plain", good, "not encrypted", RefusedPlaintext},
		{"a web server's", []byte("HTTP/1.1 400 Bad Request\r\n\r\n"), "HTTP", RefusedStranger},
		{"another label's", labelled("other", []byte{byte(RefusedLabel)}), `it is of "belfry/other", this one of "belfry/test"`, Refusal(refusals)},
		{"another key's", labelled("test", []byte{byte(RefusedKey)}), "refused this replica: key", Refusal(refusals)},
		{"a refusal of tomorrow", labelled("test", []byte{200}), "number 200", RefusedMalformed},
		{"none", nil, "without an answer", Refusal(refusals)},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			inGate(t, true, func(t *testing.T, g *gate, _, to *simnet.Host) {
				go func() {
					s := <-to.StreamCh()
					_, _ = s.Write(c.answer)
					_ = s.Close()
				}()
				conn, err := g.DialTimeout(to.Addr(), time.Second)
				if err != nil {
					t.Fatal(err)
				}
				saw, err := io.ReadAll(conn)
				if c.says == "" && (err != nil || !bytes.Equal(saw, c.answer)) {
					t.Errorf("memberlist saw %x, %v", saw, err)
				}
				if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || len(saw) > 0) {
					t.Errorf("memberlist saw %x, %v", saw, err)
				}
				for why, n := range g.counters.stats().Refused {
					if want := why == c.counted; want != (n == 1) {
						t.Errorf("%d refused as %s", n, why)
					}
				}
				if len(g.outbound.all) > 0 || g.outbound.bytes != 0 {
					t.Errorf("left behind: %d connections, %d bytes", len(g.outbound.all), g.outbound.bytes)
				}
				_ = conn.Close()
			})
		})
	}
}

// TestShutdownBusy ends while packets and connections wait in every place, on sockets.
func TestShutdownBusy(t *testing.T) {
	t.Parallel()
	loop := net.IPv4(127, 0, 0, 1)
	wire, err := listen(t.Context(), endpoint{bind: &net.TCPAddr{IP: loop}}, slog.NewLogLogger(quietLog().Handler(), slog.LevelInfo))
	if err != nil {
		t.Fatal(err)
	}
	g := gateOn(t, wire, Config{})
	_, port, err := g.FinalAdvertiseAddr("", 0)
	if err != nil {
		t.Fatal(err)
	}
	to := netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), uint16(port)).String()
	u, err := net.Dial("udp", to)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = u.Close() }()
	var conns []net.Conn
	for range 20 {
		if _, err := u.Write(packet("test", nil, alive("a@1"))); err != nil {
			t.Fatal(err)
		}
		c, err := net.Dial("tcp", to)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = c.Close() }()
		conns = append(conns, c)
	}
	for _, c := range conns[:10] {
		if _, err := c.Write(stream("test", nil, pushPull(wirePushPull{}, nil))); err != nil {
			t.Fatal(err)
		}
	}
	_ = (<-g.StreamCh()).Close() // at least one is that far
	if p := <-g.PacketCh(); cap(p.Buf) > 2*len(p.Buf) {
		t.Errorf("a packet of %d bytes holds %d", len(p.Buf), cap(p.Buf))
	}
	var both sync.WaitGroup
	for range 2 {
		both.Go(func() {
			if err := g.Shutdown(); err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
}

// TestAllowed knows one address in all its forms.
func TestAllowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		network, addr string
		want          bool
	}{
		{"", "8.8.8.8", true},
		{"10.0.0.0/8", "10.9.9.9", true},
		{"10.0.0.0/8", "::ffff:10.9.9.9", true},
		{"10.0.0.0/8", "11.0.0.1", false},
		{"::ffff:10.0.0.0/104", "10.9.9.9", true},
		{"::ffff:10.0.0.0/104", "11.0.0.1", false},
		{"fe80::/10", "fe80::1%eth0", true},
		{"fd00::/8", "fe80::1", false},
		{"10.0.0.7/8", "10.9.9.9", true},
	} {
		var allow []netip.Prefix
		if c.network != "" {
			allow = []netip.Prefix{unmapped(netip.MustParsePrefix(c.network))}
		}
		ip := netip.MustParseAddr(c.addr)
		if got := allowed(allow, ip); got != c.want {
			t.Errorf("%s in %q: %t", ip, c.network, got)
		}
		m := memberlist.Config{CIDRsAllowed: ipNets(allow)}
		if err := m.IPAllowed(ip.AsSlice()); (err == nil) != c.want {
			t.Errorf("memberlist: %s in %q: %v", ip, c.network, err)
		}
	}
}

// TestRefusals have a word and advice each.
func TestRefusals(t *testing.T) {
	t.Parallel()
	words := map[string]bool{}
	for r := range Refusal(refusals) {
		if words[r.String()] || advice[r].do == "" || strings.ContainsAny(r.String(), " ()") {
			t.Errorf("%d: %q, %q", r, r, advice[r].do)
		}
		words[r.String()] = true
	}
	for r, n := range map[Refusal]int{RefusedLabel: 1, RefusedPlaintext: 3, RefusedKey: 4, RefusedSize: 5} {
		if int(r) != n {
			t.Errorf("%s is %d on the wire, not %d", r, int(r), n)
		}
	}
	for _, r := range []Refusal{-1, Refusal(refusals)} {
		if got := r.String(); got != fmt.Sprintf("refusal(%d)", int(r)) {
			t.Error(got)
		}
	}
}

// BenchmarkVetPacket is what the gate adds to each packet.
func BenchmarkVetPacket(b *testing.B) {
	node := meta{boot: "0123456789abcdef"}.node()
	ping := encode(msgPing, wirePing{SeqNo: 1 << 20, Node: node, SourceAddr: []byte{10, 0, 0, 1}, SourcePort: 7946, SourceNode: node})
	full := compound(ping, alive(node), alive(node), alive(node))
	for _, c := range []struct {
		name  string
		key   []byte
		plain []byte
	}{
		{"ping/plain", nil, ping}, {"ping/keyed", testKey, ping}, {"compound/plain", nil, full}, {"compound/keyed", testKey, full},
	} {
		b.Run(c.name, func(b *testing.B) {
			g := gateOn(b, simnet.New(1).Listen(), Config{Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}, keysOf(c.key)...)
			wire := packet("test", c.key, c.plain)
			p := &memberlist.Packet{From: &net.UDPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 7946}}
			udp := make([]byte, 1<<16)
			b.ReportAllocs()
			b.SetBytes(int64(len(wire)))
			for b.Loop() {
				p.Buf = udp[:copy(udp, wire)]
				if err := g.vetPacket(p); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkVetCall is a push/pull between two members of a fleet of 5 and of 500.
func BenchmarkVetCall(b *testing.B) {
	for _, members := range []int{5, 500} {
		for _, key := range [][]byte{nil, testKey} {
			b.Run(fmt.Sprintf("members=%d/keyed=%t", members, key != nil), func(b *testing.B) {
				g := gateOn(b, simnet.New(1).Listen(), Config{}, keysOf(key)...)
				states := make([]wireState, members)
				for i := range states {
					states[i] = state(meta{boot: "0123456789abcdef"}.node())
					states[i].Meta = make([]byte, 160)
				}
				wire := stream("test", key, pushPull(wirePushPull{Nodes: members}, nil, states...))
				b.ReportAllocs()
				b.SetBytes(int64(len(wire)))
				for b.Loop() {
					c := reader(b, g.counters, wire, 1<<16)
					if err := g.checkLabel(c); err != nil {
						b.Fatal(err)
					}
					if err := g.body(c, (*cursor).call); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
