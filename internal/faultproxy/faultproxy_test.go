package faultproxy

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestThrough: without a fault all bytes go both ways, and so does the end of one way.
func TestThrough(t *testing.T) {
	t.Parallel()
	p := listen(t, serve(t))
	c := dial(t, p)
	all := strings.Repeat("0123456789", 1<<17)
	go func() {
		io.WriteString(c, all)
		c.CloseWrite()
	}()
	if got, err := c.rest(); got != all || err != nil {
		t.Errorf("received %d bytes, %v; sent %d", len(got), err, len(all))
	}
	await(t, p, Counts{Accepted: 1})
}

func TestDelay(t *testing.T) {
	t.Parallel()
	s := serve(t)
	p := listen(t, s)
	c := dial(t, p)
	c.ask("a")
	<-s.got
	for _, w := range []*Way{p.ToServer, p.ToClient} {
		held, release := make(chan bool), make(chan bool)
		w.Delay(func() time.Duration {
			held <- true
			<-release
			return time.Nanosecond
		})
		c.send("b")
		<-held
		if w == p.ToServer && len(s.got) > 0 {
			t.Error("the server has what is held")
		} else if w == p.ToClient {
			<-s.got
			c.silent()
		}
		release <- true
		c.receive("b")
		w.Delay(nil)
		if w == p.ToServer {
			<-s.got
		}
	}
	await(t, p, Counts{Accepted: 1, Delayed: 2})

	slow := make(chan bool)
	p.ToServer.Delay(func() time.Duration { close(slow); return time.Hour })
	c.send("c")
	<-slow
	if err := p.Close(); err != nil {
		t.Error(err)
	}
	c.ended(Close)
	if len(s.got) > 0 {
		t.Errorf("an hour later the server would have got %q", <-s.got)
	}
}

// TestSwallow: the connection is half-open, for ever, and its end is swallowed too.
func TestSwallow(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"server", "client"} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			p := listen(t, s)
			w := map[string]*Way{"server": p.ToServer, "client": p.ToClient}[to]
			c := dial(t, p)
			c.ask("a")
			<-s.got
			w.Swallow(true)
			c.send("b")
			await(t, p, Counts{Accepted: 1, Swallowed: 1})
			w.Swallow(false)
			c.send("c")
			await(t, p, Counts{Accepted: 1, Swallowed: 2})
			c.silent()
			if got := len(s.got); to == "server" && got != 0 || to == "client" && got != 2 {
				t.Errorf("the server got %d chunks", got)
			}
			dial(t, p).ask("d")

			c.Close()
			select {
			case err := <-s.ends:
				if to == "server" {
					t.Errorf("the server learnt of the end: %v", err)
				} else if err != io.EOF {
					t.Errorf("the server's end: %v", err)
				}
			case <-time.After(50 * time.Millisecond):
				if to == "client" {
					<-s.ends // that way is open
				}
			}
		})
	}
}

// TestLose loses the second chunk, and ends the connection in each way.
func TestLose(t *testing.T) {
	t.Parallel()
	for _, end := range []End{Hang, Close, Reset} {
		for _, to := range []string{"server", "client"} {
			t.Run(fmt.Sprint(to, end), func(t *testing.T) {
				t.Parallel()
				s := serve(t)
				p := listen(t, s)
				w := map[string]*Way{"server": p.ToServer, "client": p.ToClient}[to]
				var asked atomic.Int64
				w.Lose(func(chunk []byte) bool { asked.Add(1); return string(chunk) == "bb" }, end)
				c := dial(t, p)
				c.ask("a")
				c.send("bb")
				c.ended(end)
				await(t, p, Counts{Accepted: 1, Lost: 1})
				if end == Hang {
					c.send("bb")
					await(t, p, Counts{Accepted: 1, Lost: 1, Swallowed: 1})
				}
				if n := asked.Load(); n != 2 {
					t.Errorf("asked %d times, want twice: of what is lost anyway nobody is", n)
				}
				<-s.got
				if got := len(s.got); to == "server" && got != 0 || to == "client" && got == 0 {
					t.Errorf("the server got %d chunks more", got)
				}
				if end != Hang {
					if err := <-s.ends; !endsAs(end, err) {
						t.Errorf("the server's end: %v", err)
					}
				}
				w.Lose(nil, Hang)
				dial(t, p).ask("bb")
			})
		}
	}
}

