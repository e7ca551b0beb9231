package testservers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "orphan" {
		if err := orphan(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(Main(m))
}

// each is an engine with the functions that give its servers.
type each struct {
	*engine
	shared func(testing.TB) *Server
	start  func(testing.TB, Options) Private
}

func forEach(t *testing.T, test func(*testing.T, each)) {
	for _, e := range []each{{postgres, Postgres, StartPostgres}, {mariaDB, MariaDB, StartMariaDB}} {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			test(t, e)
		})
	}
}

// connect opens a database until the end of the test.
func connect(t *testing.T, d Database) *sql.DB {
	t.Helper()
	db, err := d.engine.open(d.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func do(t *testing.T, db *sql.DB, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := db.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

func ask(t *testing.T, db *sql.DB, query string) (answer string) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), query).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return answer
}

// verdict is a test that is told how to end. What is asked of it and not said here ends the real one with a panic.
type verdict struct {
	testing.TB
	said   string
	failed bool
	last   []func()
}

func (v *verdict) Helper()                   {}
func (v *verdict) Failed() bool              { return v.failed }
func (v *verdict) Cleanup(f func())          { v.last = append(v.last, f) }
func (v *verdict) Logf(f string, a ...any)   { v.said += fmt.Sprintf(f, a...) }
func (v *verdict) Skipf(f string, a ...any)  { v.end("skip: " + fmt.Sprintf(f, a...)) }
func (v *verdict) Fatalf(f string, a ...any) { v.end("fail: " + fmt.Sprintf(f, a...)) }
func (v *verdict) Fatal(a ...any)            { v.end("fail: " + fmt.Sprint(a...)) }
func (v *verdict) end(said string)           { v.said = said; runtime.Goexit() }

// of returns what a test said when it ended, if it did so.
func of(test func(testing.TB)) string {
	var v verdict
	done := make(chan struct{})
	go func() {
		defer close(done)
		test(&v)
	}()
	<-done
	return v.said
}

func TestMissing(t *testing.T) {
	none := *postgres
	none.server, none.install = "no-such-server", "apt-get install it"
	for ci, want := range map[string]string{
		"":     "skip: skipped: PostgreSQL is not installed: no program no-such-server; to install it: apt-get install it",
		"true": "fail: testservers: PostgreSQL is not installed: no program no-such-server; in CI it has to be (apt-get install it)",
	} {
		t.Setenv("CI", ci)
		if said := of(func(t testing.TB) { need(t, &none) }); said != want {
			t.Errorf("CI=%q: %s\nwant %s", ci, said, want)
		}
	}
}

func TestSharedNeedsMain(t *testing.T) {
	need(t, postgres)
	defer atEnd.promise(atEnd.promise(false))
	if said := of(func(t testing.TB) { Postgres(t) }); !strings.Contains(said, "testservers.Main(m)") {
		t.Errorf("without Main: %q", said)
	}
}

func TestDatabase(t *testing.T) {
	t.Parallel()
	forEach(t, func(t *testing.T, e each) {
		s := e.shared(t)
		var first Database
		var open *sql.Tx // when the first test ends
		whole := t
		t.Run("first", func(t *testing.T) {
			first = e.shared(t).Database(t)
			db := connect(whole, first)
			do(t, db, "create table words (word varchar(10))", "insert into words values ('a')")
			var err error
			if open, err = db.Begin(); err != nil {
				t.Fatal(err)
			}
			if _, err := open.Exec("insert into words values ('b')"); err != nil {
				t.Fatal(err)
			}
		})
		if err := open.Commit(); err == nil {
			t.Error("a transaction in a database that was dropped was committed")
		}
		other := e.shared(t).Database(t)
		if other.Addr != first.Addr || other.Addr != s.Addr() || other.Name == first.Name {
			t.Errorf("two databases of one server: %v, %v", first, other)
		}
		do(t, connect(t, other), "create table words (word varchar(10))")
		db, err := first.engine.open(first.DSN())
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if err := db.PingContext(t.Context()); err == nil || !strings.Contains(err.Error(), first.Name) {
			t.Errorf("the first is gone: %v", err)
		}
	})
}

