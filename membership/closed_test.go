package membership

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/simnet"
)

// TestStrangers lets a process without our key, with another, of another namespace or from outside of Allow call one of
// ours (S13, F21, GS-05). It never becomes a member. Both sides count and log it, at a bounded rate, with the reason.
func TestStrangers(t *testing.T) {
	t.Parallel()
	ours := [][]byte{testKey}
	first := []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32")} // the first host of a network in memory
	for _, c := range []struct {
		name        string
		ours, their Config
		counted     Refusal
		says, hears string // in our log, and in theirs
	}{
		{"label", Config{Secrets: ours}, Config{Namespace: "other", Secrets: ours}, RefusedLabel,
			`label: it is of \"belfry/other\", this replica of \"belfry/test\"`, `label: it is of \"belfry/test\", this one of \"belfry/other\"`},
		{"label without keys", Config{}, Config{Namespace: "other"}, RefusedLabel,
			`label: it is of \"belfry/other\", this replica of \"belfry/test\"`, `label: it is of \"belfry/test\", this one of \"belfry/other\"`},
		{"wrong key", Config{Secrets: ours}, Config{Secrets: [][]byte{otherKey}}, RefusedKey,
			"key: it was encrypted with a key that this replica does not have", "it refused this replica: key: it has another one, or none;"},
		{"no key", Config{Secrets: ours}, Config{}, RefusedPlaintext,
			"plaintext: it is not encrypted", "it refused this replica: plaintext: it has a key, this one has none;"},
		{"a key for none", Config{}, Config{Secrets: ours}, RefusedKey,
			"key: it is encrypted, and this replica has no key", "it refused this replica: key: it has another one, or none;"},
		{"address", Config{Secrets: ours, Allow: first}, Config{Secrets: ours}, RefusedAddress,
			"address: it is not in Config.Allow", "it closed the connection without an answer"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, 2, func(f *fleet) {
				var logged, heard syncBuffer
				ours, their := c.ours, c.their // the seeds run at once
				ours.Name, ours.Logger = "a", slog.New(slog.NewTextHandler(&logged, nil))
				a := f.join(ours)
				f.announce(a, Serving)
				their.Name, their.Seeds, their.Logger = "b", []string{a.Addr()}, slog.New(slog.NewTextHandler(&heard, nil))
				b := f.join(their)
				f.announce(b, Serving)
				for range 120 {
					time.Sleep(time.Second)
					if len(a.Members()) != 1 || len(b.Members()) != 1 {
						f.Fatalf("seed %d: strangers are members: %v, %v", f.seed, a.Members(), b.Members())
					}
				}
				for why, n := range a.Stats().Refused {
					if want := why == c.counted; want != (n > 0) {
						f.Errorf("seed %d: %d refused for %s", f.seed, n, why)
					}
				}
				if n := strings.Count(logged.String(), c.says+";"); n < 1 || n > 3 {
					f.Errorf("our log says %q %d times in 120 s: %s", c.says, n, logged.String())
				}
				if s := heard.String(); !strings.Contains(s, c.hears) {
					f.Errorf("their log does not say %q: %s", c.hears, s)
				}
			})
		})
	}
}

// TestTwoClusters gives each of two clusters a seed in the other (F21): they never merge, and say why on both sides.
func TestTwoClusters(t *testing.T) {
	t.Parallel()
	bubble(t, 2, func(f *fleet) {
		var logs [4]syncBuffer
		var hosts [4]*simnet.Host
		for i := range hosts {
			hosts[i] = f.net.Listen()
		}
		for i, h := range hosts {
			ns := []string{"red", "blue"}[i/2]
			c, err := joinOn(f.Context(), Config{Name: letter(i), Namespace: ns, Secrets: [][]byte{testKey}, Logger: slog.New(slog.NewTextHandler(&logs[i], nil)),
				Seeds: []string{hosts[0].Addr(), hosts[2].Addr()}}, h)
			if err != nil {
				f.Fatal(err)
			}
			f.all = append(f.all, c)
			f.announce(c, Serving)
		}
		red, blue := f.all[:2], f.all[2:]
		f.agree(formed, red, names(2))
		f.agree(formed, blue, names(4)[2:])
		for range 120 {
			time.Sleep(time.Second)
			f.agree(0, red, names(2))
			f.agree(0, blue, names(4)[2:])
		}
		for i, c := range []*Cluster{f.all[0], f.all[2]} {
			if n := c.Stats().Refused[RefusedLabel]; n < 5 {
				f.Errorf("seed %d: %s counted %d calls from the other cluster", f.seed, c.Self(), n)
			}
			if s := logs[2*i].String(); !strings.Contains(s, "belfry/red") || !strings.Contains(s, "belfry/blue") {
				f.Errorf("seed %d: %s does not name both clusters: %s", f.seed, c.Self(), s)
			}
		}
	})
}

