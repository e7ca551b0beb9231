package mysql

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/faultproxy"
	"github.com/belfry-go/belfry/internal/testservers"
	"github.com/belfry-go/belfry/jobs"
)

// through is a proxy to the server of a database, and a pool whose connections go through it.
func through(t *testing.T, d testservers.Database) (*faultproxy.Proxy, *sql.DB) {
	t.Helper()
	p, err := faultproxy.Listen(d.Addr)
	if err != nil {
		t.Fatal(err)
	}
	db := client(t, d.At(p.Addr()), "")
	t.Cleanup(func() { _ = p.Close() })
	return p, db
}

// A client that is stopped between completion and commit keeps the run locked for seconds alone, and the connection goes
// back with the application's own limit.
func TestServerHurriesTheCommit(t *testing.T) {
	t.Parallel()
	p, db := through(t, testservers.MariaDB(t).Database(t))
	s := openOn(t, db, nil)
	o := running(t, s)
	db.SetMaxIdleConns(1)
	if _, err := db.Exec(`SET SESSION wait_timeout = 1234`); err != nil {
		t.Fatal(err)
	}
	wants := []string{`wait_timeout = 5`, `UPDATE `, `COMMIT`, `wait_timeout = @belfry`, `ROLLBACK`} // the last is of sql.Tx
	var mu sync.Mutex
	var sent []string
	inEffect := false
	p.ToServer.Lose(func(chunk []byte) bool {
		mu.Lock()
		defer mu.Unlock()
		for _, text := range wants {
			if inEffect && bytes.Contains(chunk, []byte(text)) {
				sent = append(sent, text)
			}
		}
		return false
	}, faultproxy.Hang)
	var id, later, limit int64
	err := InTx(t.Context(), s, o, func(tx *sql.Tx) error {
		mu.Lock()
		inEffect = true
		mu.Unlock()
		return tx.QueryRow(`SELECT CONNECTION_ID()`).Scan(&id)
	})
	if err != nil {
		t.Fatal(err)
	}
	mu.Lock()
	if !slices.Equal(sent, wants) {
		t.Errorf("sent %q, want %q", sent, wants)
	}
	mu.Unlock()
	if err := db.QueryRow(`SELECT CONNECTION_ID(), @@SESSION.wait_timeout`).Scan(&later, &limit); err != nil || later != id || limit != 1234 {
		t.Errorf("connection %d with a limit of %d s, %v; want %d with 1234 s", later, limit, err, id)
	}
}

// A server that falls silent does not hold InTx, whether the handler fails or its context ends.
func TestSilentServerInEffect(t *testing.T) {
	t.Parallel()
	server := testservers.MariaDB(t)
	failed := errors.New("test: the effect failed")
	for name, want := range map[string]error{"the handler fails": failed, "the context ends": context.Canceled} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, db := through(t, server.Database(t))
			s := openOn(t, db, nil)
			o := running(t, s)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan error, 1)
			go func() {
				ended <- InTx(ctx, s, o, func(tx *sql.Tx) error {
					if _, err := tx.ExecContext(ctx, `DO 1`); err != nil {
						return err
					}
					p.ToClient.Swallow(true)
					if want == failed {
						return failed
					}
					cancel()
					return nil
				})
			}()
			select {
			case err := <-ended:
				if !errors.Is(err, want) {
					t.Errorf("InTx: %v, want %v", err, want)
				}
			case <-time.After(time.Minute):
				t.Error("InTx waits for a server that does not answer")
			}
			p.ToClient.Swallow(false)
			p.Reset()
			if err := InTx(t.Context(), s, o, func(*sql.Tx) error { return nil }); err != nil {
				t.Errorf("a repeat: %v", err)
			}
		})
	}
}

// When the context ends the transaction does too, although the function goes on.
func TestEffectEndsWithItsContext(t *testing.T) {
	t.Parallel()
	d := testservers.MariaDB(t).Database(t)
	db, admin := client(t, d, ""), client(t, d, "")
	s := openOn(t, db, nil)
	makeNotes(t, db)
	o := running(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	err := InTx(ctx, s, o, func(tx *sql.Tx) error {
		if err := note(ctx, tx, "late"); err != nil {
			return err
		}
		cancel()
		// It waits until the note's transaction has ended.
		_, err := admin.ExecContext(t.Context(), `ALTER TABLE notes COMMENT = 'free'`)
		return err
	})
	if !errors.Is(err, context.Canceled) || errors.Is(err, jobs.ErrOvertaken) || strings.Contains(err.Error(), "itself") {
		t.Errorf("InTx: %v, want that its context ended", err)
	}
	if got := notes(t, db); len(got) > 0 {
		t.Errorf("effects %q, want none", got)
	}
}