func TestDatabaseNames(t *testing.T) {
	t.Parallel()
	for _, want := range []struct {
		e        *engine
		dsn, url string
	}{
		{postgres, "postgres://postgres@127.0.0.1:2/t1?sslmode=disable", "postgres://postgres@127.0.0.1:2/t1?sslmode=disable"},
		{mariaDB, "root@tcp(127.0.0.1:2)/t1", "mysql://root@127.0.0.1:2/t1"},
	} {
		d := Database{Name: "t1", Addr: "127.0.0.1:1", engine: want.e}.At("127.0.0.1:2")
		if d.DSN() != want.dsn || d.URL() != want.url {
			t.Errorf("DSN %s, URL %s; want %s, %s", d.DSN(), d.URL(), want.dsn, want.url)
		}
	}
}

// TestAsInProduction: the stores refuse servers that may forget what they acknowledged.
func TestAsInProduction(t *testing.T) {
	t.Parallel()
	settings := map[*engine]map[string]string{
		postgres: {
			"show fsync": "on", "show synchronous_commit": "on", "show full_page_writes": "on",
			"show server_encoding": "UTF8", "show transaction_isolation": "read committed",
		},
		mariaDB: {
			"select @@innodb_flush_log_at_trx_commit": "1", "select @@innodb_doublewrite": "1", "select @@innodb_rollback_on_timeout": "0",
			"select @@character_set_database": "utf8mb4", "select @@tx_isolation": "REPEATABLE-READ",
			"select @@sql_mode like '%STRICT_TRANS_TABLES%'": "1",
		},
	}
	forEach(t, func(t *testing.T, e each) {
		db := connect(t, e.shared(t).Database(t))
		for query, want := range settings[e.engine] {
			if got := ask(t, db, query); got != want {
				t.Errorf("%s: %s, want %s", query, got, want)
			}
		}
	})
}

