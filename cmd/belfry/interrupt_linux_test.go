package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
	"github.com/belfry-go/belfry/internal/testservers"
)

// begun is a demo in a process of its own, up to its second night.
type begun struct {
	cmd  *exec.Cmd
	pids []int // of its children
	temp string
	rest <-chan string // what it still says, when it has ended
}

var process = regexp.MustCompile(`process (\d+)`)

// begin starts the demo, with more environment, and returns when its first night is under way.
func begin(t *testing.T, env ...string) *begun {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	b := &begun{cmd: exec.Command(exe, "demo", "--headless", "--customers", "300", "--every", "20s"), temp: t.TempDir()}
	b.cmd.Env = append(append(os.Environ(), "TMPDIR="+b.temp), env...)
	out, err := b.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	b.cmd.Stderr = b.cmd.Stdout
	if err := b.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.cmd.Process.Kill() })
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if m := process.FindStringSubmatch(lines.Text()); m != nil {
			pid, _ := strconv.Atoi(m[1])
			b.pids = append(b.pids, pid)
		}
		if strings.Contains(lines.Text(), " charged: ") {
			break
		}
	}
	rest := make(chan string, 1)
	go func() {
		var said strings.Builder
		for lines.Scan() {
			said.WriteString(lines.Text() + "\n")
		}
		rest <- said.String()
	}()
	b.rest = rest
	if len(b.pids) != 4 {
		t.Fatalf("%d children were named, want a provider and three replicas", len(b.pids))
	}
	return b
}

// TestInterrupt is Ctrl-C in the middle of a night, also with a second signal at once: no process and no file is left.
func TestInterrupt(t *testing.T) {
	t.Parallel()
	for name, signals := range map[string][]syscall.Signal{"once": {syscall.SIGINT}, "twice": {syscall.SIGINT, syscall.SIGTERM}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := begin(t)
			for _, sig := range signals {
				if err := b.cmd.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
			}
			said := <-b.rest
			b.cmd.Wait()
			if code := b.cmd.ProcessState.ExitCode(); code != interrupted || said == "" {
				t.Errorf("ended with status %d, saying %q", code, said)
			}
			for _, pid := range b.pids {
				if err := syscall.Kill(pid, 0); err != syscall.ESRCH {
					t.Errorf("process %d is left (%v)", pid, err)
				}
			}
			left, err := os.ReadDir(b.temp)
			if err != nil || len(left) > 0 {
				t.Errorf("files are left: %v (%v)", left, err)
			}
		})
	}
}

// TestInterruptOnServer is Ctrl-C on somebody's server: nothing of the demo is left there either. While it runs, no process
// of it has the password among its arguments (S12).
func TestInterruptOnServer(t *testing.T) {
	t.Parallel()
	db := testservers.Postgres(t).Database(t)
	b := begin(t, storeurl.Variable+"="+strings.Replace(db.URL(), "@", ":c4nary@", 1))
	for _, pid := range append(b.pids, b.cmd.Process.Pid) {
		args, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
		if err != nil || len(args) == 0 || strings.Contains(string(args), "c4nary") {
			t.Errorf("process %d has the arguments %q (%v)", pid, args, err)
		}
	}
	if err := b.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	said := <-b.rest
	b.cmd.Wait()
	if code := b.cmd.ProcessState.ExitCode(); code != interrupted || strings.Contains(said, "still holds") || strings.Contains(said, "c4nary") {
		t.Errorf("ended with status %d, saying %q", code, said)
	}
	checkEmpty(t, "pgx", db.DSN(), "current_schema()")
}

// TestParentKilled ends the parent by SIGKILL, after which nobody is left to end the children but themselves.
func TestParentKilled(t *testing.T) {
	t.Parallel()
	b := begin(t)
	var fds []unix.PollFd
	for _, pid := range b.pids {
		fd, err := unix.PidfdOpen(pid, 0)
		if err != nil {
			t.Fatal(err)
		}
		defer unix.Close(fd)
		fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
	}
	b.cmd.Process.Kill()
	<-b.rest
	b.cmd.Wait()
	for i := range fds { // readable means ended
		for {
			n, err := unix.Poll(fds[i:i+1], -1)
			if n == 1 {
				break
			}
			if err != nil && err != unix.EINTR {
				t.Fatal(err)
			}
		}
	}
}
