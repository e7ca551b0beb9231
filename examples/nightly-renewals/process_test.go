package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"testing"
)

// process is a program that runs beside the test.
type process struct {
	t     *testing.T
	ctx   context.Context
	name  string
	cmd   *exec.Cmd
	lines chan string   // what it writes, until ignore; closed at its end
	deaf  chan struct{} // closed by ignore
	ended chan struct{} // closed when it has ended, after err is set
	err   error
	stop  sync.Once
}

// start starts one of the two programs; the end of the test ends it. What it writes is read to the end, whoever listens.
func (s *stage) start(name, program string, args ...string) *process {
	s.t.Helper()
	cmd := s.command(program, args...)
	r, w, err := os.Pipe()
	if err != nil {
		s.t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	err = cmd.Start()
	w.Close() // the child has its own
	if err != nil {
		r.Close()
		s.t.Fatalf("start %s: %v", name, err)
	}
	p := &process{
		t: s.t, ctx: s.ctx, name: name, cmd: cmd,
		lines: make(chan string), deaf: make(chan struct{}), ended: make(chan struct{}),
	}
	go p.read(r)
	s.t.Cleanup(func() {
		p.ignore()
		p.cmd.Process.Kill() // fails where it has ended, which is as well
		<-p.ended
	})
	return p
}

func (p *process) read(r io.ReadCloser) {
	for in := bufio.NewScanner(r); in.Scan(); {
		select {
		case p.lines <- in.Text():
		case <-p.deaf:
			if p.name != "provider" { // a line for each charge is too much
				p.t.Logf("%s: %s", p.name, in.Text())
			}
		}
	}
	r.Close()
	close(p.lines)
	p.err = p.cmd.Wait()
	close(p.ended)
}

// ignore turns lines off: from now on a replica's go to the test's log.
func (p *process) ignore() { p.stop.Do(func() { close(p.deaf) }) }

// find returns what the pattern finds in the first line that has it.
func (p *process) find(pattern string) []string {
	p.t.Helper()
	for re := regexp.MustCompile(pattern); ; {
		select {
		case line, ok := <-p.lines:
			if !ok {
				p.t.Fatalf("%s has ended without a line like %s", p.name, pattern)
			}
			p.t.Logf("%s: %s", p.name, line)
			if m := re.FindStringSubmatch(line); m != nil {
				return m
			}
		case <-p.ctx.Done():
			p.t.Fatalf("%s writes no line like %s: %v", p.name, pattern, p.ctx.Err())
		}
	}
}

// end sends the signal and waits for the process to go.
func (p *process) end(s os.Signal) error {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatalf("signal %s: %v", p.name, err)
	}
	select {
	case <-p.ended:
		return p.err
	case <-p.ctx.Done():
		p.t.Fatalf("%s does not end after %v", p.name, s)
		return nil
	}
}
