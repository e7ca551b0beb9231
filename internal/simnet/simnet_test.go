package simnet

import (
	"errors"
	"io"
	"net"
	"os"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// two makes a network of two hosts.
func two(t *testing.T) (*Net, *Host, *Host) {
	n := New(1)
	a, b := n.Listen(), n.Listen()
	t.Cleanup(func() { _, _ = a.Shutdown(), b.Shutdown() })
	return n, a, b
}

func TestPackets(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, a, b := two(t)
		send := func(s string) {
			t.Helper()
			if _, err := a.WriteTo([]byte(s), b.Addr()); err != nil {
				t.Fatal(err)
			}
		}
		got := func() int {
			time.Sleep(delayMax)
			synctest.Wait()
			k := len(b.packets)
			for range k {
				<-b.packets
			}
			return k
		}
		begun := time.Now()
		send("hello")
		p := <-b.PacketCh()
		if d := time.Since(begun); string(p.Buf) != "hello" || p.From.String() != a.Addr() || d < delayMin || d > delayMax {
			t.Errorf("%q from %s after %s", p.Buf, p.From, d)
		}
		n.Cut(a.Addr(), b.Addr())
		send("cut")
		if _, err := b.WriteTo([]byte("back"), a.Addr()); err != nil || string((<-a.PacketCh()).Buf) != "back" {
			t.Error("the other direction is cut too")
		}
		if k := got(); k != 0 {
			t.Errorf("%d packets through a cut", k)
		}
		n.Heal()
		n.Impair(Impairment{Loss: 0.5})
		for range 1000 {
			send("x")
		}
		if k := got(); k < 400 || k > 600 {
			t.Errorf("%d of 1000 arrive at a loss of one half", k)
		}
		n.Impair(Impairment{})
		for range 2 * packets {
			send("x")
		}
		if k := got(); k != packets {
			t.Errorf("%d of %d arrive at once", k, 2*packets)
		}
		n.Kill(b.Addr())
		send("dead")
		if _, err := b.WriteTo(nil, a.Addr()); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the dead send: %v", err)
		}
	})
}

// TestDialErrors are those of sockets, as memberlist tells a peer's failure from its own by their kind.
func TestDialErrors(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, a, b := two(t)
		dial := func(want error, least, most time.Duration) {
			t.Helper()
			begun := time.Now()
			_, err := a.DialTimeout(b.Addr(), 3*time.Second)
			var op *net.OpError
			if !errors.As(err, &op) || op.Op != "dial" || op.Net != "tcp" || !errors.Is(err, want) {
				t.Errorf("got %v, not %v", err, want)
			}
			if d := time.Since(begun); d < least || d > most {
				t.Errorf("after %s", d)
			}
		}
		n.Cut(b.Addr(), a.Addr())
		dial(os.ErrDeadlineExceeded, 3*time.Second, 3*time.Second)
		time.AfterFunc(time.Second, func() { _ = a.Shutdown() })
		dial(net.ErrClosed, time.Second, time.Second)
		a = n.Listen()
		n.Heal()
		for range streams {
			if _, err := a.DialTimeout(b.Addr(), time.Second); err != nil {
				t.Fatal(err)
			}
		}
		dial(syscall.ECONNREFUSED, 2*delayMin, 2*delayMax)
		n.Kill(b.Addr())
		dial(syscall.ECONNREFUSED, 2*delayMin, 2*delayMax)
		_ = a.Shutdown()
	})
}

func TestStreams(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n, a, b := two(t)
		x, y := dial(t, a, b)
		var sent []byte
		for i := range 100 {
			sent = append(sent, byte(i))
			if _, err := x.Write([]byte{byte(i)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := x.Close(); err != nil {
			t.Fatal(err)
		}
		if all, err := io.ReadAll(y); err != nil || !slices.Equal(all, sent) {
			t.Errorf("%v, %v", all, err)
		}
		for _, c := range []net.Conn{x, y} {
			_ = c.Close()
			if _, err := c.Read(sent); !errors.Is(err, net.ErrClosed) {
				t.Errorf("read after close: %v", err)
			}
			if _, err := c.Write(sent); !errors.Is(err, net.ErrClosed) {
				t.Errorf("write after close: %v", err)
			}
		}

		x, y = dial(t, a, b)
		n.Cut(a.Addr(), b.Addr())
		if _, err := x.Write(sent); err != nil {
			t.Error(err)
		}
		if err := y.SetDeadline(time.Now().Add(time.Second)); err != nil {
			t.Fatal(err)
		}
		if _, err := y.Read(sent); !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("read through a cut: %v", err)
		}

		n.Heal()
		x, y = dial(t, a, b)
		time.AfterFunc(time.Second, func() { n.Kill(b.Addr()) })
		if _, err := x.Read(sent); err != io.EOF {
			t.Errorf("read from the dead: %v", err)
		}
		if _, err := y.Read(sent); !errors.Is(err, net.ErrClosed) {
			t.Errorf("the dead read: %v", err)
		}
	})
}

// dial connects a to b.
func dial(t *testing.T, a, b *Host) (x, y net.Conn) {
	t.Helper()
	x, err := a.DialTimeout(b.Addr(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	return x, <-b.StreamCh()
}