// noise makes things that are no gossip, or were, from a seed.
type noise struct {
	rng   *rand.Rand
	key   []byte
	whole [][]byte // packets as on the wire
	calls [][]byte
}

func newNoise(seed uint64, key []byte) *noise {
	n := &noise{rng: rand.New(rand.NewPCG(seed, 17)), key: key}
	for _, m := range someMessages() {
		n.whole = append(n.whole, packet("test", key, checksum(m)))
	}
	for _, m := range someCalls() {
		n.calls = append(n.calls, stream("test", key, m))
	}
	return n
}

// damage flips bits, cuts, or replaces everything.
func (n *noise) damage(of [][]byte) []byte {
	b := slices.Clone(of[n.rng.IntN(len(of))])
	switch n.rng.IntN(4) {
	case 0:
		return b[:n.rng.IntN(len(b))]
	case 1:
		for range 1 + n.rng.IntN(2000) {
			b = append(b, byte(n.rng.Uint32()))
		}
		return b[n.rng.IntN(len(b)):]
	case 2:
		return []byte("GET /metrics HTTP/1.1\r\nHost: belfry\r\n\r\n")
	}
	for range 1 + n.rng.IntN(8) {
		b[n.rng.IntN(len(b))] ^= 1 << n.rng.IntN(8)
	}
	return b
}

// TestDamage sends flipped bits, cut messages, garbage and HTTP to three members (F17), as packets and on connections:
// nothing panics, all is counted, logged at a bounded rate, and no member goes or comes. Without a key, what is changed
// on a connection may be another good message, so only the rest of it is sent there.
func TestDamage(t *testing.T) {
	t.Parallel()
	for _, key := range [][]byte{nil, testKey} {
		t.Run(fmt.Sprintf("keyed=%t", key != nil), func(t *testing.T) {
			t.Parallel()
			bubble(t, 3, func(f *fleet) {
				var logged syncBuffer
				f.serveAs(3, Config{Secrets: keysOf(key), Logger: slog.New(slog.NewTextHandler(&logged, nil))})
				time.Sleep(time.Minute)
				before := strings.Count(logged.String(), "msg=gossip")
				var changed []<-chan struct{}
				for _, c := range f.all {
					_, ch := c.Watch()
					changed = append(changed, ch)
				}
				f.makeNoise(newNoise(f.seed, key), key != nil)
				time.Sleep(10 * time.Second)
				for i, c := range f.all {
					select {
					case <-changed[i]:
						f.Errorf("seed %d: %s saw a change", f.seed, c.Self())
					default:
					}
					if n := len(c.Members()); n != 3 {
						f.Errorf("seed %d: %s sees %d members", f.seed, c.Self(), n)
					}
					s := c.Stats().Refused
					if s[RefusedStranger] < 100 || s[RefusedMalformed] < 100 || key != nil && s[RefusedKey] < 100 {
						f.Errorf("seed %d: %s refused %v", f.seed, c.Self(), s)
					}
				}
				if n := strings.Count(logged.String(), "msg=gossip") - before; n < 3 || n > 3*3*logBurst {
					f.Errorf("seed %d: %d lines for 3 members in 2 minutes", f.seed, n)
				}
				f.Logf("seed %d: refused %v", f.seed, f.all[0].Stats().Refused)
			})
		})
	}
}

