package procs

import (
	"bufio"
	"fmt"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReleasedByDeath kills the parent of a child and sees the child end, also where a command stood between them.
func TestReleasedByDeath(t *testing.T) {
	t.Parallel()
	for _, role := range []string{"parent", "parent under"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			orphan(t, role)
		})
	}
}

// orphan starts a parent in that role, and kills it.
func orphan(t *testing.T, role string) {
	c := start(t, role)
	line, err := bufio.NewReader(c.out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscan(line, &pid); err != nil {
		t.Fatal(err)
	}
	ended := watch(t, pid)
	c.Kill()
	<-ended
}

// watch returns a channel that is closed when the process, not a child of this one, has ended.
func watch(t *testing.T, pid int) <-chan struct{} {
	t.Helper()
	fd, err := unix.PidfdOpen(pid, 0)
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
