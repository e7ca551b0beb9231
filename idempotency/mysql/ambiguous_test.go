package mysql

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/testservers"
	"github.com/belfry-go/belfry/jobs"
)

// cutter cuts a client's connections at the next commit of a transaction of the application's.
type cutter struct {
	armed  atomic.Bool
	arrive bool // the commit arrives, and only its answer is lost
}

// open returns a pool of connections that the cutter cuts.
func (c *cutter) open(t testing.TB, d testservers.Database) *sql.DB {
	t.Helper()
	config, err := driver.ParseDSN(d.DSN())
	if err != nil {
		t.Fatal(err)
	}
	config.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &cutConn{Conn: conn, cutter: c}, nil
	}
	connector, err := driver.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	db := sql.OpenDB(connector)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

type cutConn struct {
	net.Conn
	cutter *cutter
	cut    atomic.Bool
}

var errCut = errors.New("test: the connection is cut")

func (c *cutConn) Write(b []byte) (int, error) {
	if bytes.HasSuffix(b, []byte("COMMIT")) && c.cutter.armed.CompareAndSwap(true, false) {
		c.cut.Store(true)
		if c.cutter.arrive {
			return c.Conn.Write(b)
		}
		_ = c.Conn.Close()
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *cutConn) Read(b []byte) (int, error) {
	if !c.cut.Load() {
		n, err := c.Conn.Read(b)
		if !c.cut.Load() {
			return n, err
		}
	}
	_ = c.Conn.Close()
	return 0, errCut
}

// running is a running run of a store.
func running(t testing.TB, s *Store) jobs.Occurrence {
	t.Helper()
	ctx := context.Background()
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
	if err != nil || !d[0].Won || len(d[0].Runs) != 1 {
		t.Fatalf("decide: %+v, %v", d, err)
	}
	return jobs.Occurrence{Namespace: "ns", Job: "j", Key: "j", Due: due, Attempt: 1, Fence: d[0].Runs[0].Fence}
}

// The connection is lost at the commit: whether that arrived is settled by what the store has.
func TestCommitIsNotAnswered(t *testing.T) {
	t.Parallel()
	server := testservers.MariaDB(t)
	for name, arrive := range map[string]bool{"it arrived": true, "it did not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &cutter{arrive: arrive}
			db := c.open(t, server.Database(t))
			s := openOn(t, db, nil)
			makeNotes(t, db)
			o := running(t, s)
			err := InTx(t.Context(), s, o, func(tx *sql.Tx) error {
				c.armed.Store(true)
				return note(t.Context(), tx, "first")
			})
			want := []string{"first"}
			if !arrive {
				if err == nil || errors.Is(err, jobs.ErrOvertaken) || !strings.Contains(err.Error(), "was not done") {
					t.Fatalf("InTx: %v", err)
				}
				want = []string{"again"}
				err = InTx(t.Context(), s, o, func(tx *sql.Tx) error { return note(t.Context(), tx, "again") })
			}
			if err != nil {
				t.Fatalf("InTx: %v", err)
			}
			if got := notes(t, db); !slices.Equal(got, want) || c.armed.Load() {
				t.Errorf("effects %q, want %q; cut: %v", got, want, !c.armed.Load())
			}
			if err := InTx(t.Context(), s, o, func(tx *sql.Tx) error { return note(t.Context(), tx, "late") }); !errors.Is(err, jobs.ErrOvertaken) {
				t.Errorf("a repeat after it was done: %v", err)
			}
		})
	}
}

// F05, as the server sees a process that is killed after the effect and before the commit: its connection ends.
func TestConnectionEndsInEffect(t *testing.T) {
	t.Parallel()
	db := client(t, testservers.MariaDB(t).Database(t), "")
	s := openOn(t, db, nil)
	makeNotes(t, db)
	o := running(t, s)
	err := InTx(t.Context(), s, o, func(tx *sql.Tx) error {
		var id int64
		if err := errors.Join(note(t.Context(), tx, "of the first"), tx.QueryRow(`select connection_id()`).Scan(&id)); err != nil {
			return err
		}
		_, err := db.Exec(fmt.Sprintf(`kill connection %d`, id))
		return err
	})
	if err == nil || errors.Is(err, jobs.ErrOvertaken) {
		t.Errorf("InTx: %v", err)
	}
	if err := InTx(t.Context(), s, o, func(tx *sql.Tx) error { return note(t.Context(), tx, "of the second") }); err != nil {
		t.Error(err)
	}
	if got := notes(t, db); !slices.Equal(got, []string{"of the second"}) {
		t.Errorf("effects %q, want one", got)
	}
}
