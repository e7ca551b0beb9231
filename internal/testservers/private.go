package testservers

import (
	"errors"
	"fmt"
	"testing"
)

// Options are for a private server. The zero ones make it like a shared one.
type Options struct {
	// Args are more arguments of the server's program, such as "-c", "fsync=off" or "--innodb-flush-log-at-trx-commit=2".
	// They come last, and so overrule.
	Args []string
	// Disk puts the data in os.TempDir, for what depends on a disk, such as measurements. Default: in memory where possible.
	Disk bool
}

// Private is a server of one test, which may be ended and started again. The data stays in between.
type Private struct{ *Server }

// StartPostgres starts a PostgreSQL server for this test. It ends with the test, and whatever was in it is gone.
//
// Without an installed PostgreSQL the test is skipped, in CI it fails.
func StartPostgres(t testing.TB, o Options) Private {
	t.Helper()
	return private(t, postgres, o)
}

// StartMariaDB is StartPostgres for MariaDB.
func StartMariaDB(t testing.TB, o Options) Private {
	t.Helper()
	return private(t, mariaDB, o)
}

func private(t testing.TB, e *engine, o Options) Private {
	t.Helper()
	need(t, e)
	from, err := shares[e].data()
	if err != nil {
		t.Fatal(err)
	}
	return keep(t, e, o, from.data())
}

// Copy starts another server for this test, on a copy of the data of p, as a backup that was restored would be. p must
// not run.
func (p Private) Copy(t testing.TB, o Options) Private {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runsLocked() {
		t.Fatalf("testservers: copy %s: it runs; stop or kill it first", p.engine.name)
	}
	c := keep(t, p.engine, o, p.data())
	c.made.Store(p.made.Load()) // the names that are taken in it
	return c
}

func keep(t testing.TB, e *engine, o Options, from string) Private {
	t.Helper()
	s, err := launch(e, o, from)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.discard(); err != nil {
			t.Error(err)
		}
	})
	s.watch(t)
	return Private{s}
}

// Stop shuts the server down in order: transactions under way are rolled back, connections closed. It returns when
// the server has ended. To stop one that does not run does nothing; one that is paused goes on first.
func (p Private) Stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.stopLocked()
}

func (p Private) stopLocked() error {
	if !p.runsLocked() {
		return nil
	}
	if err := p.proc.thaw(); err != nil {
		return p.wrap("stop", err)
	}
	err := p.proc.stop(p.engine.stop)
	p.proc = nil
	return p.wrap("stop", err)
}

// Kill ends the server with all its processes as if at one instant, without a word to its clients, as a crash of the
// program would. What it had written stays, as it would not with the loss of power. To kill one that does not run does
// nothing.
func (p Private) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc != nil {
		p.proc.kill()
		p.proc = nil
	}
}

// Pause stops all processes of the server until Resume: connections stay, and are made, but nothing is answered. The
// server must run.
func (p Private) Pause() error { return p.paused("pause", (*process).freeze) }

// Resume lets a paused server go on. The server must run.
func (p Private) Resume() error { return p.paused("resume", (*process).thaw) }

func (p Private) paused(what string, do func(*process) error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.runsLocked() {
		return p.wrap(what, errors.New("it does not run"))
	}
	return p.wrap(what, do(p.proc))
}

// Restart starts the server again, on the same address and data, and returns when it answers. If it runs it is stopped
// first, as by Stop.
func (p Private) Restart() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.stopLocked(); err != nil {
		return err
	}
	return p.wrap("restart", p.start())
}

func (p Private) wrap(what string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("testservers: %s %s: %w", what, p.engine.name, err)
}
