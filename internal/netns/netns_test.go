package netns

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/internal/procs"
)

// talker is the first argument of a copy of the test binary that talks on a host of its own.
const talker = "netns-talker"

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == talker {
		if err := talk(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// say is an order to send a packet.
type say struct{ To, Text string }

// talk reports the text of each packet that it gets, an empty one when it listens.
func talk(at string) error {
	ctx, parent := procs.Attach(context.Background(), os.Stdin, os.Stdout)
	c, err := net.ListenPacket("udp", at)
	if err != nil {
		return err
	}
	context.AfterFunc(ctx, func() { c.Close() })
	go func() {
		var s say
		for parent.Receive(&s) == nil {
			to := net.UDPAddrFromAddrPort(netip.MustParseAddrPort(s.To))
			_, _ = c.WriteTo([]byte(s.Text), to) // where a link is down it may fail, and the packet is lost either way
		}
	}()
	b := make([]byte, 100)
	for n := 0; err == nil; n, _, err = c.ReadFrom(b) {
		if err := parent.Report(string(b[:n])); err != nil {
			return err
		}
	}
	return nil // the parent let go
}

// peer is a talker.
type peer struct {
	*testing.T
	*Host
	child *procs.Child
	heard chan string // closed when it has ended
}

// within bounds a test: it is for what hangs, not for what is slow.
const within = time.Minute

func newPeer(t *testing.T, h *Host) *peer {
	t.Helper()
	p := &peer{T: t, Host: h, heard: make(chan string, 1000)}
	var err error
	if p.child, err = procs.StartUnder(h.Exec(), os.Stderr, talker, p.at()); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.heard)
		for text := ""; p.child.Receive(&text) == nil; {
			p.heard <- text
		}
	}()
	t.Cleanup(func() {
		p.child.Kill()
		for range p.heard {
		}
	})
	if got := p.hear(); got != "" {
		t.Fatalf("heard %q before it listened", got)
	}
	return p
}

func (p *peer) at() string { return netip.AddrPortFrom(p.Addr(), 7000).String() }

func (p *peer) send(to *peer, text string) {
	p.Helper()
	if err := p.child.Send(say{to.at(), text}); err != nil {
		p.Fatal(err)
	}
}

func (p *peer) hear() string {
	p.Helper()
	late := time.NewTimer(within)
	defer late.Stop()
	select {
	case text, more := <-p.heard:
		if !more {
			p.Fatalf("%s has ended: %v", p.space, p.child.Err())
		}
		return text
	case <-late.C:
		p.Fatalf("%s hears nothing", p.space)
	}
	return ""
}

// expect demands that the next that a peer hears is this.
func (p *peer) expect(text string) {
	p.Helper()
	if got := p.hear(); got != text {
		p.Errorf("%s heard %q, want %q", p.space, got, text)
	}
}

// TestCut cuts one direction, then both. What is sent meanwhile never comes; the next packet after the heal does, and
// packets on one way keep their order.
func TestCut(t *testing.T) {
	t.Parallel()
	n := New(t)
	a, b, c := newPeer(t, n.Host()), newPeer(t, n.Host()), newPeer(t, n.Host())
	a.send(b, "hello")
	b.expect("hello")

	n.Cut(Way{a.Host, b.Host})
	a.send(b, "lost")
	b.send(a, "the other direction")
	a.expect("the other direction")
	a.send(c, "another host")
	c.expect("another host")

	n.Cut(Way{b.Host, a.Host})
	b.send(a, "lost too")
	b.send(c, "all of it")
	c.expect("all of it")

	n.Heal()
	a.send(b, "healed")
	b.expect("healed")
	b.send(a, "healed")
	a.expect("healed")
}

// TestLose loses some packets, not all, and none any more once that is over.
func TestLose(t *testing.T) {
	t.Parallel()
	n := New(t)
	a, b := newPeer(t, n.Host()), newPeer(t, n.Host())
	n.Lose(40)
	const sent = 200
	for range sent {
		a.send(b, "perhaps")
	}
	a.send(a, "all sent") // so that none of them is on its way yet
	a.expect("all sent")
	n.Lose(0)
	a.send(b, "end")
	came := 0
	for b.hear() == "perhaps" {
		came++
	}
	t.Logf("%d of %d came", came, sent)
	if came == 0 || came == sent {
		t.Errorf("%d of %d packets came, at a loss of 40 %%", came, sent)
	}
}