// TestLoseReply: the request gets through in any case.
func TestLoseReply(t *testing.T) {
	t.Parallel()
	for _, end := range []End{Hang, Close, Reset} {
		t.Run(fmt.Sprint(end), func(t *testing.T) {
			t.Parallel()
			s := serve(t)
			p := listen(t, s)
			p.LoseReply(is("bb"), end)
			c := dial(t, p)
			c.ask("a")
			c.send("bb")
			c.ended(end)
			for _, want := range []string{"a", "bb"} {
				if got := <-s.got; got != want {
					t.Errorf("the server got %q, want %q", got, want)
				}
			}
			await(t, p, Counts{Accepted: 1, Replies: 1})
			if end == Hang {
				c.send("c") // that way is open still
				if got := <-s.got; got != "c" {
					t.Errorf("the server got %q", got)
				}
				await(t, p, Counts{Accepted: 1, Replies: 1, Swallowed: 1})
			} else if err := <-s.ends; !endsAs(end, err) {
				t.Errorf("the server's end: %v", err)
			}
			p.LoseReply(nil, Hang)
			dial(t, p).ask("bb")
		})
	}
}

// TestLoseReplyOfNone: a server that ends instead of replying does what was said for its reply.
func TestLoseReplyOfNone(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p := listen(t, &server{addr: l.Addr().String()})
	p.LoseReply(is("a"), Reset)
	c := dial(t, p)
	c.send("a")
	at, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := at.Read(make([]byte, 1)); err != nil {
		t.Error(err)
	}
	at.Close()
	c.ended(Reset)
	await(t, p, Counts{Accepted: 1, Replies: 1})
}

func TestCutAfter(t *testing.T) {
	t.Parallel()
	s := serve(t)
	p := listen(t, s)
	old := dial(t, p)
	old.ask("12345678")
	p.ToClient.CutAfter(5, Close)
	c := dial(t, p)
	c.ask("123")
	c.send("456")
	c.receive("45")
	c.ended(Close)
	old.send("9")
	old.ended(Close)
	exact := dial(t, p)
	exact.ask("12345")
	exact.ended(Close)
	await(t, p, Counts{Accepted: 3, Cut: 3})
	p.ToClient.CutAfter(0, Reset)
	none := dial(t, p)
	none.send("1")
	none.ended(Reset)
	p.ToClient.CutAfter(-1, Hang)
	dial(t, p).ask("123456789")
}

func TestReset(t *testing.T) {
	t.Parallel()
	s := serve(t)
	p := listen(t, s)
	a, b := dial(t, p), dial(t, p)
	a.ask("a")
	b.ask("b")
	p.ToClient.Swallow(true) // does not hold it up
	p.Reset()
	a.ended(Reset)
	b.ended(Reset)
	for range 2 {
		if err := <-s.ends; !endsAs(Reset, err) {
			t.Errorf("the server's end: %v", err)
		}
	}
	await(t, p, Counts{Accepted: 2, Reset: 2})
	p.ToClient.Swallow(false)
	dial(t, p).ask("c")
}

func TestRefuse(t *testing.T) {
	t.Parallel()
	s := serve(t)
	p := listen(t, s)
	live := dial(t, p)
	live.ask("a")
	p.Refuse(true)
	refused(t, p)
	live.ask("b")
	p.Refuse(false)
	dial(t, p).ask("c")
	await(t, p, Counts{Accepted: 3, Refused: 1})
}

