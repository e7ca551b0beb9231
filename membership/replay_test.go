package membership

import (
	"net"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/simnet"
	"github.com/hashicorp/memberlist"
)

// tape is what hosts have sent, packets and calls, for who holds no key but can listen.
type tape struct {
	mu      sync.Mutex
	stopped bool
	sent    []*taped
}

// taped is one packet, or all that was said on one connection.
type taped struct {
	to   string
	call bool
	b    []byte
}

func (t *tape) add(to string, call bool, b []byte) *taped {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := &taped{to: to, call: call, b: slices.Clone(b)}
	if !t.stopped {
		t.sent = append(t.sent, s)
	}
	return s
}

func (t *tape) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stopped = true
}

// tappedHost is one that is listened to.
type tappedHost struct {
	*simnet.Host
	tape *tape
}

func (h *tappedHost) WriteToAddress(b []byte, a memberlist.Address) (time.Time, error) {
	h.tape.add(a.Addr, false, b)
	return h.Host.WriteToAddress(b, a)
}

func (h *tappedHost) DialAddressTimeout(a memberlist.Address, d time.Duration) (net.Conn, error) {
	c, err := h.Host.DialAddressTimeout(a, d)
	if err != nil {
		return nil, err
	}
	return &tappedConn{Conn: c, tape: h.tape, said: h.tape.add(a.Addr, true, nil)}, nil
}

type tappedConn struct {
	net.Conn
	tape *tape
	said *taped
}

func (c *tappedConn) Write(b []byte) (int, error) {
	c.tape.mu.Lock()
	c.said.b = append(c.said.b, b...)
	c.tape.mu.Unlock()
	return c.Conn.Write(b)
}

// TestReplay sends again, after a member has gone, all that was said to the others in a minute in which it was there
// (S15): packets, a thousand a second, and calls. Then they are the same members as before: 30 s later where it left, and its
// goodbye is not said again; 5 s later where it crashed, whether it is still known to be dead or was forgotten.
func TestReplay(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		key   []byte
		goes  func(*fleet, *Cluster)
		after []time.Duration // since it has gone, or since the last replay; memberlist forgets it in 30 s
		ghost time.Duration   // how long it may be seen again
	}{
		{"left", testKey, (*fleet).leave, []time.Duration{2 * time.Minute}, 30 * time.Second},
		{"crashed", nil, (*fleet).crash, []time.Duration{0, 2 * time.Minute}, 5 * time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, 2, func(f *fleet) {
				heard := &tape{}
				f.listen = func() memberlist.NodeAwareTransport { return &tappedHost{Host: f.net.Listen(), tape: heard} }
				gone := f.serveAs(3, Config{Secrets: keysOf(c.key)})[2]
				time.Sleep(time.Minute)
				heard.stop() // before the word that it leaves
				c.goes(f, gone)
				f.agree(5*time.Second, f.all, names(2))
				for _, after := range c.after {
					time.Sleep(after)
					f.haunt(heard, gone.Addr(), c.ghost)
				}
			})
		})
	}
}

// haunt replays what two members were told, and demands that a while later they are two.
func (f *fleet) haunt(heard *tape, gone string, d time.Duration) {
	f.Helper()
	from := f.net.Listen()
	defer func() { _ = from.Shutdown() }()
	packets, calls := f.replay(from, heard, gone)
	flaps := 0
	for range d / (100 * time.Millisecond) {
		rest(100 * time.Millisecond)
		if len(f.all[0].Members()) != 2 || len(f.all[1].Members()) != 2 {
			flaps++
		}
	}
	for _, c := range f.all {
		if n := len(c.Members()); n != 2 || !slices.Equal(owners(c), names(2)) {
			f.Errorf("seed %d: %s sees %d members and owners %v after a replay", f.seed, c.Self(), n, owners(c))
		}
	}
	if packets < 500 || calls < 3 {
		f.Errorf("seed %d: only %d packets and %d calls", f.seed, packets, calls)
	}
	f.Logf("seed %d: %d packets and %d calls replayed; the ghost was still seen for %d ms", f.seed, packets, calls, 100*flaps)
}

// replay says again what was not said to the one that has gone.
func (f *fleet) replay(from *simnet.Host, t *tape, gone string) (packets, calls int) {
	f.Helper()
	for _, s := range t.sent {
		if s.to == gone {
			continue
		}
		rest(time.Millisecond)
		if !s.call {
			packets++
			if _, err := from.WriteTo(s.b, s.to); err != nil {
				f.Fatal(err)
			}
			continue
		}
		calls++
		c, err := from.DialTimeout(s.to, time.Second)
		if err != nil {
			f.Fatal(err)
		}
		_, _ = c.Write(s.b)
		time.AfterFunc(time.Second, func() { _ = c.Close() })
	}
	return packets, calls
}