// TestListen: a listener of this process is reached from another host, and it leaves its thread where it was.
func TestListen(t *testing.T) {
	t.Parallel()
	n := New(t)
	server, client := n.Host(), n.Host()
	before, err := os.Readlink("/proc/thread-self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	l, err := server.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if after, err := os.Readlink("/proc/thread-self/ns/net"); err != nil || after != before {
		t.Errorf("in the namespace %s (%v) after it, in %s before", after, err, before)
	}
	if at := netip.MustParseAddrPort(l.Addr().String()); at.Addr() != server.Addr() {
		t.Errorf("listens at %v, want a port of %v", at, server.Addr())
	}
	call := append(client.Exec(), "bash", "-c", fmt.Sprintf("cat </dev/tcp/%s/%d", server.Addr(), l.Addr().(*net.TCPAddr).Port))
	visit := exec.Command(call[0], call[1:]...)
	out, err := visit.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := visit.Start(); err != nil {
		t.Fatal(err)
	}
	if err := l.(*net.TCPListener).SetDeadline(time.Now().Add(within)); err != nil {
		t.Fatal(err)
	}
	c, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	if from := c.RemoteAddr().(*net.TCPAddr).AddrPort().Addr(); from != client.Addr() {
		t.Errorf("called from %v, want %v", from, client.Addr())
	}
	fmt.Fprint(c, "hello")
	c.Close()
	if got, err := io.ReadAll(out); string(got) != "hello" || err != nil {
		t.Errorf("the client read %q, %v", got, err)
	}
	if err := visit.Wait(); err != nil {
		t.Error(err)
	}
}

// TestUnplug takes a link down and up again.
func TestUnplug(t *testing.T) {
	t.Parallel()
	n := New(t)
	a, b, c := newPeer(t, n.Host()), newPeer(t, n.Host()), newPeer(t, n.Host())
	a.Unplug()
	b.send(a, "lost")
	a.send(c, "lost")
	b.send(c, "the others")
	c.expect("the others")

	a.Plug()
	tick := time.NewTicker(20 * time.Millisecond) // the kernel takes a moment to use the link again
	defer tick.Stop()
	for got := ""; got == ""; {
		b.send(a, "again")
		select {
		case got = <-a.heard:
		case <-tick.C:
			continue
		}
		if got != "again" {
			t.Errorf("heard %q, want again", got)
		}
	}
}

// TestNothingStays lets a test end, and finds none of its namespaces; those of a process that died are swept, and those
// of others are not.
func TestNothingStays(t *testing.T) {
	t.Parallel()
	other := New(t)
	other.Host()
	var name string
	t.Run("inner", func(t *testing.T) {
		n := New(t)
		n.Host()
		name = n.name
		if got := spaces(t, name+"-"); len(got) != 2 {
			t.Errorf("a router and a host: %q", got)
		}
	})
	if got := spaces(t, name+"-"); len(got) > 0 {
		t.Errorf("left behind: %q", got)
	}

	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	stale := fmt.Sprintf("%s%d-1", prefix, dead.ProcessState.Pid())
	for _, space := range []string{stale + "-router", stale + "-0"} {
		if err := ip("", "netns add "+space); err != nil {
			t.Fatal(err)
		}
	}
	if err := sweep(); err != nil {
		t.Fatal(err)
	}
	if got := spaces(t, stale+"-"); len(got) > 0 {
		t.Errorf("a dead process's are still there: %q", got)
	}
	if got := spaces(t, other.name+"-"); len(got) != 2 {
		t.Errorf("a live process's are %q, want a router and a host", got)
	}
}

// TestSkips: a machine without the ip command, and one where it may do nothing, skip, and do not fail.
func TestSkips(t *testing.T) {
	New(t) // or the machine is one of these
	for name, script := range map[string]string{"no command": "", "not allowed": "#!/bin/sh\nexit 1\n"} {
		skipped := false
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if script != "" {
				if err := os.WriteFile(filepath.Join(dir, "ip"), []byte(script), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("PATH", dir)
			defer func() { skipped = t.Skipped() }()
			New(t)
		})
		if !skipped {
			t.Errorf("%s: not skipped", name)
		}
	}
}

func spaces(t *testing.T, start string) []string {
	t.Helper()
	list, err := list(func(space string) bool { return strings.HasPrefix(space, start) })
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// TestErrorsSayWhat: a failure names the command, its input and what it said.
func TestErrorsSayWhat(t *testing.T) {
	t.Parallel()
	New(t) // or there is no ip command
	err := ip("", "netns del belfry-none")
	if err == nil || !strings.Contains(err.Error(), "netns: ip -batch -: exit status") || !strings.Contains(err.Error(), "netns del belfry-none") {
		t.Errorf("got %v", err)
	}
}
