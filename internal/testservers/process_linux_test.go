package testservers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/belfry-go/belfry/internal/procs"
)

// left is what a test process says of a server before it is killed.
type left struct {
	Dir  string
	Pids []int
}

// orphan starts a server, says so, and waits for its end.
func orphan(engine string) error {
	e := postgres
	if engine == mariaDB.name {
		e = mariaDB
	}
	s, err := launch(e, Options{}, "")
	if err != nil {
		return err
	}
	all, err := s.proc.family()
	if err != nil {
		return err
	}
	said := left{Dir: s.home.path}
	for _, m := range all {
		said.Pids = append(said.Pids, m.pid)
	}
	ctx, parent := procs.Attach(context.Background(), os.Stdin, os.Stdout)
	if err := parent.Report(said); err != nil {
		return err
	}
	<-ctx.Done()
	return s.discard()
}

// TestDeath kills a test process that has a server. The server ends with it, and the next sweep removes what is left.
func TestDeath(t *testing.T) {
	t.Parallel()
	forEach(t, func(t *testing.T, e each) {
		need(t, e.engine)
		c, err := procs.Start(os.Stderr, "orphan", e.name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Kill)
		var l left
		if err := c.Receive(&l); err != nil {
			t.Fatal(err)
		}
		sweep(parents())
		if _, err := os.Stat(l.Dir); err != nil {
			t.Fatalf("swept while it lives: %v", err)
		}
		var ended []<-chan struct{}
		for _, pid := range l.Pids {
			ended = append(ended, watch(t, pid))
		}
		c.Kill()
		for _, end := range ended {
			<-end
		}
		if err := c.Receive(new(left)); err == nil {
			t.Error("a killed process says more")
		}
		isSwept(t, l.Dir)
	})
}

// isSwept demands that a directory is removed by a sweep: by this process's, or by that of tests beside it, who may be at it just now.
func isSwept(t *testing.T, path string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		sweep(parents())
		if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
			return
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			t.Fatalf("%s is not swept", path)
		}
	}
}

// watch returns a channel that is closed when the process, not a child of this one, has ended.
func watch(t *testing.T, pid int) <-chan struct{} {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
	if errors.Is(err, unix.ESRCH) { // servers have children that come and go
		ended := make(chan struct{})
		close(ended)
		return ended
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer unix.Close(fd)
		for {
			n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1)
			if n > 0 || (err != nil && err != unix.EINTR) {
				return
			}
		}
	}()
	return ended
}

// TestFamily: what is done to a server is done to all its processes by the time that the call returns.
func TestFamily(t *testing.T) {
	t.Parallel()
	forEach(t, func(t *testing.T, e each) {
		s := e.start(t, Options{})
		do(t, connect(t, s.Database(t)), "create table words (word varchar(10))")
		before, err := s.proc.family()
		if err != nil {
			t.Fatal(err)
		}
		if least := map[*engine]int{postgres: 5, mariaDB: 1}[e.engine]; len(before) < least {
			t.Fatalf("%d processes, want at least %d", len(before), least)
		}
		for _, m := range before {
			at, err := os.Stat(fmt.Sprintf("/proc/%d", m.pid))
			if err == nil && at.Sys().(*syscall.Stat_t).Uid == 0 {
				t.Errorf("process %d runs as root", m.pid)
			}
		}
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
		paused, err := s.proc.family()
		if err != nil || slices.ContainsFunc(paused, func(m member) bool { return !m.halted() }) {
			t.Errorf("paused: %+v, %v", paused, err)
		}
		s.Kill()
		if slices.ContainsFunc(paused, member.lives) {
			t.Errorf("killed: some of %+v live", paused)
		}
	})
}