// makeNoise is 2 minutes of it.
func (f *fleet) makeNoise(n *noise, flips bool) {
	f.Helper()
	from := f.net.Listen()
	defer func() { _ = from.Shutdown() }()
	for i := range 6000 {
		rest(20 * time.Millisecond)
		to := f.all[i%3].Addr()
		if i%20 != 0 {
			if _, err := from.WriteTo(n.damage(n.whole), to); err != nil {
				f.Fatal(err)
			}
			continue
		}
		b := n.damage(n.calls)
		if !flips && slices.ContainsFunc(n.calls, func(c []byte) bool { return len(c) == len(b) }) {
			continue
		}
		c, err := from.DialTimeout(to, time.Second)
		if err != nil {
			f.Fatal(err)
		}
		_, _ = c.Write(b)
		time.AfterFunc(time.Second, func() { _ = c.Close() })
	}
}

// TestOutsideAllow is refused before anything else happens.
func TestOutsideAllow(t *testing.T) {
	t.Parallel()
	c := Config{Name: "a", Namespace: "test", Allow: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}, Logger: quietLog()}
	_, err := Join(t.Context(), c)
	if err == nil || !strings.Contains(err.Error(), "127.0.0.1:") || !strings.Contains(err.Error(), "Config.Allow") {
		t.Errorf("got %v", err)
	}
}

// TestMemberOutsideAllow tells one that allows two addresses of a third: it takes its word for nothing that is outside.
func TestMemberOutsideAllow(t *testing.T) {
	t.Parallel()
	bubble(t, 2, func(f *fleet) {
		both := []netip.Prefix{netip.MustParsePrefix("10.0.0.1/32"), netip.MustParsePrefix("10.0.0.2/32")}
		a := f.join(Config{Name: letter(0), Allow: both})
		b := f.join(Config{Name: letter(1), Seeds: addrs(f.all)})
		c := f.join(Config{Name: letter(2), Seeds: []string{b.Addr()}})
		for _, m := range f.all {
			f.announce(m, Serving)
		}
		f.agree(formed, []*Cluster{b}, names(3))
		for range 60 {
			time.Sleep(time.Second)
			if n := len(a.Members()); n > 2 {
				f.Fatalf("seed %d: %v", f.seed, a.Members())
			}
		}
		if a.Stats().Refused[RefusedAddress] == 0 {
			f.Errorf("seed %d: %s was never refused: %v", f.seed, c.Self(), a.Stats().Refused)
		}
	})
}

