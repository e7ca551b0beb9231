package mysql

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	driver "github.com/go-sql-driver/mysql"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/testservers"
)

// users are the ways in which a user's transactions differ.
var users = []struct {
	name, parameters string
	isolation        sql.IsolationLevel
}{
	{"Default", "", sql.LevelDefault},
	{"ReadCommitted", "", sql.LevelReadCommitted},
	{"Serializable", "?clientFoundRows=true", sql.LevelSerializable},
	{"Hostile", "?clientFoundRows=true&interpolateParams=true&parseTime=true&charset=gbk&sql_mode=%27ANSI_QUOTES,NO_BACKSLASH_ESCAPES%27", sql.LevelRepeatableRead},
	{"Snapshot", "?innodb_snapshot_isolation=1", sql.LevelRepeatableRead},
}

// A run is finished in a transaction of the user's, by the law of Finish: with its commit and not before, once, and by
// the fence alone. What an affected row is to the client changes nothing. F44, F05.
func TestFinishInUsersTransaction(t *testing.T) {
	t.Parallel()
	d := testservers.MariaDB(t).Database(t)
	s := openOn(t, client(t, d, ""), nil)
	w := newWorker(t, s)
	for _, u := range users {
		t.Run(u.name, func(t *testing.T) {
			db := client(t, d, u.parameters)
			in := func(f idempotency.Finish, want idempotency.FinishAnswer, end func(*sql.Tx) error) {
				t.Helper()
				user, err := db.BeginTx(t.Context(), &sql.TxOptions{Isolation: u.isolation})
				if err != nil {
					t.Fatal(err)
				}
				a, err := s.finishIn(t.Context(), user, "ns", f)
				if err != nil || a != want {
					t.Errorf("answer %d, %v; want %d", a, err, want)
				}
				if err := end(user); err != nil {
					t.Fatal(err)
				}
			}
			f := w.wins(t, u.name)
			f.Text = "it's \\ \"done\"\x00"
			other := f
			other.Fence += fencesOf
			in(f, idempotency.Finished, (*sql.Tx).Rollback)
			if r := w.run(t, u.name); r.State != idempotency.Running {
				t.Fatalf("after the rollback: %+v, want running", r)
			}
			in(other, idempotency.Fenced, (*sql.Tx).Commit)
			in(f, idempotency.Finished, (*sql.Tx).Commit)
			if r := w.run(t, u.name); r.State != idempotency.Ended || r.Outcome != idempotency.Done || r.Text != f.Text {
				t.Fatalf("after the commit: %+v, want done", r)
			}
			in(f, idempotency.Already, (*sql.Tx).Commit)
			in(other, idempotency.Fenced, (*sql.Tx).Commit)
			other = f
			other.Outcome = idempotency.Failed
			in(other, idempotency.Completed, (*sql.Tx).Commit)
		})
	}
	if n := w.count(t, `SELECT count(*) FROM belfry_running`); n != 0 {
		t.Errorf("%d runs still hold their keys", n)
	}
}

// A run that was taken up after the user's transaction had its snapshot is not finished by its old fence, whatever
// the transaction sees.
func TestOvertakenInUsersTransaction(t *testing.T) {
	t.Parallel()
	d := testservers.MariaDB(t).Database(t)
	s := openOn(t, client(t, d, ""), nil)
	w := newWorker(t, s)
	for _, u := range users {
		t.Run(u.name, func(t *testing.T) {
			user, err := client(t, d, u.parameters).BeginTx(t.Context(), &sql.TxOptions{Isolation: u.isolation})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = user.Rollback() }()
			dead := w.beside(t, s)
			f := dead.wins(t, u.name)
			if u.isolation != sql.LevelSerializable { // there the mere look would lock the row
				var state int
				if err := user.QueryRow(`SELECT state FROM belfry_run WHERE fence = ?`, f.Fence).Scan(&state); err != nil || state != 2 {
					t.Fatalf("the user sees state %d, %v", state, err)
				}
			}
			if err := s.CloseSession(t.Context(), dead.session); err != nil {
				t.Fatal(err)
			}
			a, err := w.claim(context.Background(), idempotency.Claim{ID: f.ID, Hash: "h1", Exclusive: true, TakeUp: true, Seen: f.Fence})
			if err != nil || a[0].Verdict != idempotency.Won {
				t.Fatalf("take-up: %+v %v", a, err)
			}
			answer, err := s.finishIn(t.Context(), user, "ns", f)
			var e *driver.MySQLError
			if u.name == "Snapshot" && errors.As(err, &e) && e.Number == checkRead {
				return
			}
			if err != nil || answer != idempotency.Fenced {
				t.Errorf("answer %d, %v; want fenced", answer, err)
			}
			if r := w.run(t, u.name); r.State != idempotency.Running || r.Fence != a[0].Fence {
				t.Errorf("the run is %+v, want running with fence %d", r, a[0].Fence)
			}
		})
	}
}
