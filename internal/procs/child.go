package procs

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"time"
)

// Child is a running copy of this program, seen by its parent. Send, Kill and Stop may be called from any goroutine,
// Receive from one at a time.
type Child struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *os.File
	docs *json.Decoder
	done chan struct{} // closed once the process has been waited for; err is set before
	err  error
}

// Start starts this program's executable with args. log takes its standard error and stays the caller's to close; nil
// discards it. The child is the caller's to end, by Stop, and Receive is to be called until it fails: a child whose
// words nobody reads blocks when the pipe is full.
func Start(log *os.File, args ...string) (*Child, error) { return StartUnder(nil, log, args...) }

// StartUnder is Start by way of a command, given as its name and first arguments, that ends in executing what follows
// them in its own place, such as env, nice or ip netns exec. Nil is no command.
func StartUnder(command []string, log *os.File, args ...string) (*Child, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("procs: own executable: %w", err)
	}
	return StartProgram(exe, command, log, args...)
}

// StartProgram is StartUnder of another program, which talks as this one's children do: an older build of it.
func StartProgram(program string, command []string, log *os.File, args ...string) (*Child, error) {
	args = slices.Concat(command, []string{program}, args)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = bound()
	if log != nil {
		cmd.Stderr = log
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("procs: start %q: %w", args, err)
	}
	// Not StdoutPipe: Wait would close it under the reader, and lose what a killed child had said.
	out, w, err := os.Pipe()
	if err != nil {
		in.Close()
		return nil, fmt.Errorf("procs: start %q: %w", args, err)
	}
	cmd.Stdout = w
	c := &Child{cmd: cmd, in: in, out: out, docs: json.NewDecoder(out), done: make(chan struct{})}
	started := make(chan error)
	go c.live(started)
	err = <-started
	w.Close()
	if err != nil {
		out.Close()
		return nil, fmt.Errorf("procs: start %q: %w", args, err)
	}
	return c, nil
}

// live keeps one thread for the child's life: Linux takes the end of the thread that started it for the end of the
// parent.
func (c *Child) live(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	defer close(c.done)
	err := c.cmd.Start()
	started <- err
	if err == nil {
		c.err = c.cmd.Wait()
	}
}

// Pid is the child's process id.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Send writes one document to the child. It blocks while the child has not read what came before.
func (c *Child) Send(v any) error {
	if err := json.NewEncoder(c.in).Encode(v); err != nil {
		return fmt.Errorf("procs: send to process %d: %w", c.Pid(), err)
	}
	return nil
}

// Receive waits for the child's next document and reads it into v. After the last one it returns io.EOF, and closes
// its end of the pipe with any error.
func (c *Child) Receive(v any) error {
	err := c.docs.Decode(v)
	if err == nil {
		return nil
	}
	c.out.Close()
	if err == io.EOF {
		return io.EOF
	}
	return fmt.Errorf("procs: receive from process %d: %w", c.Pid(), err)
}

// Kill ends the child at once, by SIGKILL where there are signals, and returns when it is gone. Killing what has
// ended does nothing.
func (c *Child) Kill() {
	c.cmd.Process.Kill() // its only error is that the process has ended
	<-c.done
}

// Interrupt sends the child an interrupt, as Ctrl-C does. Where there are no signals, and to what has ended, it does nothing.
func (c *Child) Interrupt() { _ = c.cmd.Process.Signal(os.Interrupt) }

// Stop lets go of the child, waits for it to end by itself, and kills it when it has not within grace. It returns
// what the process ended with: nil for status 0.
func (c *Child) Stop(grace time.Duration) error {
	c.in.Close()
	late := time.NewTimer(grace)
	defer late.Stop()
	select {
	case <-c.done:
	case <-late.C:
		c.Kill()
		return fmt.Errorf("procs: process %d did not end within %v and was killed", c.Pid(), grace)
	}
	return c.err
}

// Done is closed when the process has ended.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err is what the process ended with, nil for status 0. It waits for the end.
func (c *Child) Err() error {
	<-c.done
	return c.err
}