// TestSeedOutsideAllow is not called; the log says so.
func TestSeedOutsideAllow(t *testing.T) {
	t.Parallel()
	var logged syncBuffer
	joinReal(t, Config{Name: "a", Seeds: []string{"10.1.2.3:7946"}, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")},
		Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	if s := logged.String(); !strings.Contains(s, "10.1.2.3:7946") || !strings.Contains(s, "it is not in Config.Allow") {
		t.Errorf("logged: %s", s)
	}
}

// TestStrangersOnSockets repeats TestStrangers in short: the inbound hear the reason although they were refused before
// they had said all, which a reset would have taken from them.
func TestStrangersOnSockets(t *testing.T) {
	t.Parallel()
	a := joinReal(t, Config{Name: "a", Secrets: [][]byte{testKey}, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}})
	for name, c := range map[string]struct {
		config  Config
		counted Refusal
		hears   string
	}{
		"none":      {Config{}, RefusedPlaintext, "it refused this replica: plaintext"},
		"other":     {Config{Secrets: [][]byte{otherKey}}, RefusedKey, "it refused this replica: key"},
		"namespace": {Config{Secrets: [][]byte{testKey}, Namespace: "other"}, RefusedLabel, "it refused this replica: label"},
	} {
		var logged syncBuffer
		c.config.Name, c.config.Seeds, c.config.Logger = name, []string{a.Addr()}, slog.New(slog.NewTextHandler(&logged, nil))
		b := joinReal(t, c.config)
		if !strings.Contains(logged.String(), c.hears) {
			t.Errorf("%s: the caller does not know why: %s", name, logged.String())
		}
		if a.Stats().Refused[c.counted] == 0 || len(a.Members()) != 1 || len(b.Members()) != 1 {
			t.Errorf("%s: %v; members %v, %v", name, a.Stats().Refused, a.Members(), b.Members())
		}
	}
	c, err := net.Dial("tcp", a.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	states := bigStates(900 << 10) // most of it is not even sent when it is refused
	if err := c.(*net.TCPConn).SetWriteBuffer(8 << 10); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Write(stream("other", testKey, pushPull(wirePushPull{Nodes: len(states)}, nil, states...))); err != nil {
		t.Fatal(err)
	}
	if b, err := io.ReadAll(c); err != nil || !bytes.Equal(b, labelled("test", []byte{byte(RefusedLabel)})) {
		t.Errorf("answered %q, %v", b, err)
	}

	far := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}
	outside, err := far.Dial("tcp", a.Addr())
	if err != nil {
		t.Skipf("no second loopback address here: %v", err)
	}
	defer func() { _ = outside.Close() }()
	_, _ = outside.Write(stream("test", testKey, pushPull(wirePushPull{Nodes: 1}, nil, state(meta{boot: "0123456789abcdef"}.node()))))
	if b, _ := io.ReadAll(outside); len(b) > 0 {
		t.Errorf("answered %q", b)
	}
	if a.Stats().Refused[RefusedAddress] != 1 || len(a.Members()) != 1 {
		t.Errorf("from outside: %v; members %v", a.Stats().Refused, a.Members())
	}
}

// TestStrayHTTP is a scraper that was pointed at the port, on sockets (F17, S13).
func TestStrayHTTP(t *testing.T) {
	t.Parallel()
	var logged syncBuffer
	a := joinReal(t, Config{Name: "a", Secrets: [][]byte{testKey}, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	for range 20 {
		c, err := net.Dial("tcp", a.Addr())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: belfry\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(c); len(b) > 0 {
			t.Errorf("answered %q", b)
		}
		_ = c.Close()
	}
	c, err := net.Dial("tcp", a.Addr()) // a health check opens and closes: nothing to count
	if err != nil {
		t.Fatal(err)
	}
	_ = c.(*net.TCPConn).CloseWrite()
	_, _ = io.ReadAll(c) // until the gate has looked and hung up
	_ = c.Close()
	s := a.Stats()
	if s.Refused[RefusedStranger] != 20 || len(a.Members()) != 1 || s.Received != 20*39 {
		t.Errorf("%+v, members %v", s, a.Members())
	}
	want := "it speaks HTTP; see what calls this port; a scraper or health check belongs to the program's own HTTP port"
	eventually(t, func() bool { return strings.Contains(logged.String(), want) })
	if n := strings.Count(logged.String(), want); n != 1 {
		t.Errorf("%d lines in a moment", n)
	}
}

// eventually polls until ok, for a minute.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("not within a minute")
		}
	}
}

// TestStats counts both directions between two members, with and without a connection.
func TestStats(t *testing.T) {
	t.Parallel()
	bubble(t, 2, func(f *fleet) {
		all := f.serve(2, Fast)
		time.Sleep(time.Minute)
		a, b := all[0].Stats(), all[1].Stats()
		// What is under way makes the difference; nothing was lost.
		if a.Sent-b.Received > 2000 || b.Sent-a.Received > 2000 || a.Sent < b.Received || b.Sent < a.Received || a.Sent < 10_000 {
			f.Errorf("seed %d: %d and %d sent, %d and %d received", f.seed, a.Sent, b.Sent, b.Received, a.Received)
		}
		for why, n := range a.Refused {
			if n != 0 {
				f.Errorf("seed %d: %d refused for %s among friends", f.seed, n, why)
			}
		}
		if len(a.Refused) != refusals {
			f.Errorf("%d reasons", len(a.Refused))
		}
		f.Logf("seed %d: %d bytes sent in a minute", f.seed, a.Sent)
	})
}
