package membership

import (
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/internal/simnet"
)

// TestIdleConnections opens more than the gate reads at once: the oldest are closed, and a peer still gets in at once.
func TestIdleConnections(t *testing.T) {
	t.Parallel()
	inGate(t, false, func(t *testing.T, g *gate, h, from *simnet.Host) {
		for range 200 {
			if _, err := from.DialTimeout(h.Addr(), time.Second); err != nil {
				t.Fatal(err)
			}
		}
		c, err := from.DialTimeout(h.Addr(), time.Second)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Write(stream("test", nil, pushPull(wirePushPull{}, nil))); err != nil {
			t.Fatal(err)
		}
		begun := time.Now()
		s := <-g.StreamCh()
		if d := time.Since(begun); d > time.Second {
			t.Errorf("a peer got in after %v", d)
		}
		_ = s.Close()
		if n := g.counted(RefusedCrowded); n != 200+1-inboundMost {
			t.Errorf("%d closed for others", n)
		}
		time.Sleep(2 * patience)
		if n := g.counted(RefusedSlow); n != inboundMost-1 {
			t.Errorf("%d closed since they said nothing", n)
		}
		_ = from.Shutdown()
	})
}

// TestVisitBytes has more read at once than the gate will hold.
func TestVisitBytes(t *testing.T) {
	t.Parallel()
	inGate(t, false, func(t *testing.T, g *gate, h, from *simnet.Host) {
		most := 0
		for range 60 {
			c, err := from.DialTimeout(h.Addr(), time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write(stream("test", nil, pushPull(wirePushPull{Nodes: maxStates}, nil, bigStates(900<<10)...))); err != nil {
				t.Fatal(err)
			}
			time.Sleep(10 * time.Millisecond)
			synctest.Wait()
			most = max(most, g.inbound.bytes)
		}
		if n := g.counted(RefusedCrowded); most > visitBytes || most < visitBytes/2 || n != 60-visitBytes/maxMessage {
			t.Errorf("%d bytes held, %d closed for others", most, n)
		}
		_ = from.Shutdown()
	})
}

// bigStates are members of so many bytes in all.
func bigStates(size int) []wireState {
	s := state("a@1")
	s.Meta = make([]byte, 512)
	all := make([]wireState, size/len(encode(0, s)))
	for i := range all {
		all[i] = s
	}
	return all
}

// TestTurnstile lets only so much into memberlist at once; the rest waits, and comes in as others leave.
func TestTurnstile(t *testing.T) {
	t.Parallel()
	inGate(t, false, func(t *testing.T, g *gate, h, from *simnet.Host) {
		states := bigStates(900 << 10)
		message := stream("test", nil, pushPull(wirePushPull{Nodes: len(states)}, nil, states...))
		for range 20 {
			c, err := from.DialTimeout(h.Addr(), time.Second)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := c.Write(message); err != nil {
				t.Fatal(err)
			}
		}
		var in []net.Conn
		pull := func() int {
			for {
				time.Sleep(time.Second)
				select {
				case s := <-g.StreamCh():
					in = append(in, s)
				default:
					return len(in)
				}
			}
		}
		want := guestBytes / guestUnit / (1 + (len(message)-1)/guestUnit)
		if n := pull(); n != want || want > 10 {
			t.Errorf("%d messages of %d bytes in memberlist at once; want %d", n, len(message), want)
		}
		for _, s := range in {
			_ = s.Close()
			_ = s.Close() // gives its place back once
		}
		in = nil
		if n := pull(); n != want {
			t.Errorf("%d came in when %d had left", n, want)
		}
		for pull() > 0 {
			for _, s := range in {
				_ = s.Close()
			}
			in = nil
		}
		if n := len(g.turnstile.place); n != 0 || g.counted(RefusedCrowded) != 0 {
			t.Errorf("%d places are taken at the end, %d were refused", n, g.counted(RefusedCrowded))
		}
		_ = from.Shutdown()
	})
}

// TestTurnstileEvicted gives the places back of one that was closed just when its turn had come.
func TestTurnstileEvicted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := gateOn(t, simnet.New(1).Listen(), Config{})
		for range 100 {
			v := &visitor{conn: &bitConn{}, out: make(chan struct{})}
			close(v.out)
			g.hand(v, make([]byte, guestUnit+1))
		}
		if n := len(g.turnstile.place); n != 0 || len(g.turnstile.turn) != 0 {
			t.Errorf("%d places are taken by nobody", n)
		}
	})
}
