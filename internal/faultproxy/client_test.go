package faultproxy

import (
	"errors"
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"
)

// server answers each chunk that it reads with the same bytes.
type server struct {
	addr string
	got  chan string // what was read, chunk by chunk; full: it waits
	ends chan error  // of its connections
}

// serve starts a server, which ends with the test.
func serve(t *testing.T) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{l.Addr().String(), make(chan string, 1000), make(chan error, 1000)}
	var running sync.WaitGroup
	var open []net.Conn
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				break
			}
			open = append(open, c)
			running.Go(func() { s.echo(c) })
		}
		for _, c := range open {
			c.Close()
		}
	})
	t.Cleanup(func() {
		l.Close()
		running.Wait()
	})
	return s
}

func (s *server) echo(c net.Conn) {
	defer c.Close()
	buf := make([]byte, chunkSize)
	for {
		n, err := c.Read(buf)
		if n > 0 {
			s.got <- string(buf[:n])
			_, err = c.Write(buf[:n])
		}
		if err != nil {
			s.ends <- err
			return
		}
	}
}

// listen starts a proxy to the server, which ends with the test.
func listen(t *testing.T, s *server) *Proxy {
	t.Helper()
	p, err := Listen(s.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// client is a client's connection. Its methods end the test where a step fails.
type client struct {
	*net.TCPConn
	t *testing.T
}

func dial(t *testing.T, p *Proxy) client {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return client{c.(*net.TCPConn), t}
}

func (c client) send(text string) {
	c.t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		c.t.Fatalf("send %q: %v", text, err)
	}
}

func (c client) receive(want string) {
	c.t.Helper()
	got := make([]byte, len(want))
	if _, err := io.ReadFull(c, got); err != nil || string(got) != want {
		c.t.Fatalf("received %q, %v; want %q", got, err, want)
	}
}

// ask sends text and receives its echo.
func (c client) ask(text string) {
	c.t.Helper()
	c.send(text)
	c.receive(text)
}

// rest receives until the connection ends.
func (c client) rest() (string, error) {
	b, err := io.ReadAll(c)
	return string(b), err
}

// silent wants nothing to come for a while, and no end.
func (c client) silent() {
	c.t.Helper()
	c.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if got, err := c.rest(); got != "" || !errors.Is(err, os.ErrDeadlineExceeded) {
		c.t.Errorf("received %q, %v; want nothing", got, err)
	}
	c.SetReadDeadline(time.Time{})
}

// ended wants the connection to end as how says, without another byte.
func (c client) ended(how End) {
	c.t.Helper()
	if how == Hang {
		c.silent()
		return
	}
	got, err := c.rest()
	if got != "" || !endsAs(how, err) {
		c.t.Errorf("received %q, %v; want end %d", got, err, how)
	}
}

// endsAs takes the result of io.ReadAll or of Read.
func endsAs(how End, err error) bool {
	if how == Reset {
		return errors.Is(err, syscall.ECONNRESET)
	}
	return err == nil || errors.Is(err, io.EOF)
}

// await wants the counts to become these.
func await(t *testing.T, p *Proxy, want Counts) {
	t.Helper()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	for p.Counts() != want {
		select {
		case <-again.C:
		case <-t.Context().Done():
			t.Fatal("the test ended")
		}
	}
}

// refused wants a new connection to be reset: some learn of it while they connect.
func refused(t *testing.T, p *Proxy) {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err == nil {
		defer c.Close()
		_, err = c.Read(make([]byte, 1))
	}
	if !errors.Is(err, syscall.ECONNRESET) {
		t.Errorf("a connection that is refused: %v", err)
	}
}

func is(text string) Match { return func(chunk []byte) bool { return string(chunk) == text } }