func TestArgs(t *testing.T) {
	t.Parallel()
	forEach(t, func(t *testing.T, e each) {
		o, query, want := Options{Args: []string{"-c", "fsync=off"}, Disk: true}, "show fsync", "off"
		if e.engine == mariaDB {
			o.Args, query, want = []string{"--innodb-flush-log-at-trx-commit=2"}, "select @@innodb_flush_log_at_trx_commit", "2"
		}
		s := e.start(t, o)
		if !strings.HasPrefix(s.data(), os.TempDir()) {
			t.Errorf("data at %s, want it in %s", s.data(), os.TempDir())
		}
		if got := ask(t, connect(t, s.Database(t)), query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
		wrong := of(func(t testing.TB) { e.start(t, Options{Args: []string{"--no-such-argument"}}) })
		if !strings.Contains(wrong, "ended before it was ready: exit status") || !strings.Contains(wrong, "no-such-argument") {
			t.Errorf("a server that refuses to start: %s", wrong)
		}
	})
}

// TestRestart ends a server and starts it again: what was acknowledged is there, at the same address.
func TestRestart(t *testing.T) {
	t.Parallel()
	forEach(t, func(t *testing.T, e each) {
		s := e.start(t, Options{})
		d := s.Database(t)
		do(t, connect(t, d), "create table words (word varchar(10))")
		for _, way := range []struct {
			word string
			end  func() error
		}{
			{"stopped", s.Stop},
			{"killed", func() error { s.Kill(); return nil }},
			{"paused", s.Pause},
			{"running", func() error { return nil }},
			{"crashed", func() error { s.proc.kill(); return nil }},
		} {
			do(t, connect(t, d), "insert into words values ('"+way.word+"')")
			if err := errors.Join(way.end(), s.Restart()); err != nil {
				t.Fatalf("%s: %v", way.word, err)
			}
			if word := ask(t, connect(t, d), "select max(word) from words where word = '"+way.word+"'"); word != way.word {
				t.Errorf("the server was %s; found %q", way.word, word)
			}
		}
		if err := errors.Join(s.Stop(), s.Stop()); err != nil {
			t.Error(err)
		}
		s.Kill()
		if s.Pause() == nil || s.Resume() == nil {
			t.Error("a server that does not run was paused")
		}
		if err := connect(t, d).PingContext(t.Context()); err == nil {
			t.Error("a stopped server answers")
		}
	})
}

// TestPause: a paused server does not answer, on connections old and new, until it goes on.
func TestPause(t *testing.T) {
	t.Parallel()
	forEach(t, func(t *testing.T, e each) {
		s := e.start(t, Options{})
		d := s.Database(t)
		old := connect(t, d)
		do(t, old, "create table words (word varchar(10))")
		if err := s.Pause(); err != nil {
			t.Fatal(err)
		}
		for what, db := range map[string]*sql.DB{"old": old, "new": connect(t, d)} {
			ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
			_, err := db.ExecContext(ctx, "insert into words values ('a')")
			if ctx.Err() == nil || err == nil {
				t.Errorf("%s connection to a paused server: %v", what, err)
			}
			cancel()
		}
		if err := s.Resume(); err != nil {
			t.Fatal(err)
		}
		do(t, connect(t, d), "insert into words values ('b')")
	})
}

// TestCopy restores an old copy beside the server that went on.
func TestCopy(t *testing.T) {
	t.Parallel()
	forEach(t, func(t *testing.T, e each) {
		s := e.start(t, Options{})
		d := s.Database(t)
		do(t, connect(t, d), "create table words (word varchar(10))", "insert into words values ('old')")
		if said := of(func(t testing.TB) { s.Copy(t, Options{}) }); !strings.HasPrefix(said, "fail: ") {
			t.Errorf("copy of a running server: %q", said)
		}
		s.Kill()
		c := s.Copy(t, Options{})
		if err := s.Restart(); err != nil {
			t.Fatal(err)
		}
		do(t, connect(t, d), "insert into words values ('young')")
		for addr, want := range map[string]string{s.Addr(): "young", c.Addr(): "old"} {
			if word := ask(t, connect(t, d.At(addr)), "select max(word) from words"); word != want {
				t.Errorf("%s, want %s", word, want)
			}
		}
		do(t, connect(t, c.Database(t)), "create table words (word varchar(10))")
	})
}

// TestPortTaken lets somebody else be quicker to take the port, once.
func TestPortTaken(t *testing.T) {
	t.Parallel()
	forEach(t, func(t *testing.T, e each) {
		need(t, e.engine)
		robbed := *e.engine
		var quicker net.Listener
		robbed.serve = func(data string, port int) []string {
			if quicker == nil {
				var err error
				if quicker, err = net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err != nil {
					t.Error(err)
				}
			}
			return e.serve(data, port)
		}
		s := keep(t, &robbed, Options{}, "")
		if quicker == nil || quicker.Addr().String() == s.Addr() {
			t.Errorf("server at %s, somebody else at %v", s.Addr(), quicker)
		}
		do(t, connect(t, s.Database(t)), "create table words (word varchar(10))")
		quicker.Close()
	})
}

// TestReadyIsOurs: a server of somebody else that answers at our port is not taken for ours.
func TestReadyIsOurs(t *testing.T) {
	t.Parallel()
	forEach(t, func(t *testing.T, e each) {
		theirs := e.shared(t)
		ended := &process{done: make(chan struct{})}
		again := *e.engine
		asked := 0
		again.open = func(dsn string) (*sql.DB, error) {
			if asked++; asked == 2 { // the first answer was not enough
				close(ended.done)
			}
			return e.open(dsn)
		}
		ours := &Server{engine: &again, port: theirs.port, home: &dir{path: t.TempDir()}}
		if err := ours.ready(ended); err == nil {
			t.Error("another's data directory passed for ours")
		}
	})
}

// TestLogOfFailure: a test that failed shows what the server logged meanwhile.
func TestLogOfFailure(t *testing.T) {
	t.Parallel()
	s := StartPostgres(t, Options{})
	db := connect(t, s.Database(t))
	wrong := func(statement string) {
		if _, err := db.ExecContext(t.Context(), statement); err == nil {
			t.Errorf("%s: no error", statement)
		}
	}
	wrong("nonsense of before")
	var passed, failed verdict
	s.watch(&passed)
	s.watch(&failed)
	wrong("nonsense of the test")
	failed.failed = true
	for _, v := range []*verdict{&passed, &failed} {
		for _, f := range v.last {
			f()
		}
	}
	if passed.said != "" {
		t.Errorf("a test that passed: %s", passed.said)
	}
	if !strings.Contains(failed.said, "nonsense of the test") || strings.Contains(failed.said, "nonsense of before") {
		t.Errorf("a test that failed: %s", failed.said)
	}
}
