package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// child is a replica in a process of its own.
type child struct {
	name  string
	cmd   *exec.Cmd
	stdin io.Closer
}

// said is a line of a child's, or its end.
type said struct {
	from  *child
	what  string // see replica.go
	text  string
	ended bool
}

// startChild starts this program as a replica that ends with this one, and tells what it says.
func startChild(name string, args []string, tell chan<- said) (*child, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("replica %s: %w", name, err)
	}
	c := &child{name: name, cmd: exec.Command(self, append([]string{"replica", "--until-eof", "--name", name}, args...)...)}
	c.cmd.Stderr = os.Stderr
	stdin, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("replica %s: %w", name, err)
	}
	c.stdin = stdin
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("replica %s: %w", name, err)
	}
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("replica %s: %w", name, err)
	}
	go func() {
		for in := bufio.NewScanner(out); in.Scan(); {
			cells := strings.SplitN(in.Text(), "\t", 3) // the first is its name
			tell <- said{from: c, what: cells[min(1, len(cells)-1)], text: cells[len(cells)-1]}
		}
		end := said{from: c, text: "has ended", ended: true}
		if err := c.cmd.Wait(); err != nil {
			end.text = "has ended: " + err.Error()
		}
		tell <- end
	}()
	return c, nil
}

// leave asks the replica to stop, as SIGTERM or Ctrl-C would; asked again it changes nothing.
func (c *child) leave() { c.stdin.Close() }

// kill is kill -9.
func (c *child) kill() { c.cmd.Process.Kill() }