func TestTarget(t *testing.T) {
	t.Parallel()
	first, second := serve(t), serve(t)
	p := listen(t, first)
	live := dial(t, p)
	live.ask("a")
	p.Target(second.addr)
	dial(t, p).ask("b")
	live.ask("c")
	if len(first.got) != 2 || len(second.got) != 1 {
		t.Errorf("the first got %d chunks, the second %d", len(first.got), len(second.got))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	p.Target(l.Addr().String())
	refused(t, p)
}

// TestResetOfPeer: a side that breaks its connection breaks the other's.
func TestResetOfPeer(t *testing.T) {
	t.Parallel()
	s := serve(t)
	c := dial(t, listen(t, s))
	c.ask("a")
	abort(c.TCPConn)
	if err := <-s.ends; !endsAs(Reset, err) {
		t.Errorf("the server's end: %v", err)
	}
}

// TestClose ends a connection that is stuck, as its client does not read, and lets a function of the proxy's call it.
func TestClose(t *testing.T) {
	t.Parallel()
	s := serve(t)
	p := listen(t, s)
	p.ToServer.Lose(func([]byte) bool { p.Counts(); p.Refuse(true); p.ToServer.Lose(nil, Hang); return false }, Hang)
	stuck := dial(t, p)
	sent := make(chan error)
	go func() {
		_, err := stuck.Write(make([]byte, 64<<20)) // more than all buffers on the way hold
		sent <- err
	}()
	for range 3 {
		<-s.got
	}
	if err := errors.Join(p.Close(), p.Close()); err != nil {
		t.Error(err)
	}
	if err := <-sent; err == nil {
		t.Error("64 MiB that nobody read were sent")
	}
	if c, err := net.Dial("tcp", p.Addr()); err == nil {
		c.Close()
		t.Error("a closed proxy accepts connections")
	}
	if want := (Counts{Accepted: 1}); p.Counts() != want {
		t.Errorf("counts %+v, want %+v", p.Counts(), want)
	}
}

// TestSwitching has clients switch faults on and off while the connections of others live. Whatever happens, what a
// client receives is the beginning of what it sent.
func TestSwitching(t *testing.T) {
	t.Parallel()
	p := listen(t, serve(t))
	var clients sync.WaitGroup
	for first := range 4 {
		clients.Go(func() {
			for i := range 56 {
				fault(p, first+i, true)
				talk(t, p)
				fault(p, first+i, false)
			}
		})
	}
	clients.Wait()
	c := p.Counts()
	for talk(t, p) == 0 { // all faults are off: soon something comes through, which while they were on was luck
	}
	if c.Refused == 0 || c.Delayed == 0 || c.Swallowed == 0 || c.Lost == 0 || c.Replies == 0 || c.Cut == 0 || c.Reset == 0 {
		t.Errorf("%+v; want some of each", c)
	}
}

// fault switches the n-th of seven faults on, in a direction drawn, or off in both.
func fault(p *Proxy, n int, on bool) {
	ways := []*Way{p.ToServer, p.ToClient}
	var match Match
	var delay func() time.Duration
	cut, end := int64(-1), Hang
	if on {
		at := rand.IntN(256)
		ways = ways[at%2:][:1]
		match = func(chunk []byte) bool { return int(chunk[0]) <= at }
		delay = func() time.Duration { return time.Duration(at) * time.Microsecond }
		cut, end = rand.Int64N(1<<16), End(rand.IntN(3))
	}
	for _, w := range ways {
		switch n % 7 {
		case 0:
			w.Swallow(on)
		case 1:
			w.Lose(match, end)
		case 2:
			w.CutAfter(cut, end)
		case 3:
			w.Delay(delay)
		case 4:
			p.LoseReply(match, end)
		case 5:
			p.Refuse(on)
		case 6:
			p.Reset()
		}
	}
}

// talk sends numbers until the connection fails or is silent, and returns how many bytes came back.
func talk(t *testing.T, p *Proxy) int64 {
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		return 0
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(20 * time.Millisecond))
	sent := make([]byte, 1<<16)
	for i := range sent {
		sent[i] = byte(i / 251)
	}
	go c.Write(sent)
	got, _ := io.ReadAll(c)
	if !bytes.HasPrefix(sent, got) {
		t.Errorf("received %d bytes that are no beginning of what was sent", len(got))
	}
	return int64(len(got))
}

func TestMatch(t *testing.T) {
	t.Parallel()
	for _, m := range []struct {
		match Match
		chunk string
		want  bool
	}{
		{PostgresCommitted, "C\x00\x00\x00\x0bCOMMIT\x00Z\x00\x00\x00\x05I", true},
		{PostgresCommitted, "2\x00\x00\x00\x04n\x00\x00\x00\x04C\x00\x00\x00\x0bCOMMIT\x00Z\x00\x00\x00\x05I", true},
		{PostgresCommitted, "C\x00\x00\x00\x0dROLLBACK\x00Z\x00\x00\x00\x05I", false},
		{PostgresCommitted, "Q\x00\x00\x00\x0bcommit\x00", false},
		{MySQLCommit, "\x07\x00\x00\x00\x03COMMIT", true},
		{MySQLCommit, "\x07\x00\x00\x00\x03commit", true},
		{MySQLCommit, "\x09\x00\x00\x00\x03ROLLBACK", false},
		{MySQLCommit, "\x03CO", false},
		{MySQLCommit, "\x10\x00\x00\x00\x03select 'COMMIT'", false},
	} {
		if got := m.match([]byte(m.chunk)); got != m.want {
			t.Errorf("%q: %v", m.chunk, got)
		}
	}
}
