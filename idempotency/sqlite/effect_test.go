package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/storetest"
	"github.com/belfry-go/belfry/jobs"
)

// application opens the application's own handle of a file, with a table of notes.
func application(t testing.TB, path string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: path}).EscapedPath()+"?_txlock=immediate&_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	if _, err := db.Exec(`create table if not exists notes (text text not null)`); err != nil {
		t.Fatal(err)
	}
	return db
}

func note(ctx context.Context, tx *sql.Tx, text string) error {
	_, err := tx.ExecContext(ctx, `insert into notes (text) values (?)`, text)
	return err
}

func notes(t testing.TB, db *sql.DB) (list []string) {
	t.Helper()
	rows, err := db.Query(`select text from notes order by text`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		list = append(list, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

func TestEffects(t *testing.T) {
	t.Parallel()
	storetest.RunEffects(t, func(t *testing.T) storetest.Effects[*sql.Tx] {
		path := file(t)
		s := openAt(t, path, nil, time.Now)
		db := application(t, path)
		return storetest.Effects[*sql.Tx]{
			Store:    s,
			InTx:     func(ctx context.Context, o jobs.Occurrence, f func(*sql.Tx) error) error { return InTx(ctx, s, o, f) },
			Complete: func(ctx context.Context, tx *sql.Tx, o jobs.Occurrence) error { return Complete(ctx, tx, s, o) },
			Begin: func(ctx context.Context) (*sql.Tx, func() error, func() error, error) {
				tx, err := db.BeginTx(ctx, nil)
				if err != nil {
					return nil, nil, nil, err
				}
				return tx, tx.Commit, tx.Rollback, nil
			},
			Note:      note,
			Notes:     func(t *testing.T) []string { return notes(t, db) },
			OneWriter: true,
		}
	})
}

// holder is a running run of a store.
func holder(t *testing.T, s *Store) (idempotency.Session, jobs.Occurrence) {
	t.Helper()
	ctx := t.Context()
	ses, r, err := s.OpenSession(ctx, idempotency.Opening{
		Namespace: "ns", Replica: "a", Boot: "a", Partitions: 8,
		Lease: time.Hour, Horizon: time.Hour, Retention: 2 * time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	due := r.Now.Add(-time.Minute).Truncate(time.Second)
	def := idempotency.Definition{Job: "j", Schedule: "@every 1s", Hash: "h"}
	e, err := s.Declare(ctx, ses, 0, []idempotency.Declaration{{Definition: def, Opened: due.Add(-time.Second), Next: due}})
	if err != nil {
		t.Fatal(err)
	}
	d, err := s.Decide(ctx, ses, 1, []idempotency.Decision{{Seen: e[0], Definition: def, Opened: due, Next: due.Add(time.Second), Run: []time.Time{due}, Claim: 1}})
	if err != nil || !d[0].Won {
		t.Fatalf("decide: %+v, %v", d, err)
	}
	return ses, jobs.Occurrence{Namespace: "ns", Job: "j", Key: "j", Due: due, Attempt: 1, Fence: d[0].Runs[0].Fence}
}

// While an effect holds the write lock, the store's other calls wait and then go on; a call of the store in the effect
// itself ends with its context, and hangs nobody.
func TestEffectHoldsUpOthers(t *testing.T) {
	t.Parallel()
	path := file(t)
	s := openAt(t, path, nil, time.Now)
	db := application(t, path)
	ses, o := holder(t, s)
	renewed := make(chan error, 1)
	err := InTx(t.Context(), s, o, func(tx *sql.Tx) error {
		brief, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := s.RenewSession(brief, ses); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a renewal inside of the effect: %v", err)
		}
		if _, err := s.Mine(t.Context(), ses); err != nil {
			t.Errorf("reading inside of the effect: %v", err)
		}
		go func() {
			_, err := s.RenewSession(context.WithoutCancel(t.Context()), ses)
			renewed <- err
		}()
		return note(t.Context(), tx, "charged")
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := <-renewed; err != nil {
		t.Errorf("the renewal that waited: %v", err)
	}
	if got := notes(t, db); len(got) != 1 {
		t.Errorf("effects: %q", got)
	}
}

// An effect that takes too long, or that has hung, gives the write lock back: when its context ends, even if it does
// not return.
func TestHungEffect(t *testing.T) {
	t.Parallel()
	path := file(t)
	s := openAt(t, path, nil, time.Now)
	db := application(t, path)
	ses, o := holder(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	wrote, release, returned := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		returned <- InTx(ctx, s, o, func(tx *sql.Tx) error {
			err := note(context.WithoutCancel(ctx), tx, "no")
			close(wrote)
			<-release
			return err
		})
	}()
	<-wrote
	cancel()
	if _, err := s.RenewSession(t.Context(), ses); err != nil {
		t.Fatalf("a renewal while the effect hangs: %v", err)
	}
	close(release)
	if err := <-returned; !errors.Is(err, context.Canceled) {
		t.Errorf("InTx: %v", err)
	}
	if got := notes(t, db); len(got) != 0 {
		t.Errorf("effects: %q", got)
	}
	if err := InTx(t.Context(), s, o, func(tx *sql.Tx) error { return note(t.Context(), tx, "then") }); err != nil {
		t.Error(err)
	}
}

func TestEffectThatCommitsItself(t *testing.T) {
	t.Parallel()
	path := file(t)
	s := openAt(t, path, nil, time.Now)
	application(t, path)
	_, o := holder(t, s)
	for name, end := range map[string]func(*sql.Tx) error{"commit": (*sql.Tx).Commit, "rollback": (*sql.Tx).Rollback} {
		err := InTx(t.Context(), s, o, end)
		if err == nil || !strings.Contains(err.Error(), "ended the transaction itself") {
			t.Errorf("%s in the function: %v", name, err)
		}
	}
	if err := InTx(t.Context(), s, o, func(tx *sql.Tx) error { return note(t.Context(), tx, "then") }); err != nil {
		t.Error(err)
	}
}

// A transaction of another file can never be one with the store's completion.
func TestCompleteElsewhere(t *testing.T) {
	t.Parallel()
	here, there := file(t), file(t)
	s := openAt(t, here, nil, time.Now)
	openAt(t, there, nil, time.Now)
	_, o := holder(t, s)
	for name, path := range map[string]string{"another store's file": there, "a file without a store": file(t)} {
		db := application(t, path)
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if err := Complete(t.Context(), tx, s, o); err == nil || errors.Is(err, jobs.ErrOvertaken) {
			t.Errorf("%s: %v", name, err)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}
}

func TestEffectOfNil(t *testing.T) {
	t.Parallel()
	s := openAt(t, file(t), nil, time.Now)
	_, o := holder(t, s)
	if err := InTx(t.Context(), nil, o, func(*sql.Tx) error { return nil }); err == nil {
		t.Error("InTx of a nil store succeeded")
	}
	if err := Complete(t.Context(), nil, s, o); err == nil {
		t.Error("Complete of a nil transaction succeeded")
	}
	if err := Complete(t.Context(), new(sql.Tx), nil, o); err == nil {
		t.Error("Complete of a nil store succeeded")
	}
}

// A closed store says so.
func TestEffectOfClosedStore(t *testing.T) {
	t.Parallel()
	s := openAt(t, file(t), nil, time.Now)
	_, o := holder(t, s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := InTx(t.Context(), s, o, func(*sql.Tx) error { return nil }); !errors.Is(err, errClosed) {
		t.Errorf("InTx: %v", err)
	}
}
