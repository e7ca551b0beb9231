package mysql

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/testservers"
)

// connections are the ids of all connections to the database but the asking one.
func connections(t *testing.T, db *sql.DB) (ids []int64) {
	t.Helper()
	rows, err := db.Query(`SELECT id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return ids
}

func kill(t *testing.T, db *sql.DB, ids ...int64) {
	t.Helper()
	for _, id := range ids {
		_, err := db.Exec(`KILL CONNECTION ?`, id)
		var e *driver.MySQLError
		if err != nil && (!errors.As(err, &e) || e.Number != 1094) { // it is gone already
			t.Fatal(err)
		}
	}
}

// Whoever kills connections of the store between its calls, or in the middle of one, is not noticed, and no more are
// opened than there were.
func TestKilledConnectionsAreReplaced(t *testing.T) {
	t.Parallel()
	d := testservers.MariaDB(t).Database(t)
	db, admin := client(t, d, ""), client(t, d, "?interpolateParams=true")
	admin.SetMaxOpenConns(1)
	w := newWorker(t, openOn(t, db, nil))
	for range 5 {
		before := connections(t, admin)
		if len(before) == 0 {
			t.Fatal("the store has no connection to kill")
		}
		kill(t, admin, before...)
		if _, err := w.RenewSession(context.Background(), w.session); err != nil {
			t.Fatalf("renewal: %v", err)
		}
		tries := 0
		err := w.write(context.Background(), func(t *tx) error {
			if _, err := t.draw(); err != nil {
				return err
			}
			if tries++; tries == 1 {
				var id int64
				if _, err := t.get([]any{&id}, `SELECT CONNECTION_ID()`); err != nil {
					return err
				}
				if _, err := admin.Exec(`KILL CONNECTION ?`, id); err != nil {
					return err
				}
			}
			_, err := t.draw()
			return err
		})
		if err != nil || tries < 2 {
			t.Fatalf("a call whose connection was killed: %d tries, %v; want a second one and success", tries, err)
		}
	}
	if n := db.Stats().OpenConnections; n > callConns+1 {
		t.Errorf("%d connections, want at most %d", n, callConns+1)
	}
	if n := w.count(t, `SELECT count(*) FROM belfry_sequence`); n != 1+5*2 {
		t.Errorf("%d numbers drawn, want those of the calls that committed: 11", n)
	}
}

// No connection that the store has set up for itself comes back to its owner.
func TestCallersConnectionsStayAsTheyWere(t *testing.T) {
	t.Parallel()
	db := client(t, testservers.MariaDB(t).Database(t), "")
	var before, after [4]string
	ask := func(to *[4]string) {
		t.Helper()
		err := db.QueryRow(`SELECT @@autocommit, @@sql_mode, @@tx_isolation, @@wait_timeout`).Scan(&to[0], &to[1], &to[2], &to[3])
		if err != nil {
			t.Fatal(err)
		}
	}
	ask(&before)
	s := openOn(t, db, nil)
	newWorker(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	for range 2 * callConns {
		if ask(&after); after != before {
			t.Fatalf("autocommit, sql_mode, isolation and wait_timeout are %q, want %q", after, before)
		}
	}
	if n := db.Stats().OpenConnections; n > 1 {
		t.Errorf("%d connections are left, want the caller's one", n)
	}
}

// A client that is stopped in the middle of a transaction, as by SIGSTOP, holds its locks until the server misses it.
// Then others go on; and so does the client, once it wakes.
func TestStoppedClientIsMissed(t *testing.T) {
	t.Parallel()
	d := testservers.MariaDB(t).Database(t)
	stopped, s := openOn(t, client(t, d, ""), nil), openOn(t, client(t, d, ""), nil)
	w := newWorker(t, stopped)
	other := w.beside(t, s)
	held, wake, ended := make(chan struct{}), make(chan struct{}), make(chan error)
	tries := 0
	go func() {
		ended <- stopped.with(context.Background(), w.session, shared, func(c *call) error {
			if tries++; tries == 1 {
				if _, err := c.openDues([]dueOf{{w.due.Unix(), "keyed"}}, alone); err != nil {
					return err
				}
				close(held)
				<-wake
			}
			_, err := c.draw()
			return err
		})
	}()
	<-held
	start := time.Now()
	a, err := other.claim(context.Background(), other.insert("k"))
	if err != nil || a[0].Verdict != idempotency.Won {
		t.Errorf("claim of a due that a stopped client holds: %+v %v, want won in the end", a, err)
	}
	if time.Since(start) < time.Second {
		t.Error("the claim was won at once: nobody held the due")
	}
	close(wake)
	if err := <-ended; err != nil || tries != 2 {
		t.Errorf("the call of the client that woke: %d tries, %v; want a second one and success", tries, err)
	}
}

// Connections that nobody uses are closed before the server does it, which clients would log as an error.
func TestIdleConnectionsAreClosed(t *testing.T) {
	t.Parallel()
	d := testservers.MariaDB(t).Database(t)
	admin := client(t, d, "")
	admin.SetMaxOpenConns(1)
	s := openOn(t, client(t, d, ""), nil)
	w := newWorker(t, s)
	before := connections(t, admin)
	timer := time.NewTimer(idleFor + silence/10)
	defer timer.Stop()
	<-timer.C
	s.calls.mu.Lock()
	n := len(s.calls.idle)
	s.calls.mu.Unlock()
	if n > 0 {
		t.Errorf("%d connections are kept for longer than %v", n, idleFor)
	}
	if _, err := w.claim(context.Background(), w.insert("k")); err != nil {
		t.Errorf("claim after a pause: %v", err)
	}
	for _, id := range connections(t, admin) {
		if slices.Contains(before, id) {
			t.Errorf("connection %d was kept over the pause", id)
		}
	}
}
