package procs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

// roles are what a copy of the test binary does as a child.
var roles = map[string]func() error{
	"echo":         echo,
	"deaf":         func() error { select {} },
	"fail":         func() error { return errors.New("asked to fail") },
	"parent":       func() error { return parent(nil) },
	"parent under": func() error { return parent([]string{"env", "LANG=C"}) },
	"say":          say,
}

func TestMain(m *testing.M) {
	if role, ok := roles[strings.Join(os.Args[1:], " ")]; ok {
		if err := role(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(3)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// echo says its pid, repeats what it is told, and says goodbye when let go.
func echo() error {
	_, p := Attach(context.Background(), os.Stdin, os.Stdout)
	if err := p.Report(os.Getpid()); err != nil {
		return err
	}
	for {
		var word string
		if err := p.Receive(&word); err != nil {
			return p.Report("released: " + fmt.Sprint(errors.Is(err, ErrReleased)))
		}
		if err := p.Report(word); err != nil {
			return err
		}
	}
}

func say() error {
	_, p := Attach(context.Background(), os.Stdin, os.Stdout)
	return p.Report("last words")
}

// parent starts an echo of its own, prints its pid, and waits to be killed.
func parent(command []string) error {
	c, err := StartUnder(command, nil, "echo")
	if err != nil {
		return err
	}
	var pid int
	if err := c.Receive(&pid); err != nil {
		return err
	}
	if pid != c.Pid() {
		return fmt.Errorf("the child says pid %d, the parent %d", pid, c.Pid())
	}
	fmt.Fprintln(os.Stdout, c.Pid())
	return c.Err()
}

func start(t *testing.T, role string) *Child {
	t.Helper()
	c, err := Start(nil, strings.Fields(role)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Kill)
	t.Cleanup(func() { c.out.Close() })
	return c
}

func receive[T any](t *testing.T, c *Child) T {
	t.Helper()
	var v T
	if err := c.Receive(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func TestTalk(t *testing.T) {
	t.Parallel()
	c := start(t, "echo")
	if pid := receive[int](t, c); pid != c.Pid() {
		t.Errorf("the child says pid %d, the parent %d", pid, c.Pid())
	}
	for _, word := range []string{"a", "two\nlines", strings.Repeat("x", 1<<20)} {
		if err := c.Send(word); err != nil {
			t.Fatal(err)
		}
		if got := receive[string](t, c); got != word {
			t.Errorf("sent %d bytes, got back %d", len(word), len(got))
		}
	}
	if err := c.Stop(time.Minute); err != nil {
		t.Errorf("stop: %v", err)
	}
	if got := receive[string](t, c); got != "released: true" {
		t.Errorf("last word %q", got)
	}
	if err := c.Receive(new(string)); err != io.EOF {
		t.Errorf("after the last word: %v, want io.EOF", err)
	}
}

func TestStopKillsTheDeaf(t *testing.T) {
	t.Parallel()
	c := start(t, "deaf")
	if err := c.Stop(0); err == nil || !strings.Contains(err.Error(), "was killed") {
		t.Errorf("stop: %v", err)
	}
	if c.Err() == nil {
		t.Error("a killed process ended with nil")
	}
}

func TestExitStatus(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "log")
	log, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	c, err := Start(log, "fail")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Receive(new(string)); err != io.EOF {
		t.Errorf("receive: %v, want io.EOF", err)
	}
	if err := c.Err(); err == nil || err.Error() != "exit status 3" {
		t.Errorf("ended with %v", err)
	}
	if said, _ := os.ReadFile(path); string(said) != "asked to fail\n" {
		t.Errorf("logged %q", said)
	}
}

func TestWordsOutliveTheChild(t *testing.T) {
	t.Parallel()
	c := start(t, "say")
	if err := c.Err(); err != nil {
		t.Fatal(err)
	}
	if word := receive[string](t, c); word != "last words" {
		t.Errorf("got %q", word)
	}
	c.Kill() // does nothing to what has ended
}

func TestAttachEndsWithItsContext(t *testing.T) {
	t.Parallel()
	in, w := io.Pipe()
	ctx, cancel := context.WithCancel(context.Background())
	ctx, p := Attach(ctx, in, io.Discard)
	cancel()
	<-ctx.Done()
	if err := p.Receive(new(string)); !errors.Is(err, context.Canceled) {
		t.Errorf("receive: %v", err)
	}
	w.Close()
}

func TestReceiveRefusesNonsense(t *testing.T) {
	t.Parallel()
	_, p := Attach(context.Background(), strings.NewReader(`"text" {`), io.Discard)
	if err := p.Receive(new(int)); err == nil || !strings.Contains(err.Error(), "receive from the parent") {
		t.Errorf("text for a number: %v", err)
	}
	if err := p.Receive(new(int)); !errors.Is(err, ErrReleased) {
		t.Errorf("broken input: %v", err)
	}
}
