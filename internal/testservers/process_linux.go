package testservers

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	patience = 10 * time.Second // for processes to stop, or to be gone, that have been told to
	pace     = 2 * time.Millisecond
)

// process is a running program with the children that it forks.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed once it has been waited for; err is set before
	err  error
}

// unsupported says why this system is none for throwaway servers: nothing.
func unsupported() error { return nil }

// start runs a program in dir, as the owner of dir, until it ends or this process does.
func start(dir string, log *os.File, program string, args ...string) (*process, error) {
	cmd := exec.Command(program, args...)
	cmd.Dir = dir
	// No settings of whoever tests; and a folder of its own for what is temporary: a starting MariaDB removes what others
	// of its kind have there.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "LC_ALL=C", "TMPDIR=" + dir}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Pdeathsig: syscall.SIGKILL,
		Setpgid:   true, // a terminal's Ctrl-C reaches the tests alone
	}
	if os.Geteuid() == 0 {
		at, err := os.Stat(dir)
		if err != nil {
			return nil, err
		}
		owner := at.Sys().(*syscall.Stat_t)
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: owner.Uid, Gid: owner.Gid}
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	started := make(chan error)
	go p.live(started)
	return p, <-started
}

// live keeps one thread for the life of the process: Linux takes the end of the thread that started it for the end of
// its parent.
func (p *process) live(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(p.done)
	err := p.cmd.Start()
	started <- err
	if err == nil {
		p.err = p.cmd.Wait()
	}
}

// stop asks the process to end by a signal, and returns what it ended with: nil for status 0.
func (p *process) stop(by syscall.Signal) error {
	if err := p.cmd.Process.Signal(by); err != nil {
		return err
	}
	late := time.NewTimer(2 * patience)
	defer late.Stop()
	select {
	case <-p.done:
		return p.err
	case <-late.C:
		p.kill()
		return fmt.Errorf("process %d did not end by %v and was killed", p.cmd.Process.Pid, by)
	}
}

// freeze stops all processes of the family, and returns when none of them runs.
func (p *process) freeze() error {
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(pace) {
		running := false
		all, err := p.family()
		if err != nil {
			return err
		}
		for _, m := range all {
			if !m.halted() {
				running = true
				_ = syscall.Kill(m.pid, syscall.SIGSTOP) // errs only if it has ended
			}
		}
		if !running {
			return nil
		}
	}
	return fmt.Errorf("process %d: not all of its children stopped within %v", p.cmd.Process.Pid, patience)
}

// thaw lets all processes of the family go on, the children first: the parent may look for them.
func (p *process) thaw() error {
	all, err := p.family()
	for _, m := range slices.Backward(all) {
		_ = syscall.Kill(m.pid, syscall.SIGCONT) // errs only if it has ended
	}
	return err
}

// kill ends all processes of the family as if at one instant, and returns when they are gone.
func (p *process) kill() {
	_ = p.freeze() // where it fails the children are killed one after the other
	all, _ := p.family()
	for _, m := range all {
		_ = syscall.Kill(m.pid, syscall.SIGKILL) // errs only if it has ended
	}
	_ = p.cmd.Process.Kill() // as above
	<-p.done
	for end := time.Now().Add(patience); time.Now().Before(end) && slices.ContainsFunc(all, member.lives); time.Sleep(pace) {
	}
}

// member is one process of a family, as it was when looked at.
type member struct {
	pid, parent int
	state       byte   // a letter as ps shows it
	began       string // with pid, names a process for ever
}

func (m member) halted() bool { return strings.IndexByte("TtZX", m.state) >= 0 }

// lives reports whether the process still runs. One that only waits for its parent to take note of its end does not.
func (m member) lives() bool {
	now, err := look(m.pid)
	return err == nil && now.began == m.began && now.state != 'Z' && now.state != 'X'
}

// family returns the process and all that descend from it, each behind its parent.
func (p *process) family() ([]member, error) {
	select {
	case <-p.done:
		return nil, fmt.Errorf("process %d has ended", p.cmd.Process.Pid)
	default:
	}
	paths, _ := filepath.Glob("/proc/[0-9]*") // errs only for a bad pattern
	children := make(map[int][]member)
	var all []member
	for _, path := range paths {
		pid, _ := strconv.Atoi(filepath.Base(path))
		m, err := look(pid)
		if err != nil {
			continue // ended meanwhile
		}
		children[m.parent] = append(children[m.parent], m)
		if pid == p.cmd.Process.Pid {
			all = append(all, m)
		}
	}
	for i := 0; i < len(all); i++ { // it grows meanwhile
		all = append(all, children[all[i].pid]...)
	}
	return all, nil
}

// look reads /proc/PID/stat: the pid, the name in parentheses, then fields counted from 3; 22 is the start time.
func look(pid int) (member, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return member{}, err
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	if len(f) < 20 {
		return member{}, fmt.Errorf("/proc/%d/stat: %q", pid, b)
	}
	parent, err := strconv.Atoi(f[1])
	return member{pid: pid, parent: parent, state: f[0][0], began: f[19]}, err
}

// give makes a directory the property of the first of users that exists, if this process may.
func give(dir string, users []string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range users {
		u, err := user.Lookup(name)
		if _, unknown := errors.AsType[user.UnknownUserError](err); unknown {
			continue
		} else if err != nil {
			return err
		}
		uid, errUID := strconv.Atoi(u.Uid)
		gid, errGID := strconv.Atoi(u.Gid)
		return errors.Join(errUID, errGID, os.Chown(dir, uid, gid))
	}
	return fmt.Errorf("none of the users %v exists; a server does not run as root", users)
}
