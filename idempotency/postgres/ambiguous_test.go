package postgres

import (
	"bytes"
	"context"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/testservers"
	"github.com/belfry-go/belfry/jobs"
)

// cutter cuts the application's connections at their next commit.
type cutter struct {
	armed  atomic.Bool
	arrive bool // the commit arrives, and only its answer is lost
}

func (c *cutter) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return &cutConn{Conn: conn, cutter: c}, nil
}

type cutConn struct {
	net.Conn
	cutter *cutter
	cut    atomic.Bool
}

var errCut = errors.New("test: the connection is cut")

func (c *cutConn) Write(b []byte) (int, error) {
	if bytes.Contains(b, []byte("commit\x00")) && c.cutter.armed.CompareAndSwap(true, false) {
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
	server := testservers.Postgres(t)
	for name, arrive := range map[string]bool{"it arrived": true, "it did not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := &cutter{arrive: arrive}
			d := server.Database(t)
			s := openAt(t, application(t, d, func(x *pgxpool.Config) { x.ConnConfig.DialFunc = c.dial }), nil, "clock_timestamp()")
			b := newBook(t, s.pool, "notes")
			o := running(t, s)
			err := InTx(t.Context(), s, o, func(tx pgx.Tx) error {
				c.armed.Store(true)
				return b.note(t.Context(), tx, "first")
			})
			want := []string{"first"}
			if !arrive {
				if err == nil || errors.Is(err, jobs.ErrOvertaken) || !strings.Contains(err.Error(), "was not done") {
					t.Fatalf("InTx: %v", err)
				}
				want = []string{"again"}
				err = InTx(t.Context(), s, o, func(tx pgx.Tx) error { return b.note(t.Context(), tx, "again") })
			}
			if err != nil {
				t.Fatalf("InTx: %v", err)
			}
			if got := b.notes(t); !slices.Equal(got, want) || c.armed.Load() {
				t.Errorf("effects %q, want %q; cut: %v", got, want, !c.armed.Load())
			}
			if err := InTx(t.Context(), s, o, func(tx pgx.Tx) error { return b.note(t.Context(), tx, "late") }); !errors.Is(err, jobs.ErrOvertaken) {
				t.Errorf("a repeat after it was done: %v", err)
			}
		})
	}
}

// F05, as the server sees a process that is killed after the effect and before the commit: its connection ends.
func TestConnectionEndsInEffect(t *testing.T) {
	t.Parallel()
	p := application(t, testservers.Postgres(t).Database(t), nil)
	s := openAt(t, p, nil, "clock_timestamp()")
	b := newBook(t, p, "notes")
	o := running(t, s)
	err := InTx(t.Context(), s, o, func(tx pgx.Tx) error {
		if err := b.note(t.Context(), tx, "of the first"); err != nil {
			return err
		}
		return tx.Conn().PgConn().Conn().Close()
	})
	if err == nil || errors.Is(err, jobs.ErrOvertaken) {
		t.Errorf("InTx: %v", err)
	}
	if err := InTx(t.Context(), s, o, func(tx pgx.Tx) error { return b.note(t.Context(), tx, "of the second") }); err != nil {
		t.Error(err)
	}
	if got := b.notes(t); !slices.Equal(got, []string{"of the second"}) {
		t.Errorf("effects %q, want one", got)
	}
}

// A serialization failure that is the application's own comes back as it is, for the application to repeat.
func TestOwnConflict(t *testing.T) {
	t.Parallel()
	p := application(t, testservers.Postgres(t).Database(t), func(x *pgxpool.Config) {
		x.ConnConfig.RuntimeParams["default_transaction_isolation"] = "serializable"
	})
	s := openAt(t, p, nil, "clock_timestamp()")
	if _, err := p.Exec(t.Context(), `create table counters (id int primary key, n int not null); insert into counters values (1, 0), (2, 0)`); err != nil {
		t.Fatal(err)
	}
	o := running(t, s)
	for _, other := range []string{
		`update counters set n = n + 1 where id = 1`,                                                         // fails at the statement
		`insert into counters select 2 + (select count(*) from counters where id = 1), sum(n) from counters`, // fails at the commit
	} {
		conflicts := true
		add := func(tx pgx.Tx) error {
			var n int
			if err := tx.QueryRow(t.Context(), `select sum(n) from counters`).Scan(&n); err != nil {
				return err
			}
			if conflicts {
				if _, err := p.Exec(t.Context(), other); err != nil {
					t.Fatal(err)
				}
			}
			_, err := tx.Exec(t.Context(), `update counters set n = $1 where id = 1`, n+1)
			return err
		}
		err := InTx(t.Context(), s, o, add)
		if code(err) != "40001" || errors.Is(err, jobs.ErrOvertaken) {
			t.Fatalf("after %q: InTx: %v, want 40001", other, err)
		}
	}
	if err := InTx(t.Context(), s, o, func(pgx.Tx) error { return nil }); err != nil {
		t.Errorf("repeated: %v", err)
	}
}
