package testservers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

const (
	startTime = 5 * time.Minute          // bounds a start, and the making of a data directory; a busy machine took more than two
	askTime   = 30 * time.Second         // bounds each statement of ours
	askPace   = 25 * time.Millisecond    // between two questions whether a server is ready
	tailBytes = 8 << 10                  // of a log, shown with a failure
	taken     = "Address already in use" // logged by both engines when they do not get their port

	// Ports below the range that Linux gives to outgoing connections: none of these takes the port of a server that is down.
	firstPort, lastPort = 20000, 32767
)

// Server is a running server. Its methods may be called from any goroutine.
type Server struct {
	engine  *engine
	program string
	args    []string // the caller's, behind ours
	home    *dir
	port    int
	shared  bool
	made    atomic.Int64 // databases, for their names

	mu   sync.Mutex
	proc *process // nil: it does not run
}

var sweepOnce sync.Once

// launch starts a server on a new data directory, which is a copy of the one named from, if any is.
func launch(e *engine, o Options, from string) (*Server, error) {
	s, err := create(e, o, from)
	if err != nil {
		return nil, err
	}
	if err := s.begin(); err != nil {
		err = fmt.Errorf("testservers: start %s: %w; its log ends with\n%s", e.name, err, s.tail(0))
		return nil, errors.Join(err, s.discard())
	}
	return s, nil
}

// create returns a server that does not run yet.
func create(e *engine, o Options, from string) (*Server, error) {
	parent, disk := parents()
	sweepOnce.Do(func() { sweep(parent, disk) })
	if o.Disk {
		parent = disk
	}
	home, err := makeDir(parent)
	if err != nil {
		return nil, fmt.Errorf("testservers: directory for %s: %w", e.name, err)
	}
	s := &Server{engine: e, args: o.Args, home: home}
	if err := s.create(from); err != nil {
		err = fmt.Errorf("testservers: data directory for %s: %w\n%s", e.name, err, s.tail(0))
		return nil, errors.Join(err, home.remove())
	}
	return s, nil
}

func (s *Server) create(from string) error {
	program, creator, err := s.engine.programs()
	if err != nil {
		return err
	}
	s.program = program
	if err := give(s.home.path, s.engine.users); err != nil {
		return err
	}
	command := append([]string{creator}, s.engine.create(s.data())...)
	if from != "" {
		command = []string{"cp", "-a", from, s.data()}
	}
	p, err := s.run(command[0], command[1:]...)
	if err != nil {
		return err
	}
	late := time.AfterFunc(startTime, p.kill)
	defer late.Stop()
	<-p.done
	if p.err != nil {
		return fmt.Errorf("%s: %w", command[0], p.err)
	}
	return os.Truncate(s.log(), 0) // of good advice
}

// begin starts a new server on a port of its own, and on another one if somebody was quicker to take that.
func (s *Server) begin() (err error) {
	for range 2 {
		if s.port, err = freePort(); err != nil {
			return err
		}
		if err = s.start(); err == nil || !strings.Contains(s.tail(0), taken) {
			return err
		}
	}
	return err
}

// start starts the server, and returns when it answers.
func (s *Server) start() error {
	p, err := s.run(s.program, slices.Concat(s.engine.serve(s.data(), s.port), s.args)...)
	if err != nil {
		return err
	}
	if err := s.ready(p); err != nil {
		p.kill()
		return err
	}
	s.proc = p
	return nil
}

// run runs a program that writes to the server's log.
func (s *Server) run(program string, args ...string) (*process, error) {
	log, err := os.OpenFile(s.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	return start(s.home.path, log, program, args...)
}

// ready returns when the server answers. That it is this one, and no other that was quicker to take the port, is shown
// by its data directory.
func (s *Server) ready(p *process) error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), startTime, fmt.Errorf("not ready within %v", startTime))
	defer cancel()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	go func() { // not in the loop: whoever has the port instead may leave a question without an answer
		select {
		case <-p.done:
			fail(fmt.Errorf("it ended before it was ready: %v", p.err))
		case <-ctx.Done():
		}
	}()
	again := time.NewTicker(askPace)
	defer again.Stop()
	for {
		data, err := s.askDataDir(ctx)
		if err == nil && filepath.Clean(data) == s.data() {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-again.C:
		}
	}
}

func (s *Server) askDataDir(ctx context.Context) (data string, err error) {
	err = s.administer(ctx, func(ctx context.Context, db *sql.DB) error {
		return db.QueryRowContext(ctx, s.engine.dataDir).Scan(&data)
	})
	return data, err
}

// administer lets the server's administrator do something to it, within askTime.
func (s *Server) administer(ctx context.Context, do func(context.Context, *sql.DB) error) error {
	db, err := s.engine.open(s.engine.dsn(s.Addr(), s.engine.admin))
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	return do(ctx, db)
}

// Addr is the server's host:port, the same for its whole life.
func (s *Server) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.port)) }

func (s *Server) data() string { return filepath.Join(s.home.path, "data") }
func (s *Server) log() string  { return filepath.Join(s.home.path, "log") }

// watch shows what the server logs from here on if the test fails.
func (s *Server) watch(t testing.TB) {
	from := int64(0)
	if at, err := os.Stat(s.log()); err == nil {
		from = at.Size()
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("end of the log of %s:\n%s", s.engine.name, s.tail(from))
		}
	})
}

// tail returns the end of the log, at most of what was written behind an offset.
func (s *Server) tail(from int64) string {
	b, err := os.ReadFile(s.log())
	if err != nil {
		return err.Error()
	}
	b = b[min(from, int64(len(b))):]
	return string(b[max(0, len(b)-tailBytes):])
}

// runsLocked reports whether the server runs. One that ended by itself does not.
func (s *Server) runsLocked() bool {
	if s.proc == nil {
		return false
	}
	select {
	case <-s.proc.done:
		return false
	default:
		return true
	}
}

// discard ends the server and removes what it left.
func (s *Server) discard() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.proc != nil {
		s.proc.kill()
		s.proc = nil
	}
	return s.home.remove()
}

// freePort returns a port that nobody listens on at the moment.
func freePort() (int, error) {
	var failed error
	for range 100 {
		port := firstPort + rand.IntN(lastPort-firstPort+1)
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return port, l.Close()
		}
		failed = err
	}
	return 0, failed
}
