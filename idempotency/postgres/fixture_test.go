package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/testservers"
)

const (
	keyed = "keyed" // a job with keys
	plain = "plain" // a job without
)

// fixture is a store with a live session that announced both jobs, and two open dues of the one with keys.
type fixture struct {
	*testing.T
	p     *pgxpool.Pool
	s     *Store
	ses   idempotency.Session
	due   time.Time // the other one is a second later
	nonce int64
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	return fixtureIn(t, pool(t, testservers.Postgres(t).Database(t)))
}

func fixtureIn(t *testing.T, p *pgxpool.Pool) *fixture {
	t.Helper()
	f := &fixture{T: t, p: p, s: openAt(t, p, nil, serverClock)}
	f.ses = f.open("a")
	f.due = time.Now().UTC().Truncate(time.Second).Add(-time.Minute)
	d := f.decision(keyed, f.due, f.due.Add(time.Second))
	d.Keyed = true
	f.decide(d)
	return f
}

// open opens a session of a process of its own that announces both jobs.
func (f *fixture) open(name string) idempotency.Session {
	f.Helper()
	ses, r, err := f.s.OpenSession(f.Context(), idempotency.Opening{
		Namespace: "ns", Replica: name, Boot: name, Partitions: 8, Lease: time.Hour, Horizon: time.Hour, Retention: 2 * time.Hour, Tolerance: time.Second,
	})
	if err != nil {
		f.Fatal(err)
	}
	if _, err := f.s.Declare(f.Context(), ses, 0, declarations(r.Now)); err != nil {
		f.Fatal(err)
	}
	return ses
}

func declarations(now time.Time) (d []idempotency.Declaration) {
	for _, job := range []string{keyed, plain} {
		d = append(d, idempotency.Declaration{Definition: idempotency.Definition{Job: job, Hash: "h1"}, Opened: now.Add(-time.Hour)})
	}
	return d
}

// decision moves the job's entry, as it is, on to the last due.
func (f *fixture) decision(job string, due ...time.Time) idempotency.Decision {
	f.Helper()
	var e entry
	err := f.s.with(f.Context(), f.ses, unlocked, func(c *call) error {
		m, err := c.entries([]string{job})
		e = m[job]
		return err
	})
	if err != nil {
		f.Fatal(err)
	}
	return idempotency.Decision{Seen: e.Entry, Definition: e.Definition, Opened: due[len(due)-1], Run: due}
}

func (f *fixture) decide(d idempotency.Decision) []idempotency.Run {
	f.Helper()
	f.nonce++
	a, err := f.s.Decide(f.Context(), f.ses, f.nonce, []idempotency.Decision{d})
	if err != nil || !a[0].Won {
		f.Fatalf("decision %+v: %+v %v", d, a, err)
	}
	return a[0].Runs
}

// insert is a claim of the key at the first open due, or so many after it.
func (f *fixture) insert(key string, number int) idempotency.Claim {
	return idempotency.Claim{ID: idempotency.ID{Job: keyed, Key: key, Due: f.due.Add(time.Duration(number) * time.Second)}, Hash: "h1", Exclusive: true}
}

func (f *fixture) claim(c ...idempotency.Claim) []idempotency.Answer {
	f.Helper()
	f.nonce++
	a, err := f.s.Claim(f.Context(), f.ses, f.nonce, c)
	if err != nil {
		f.Fatal(err)
	}
	return a
}

func (f *fixture) wins(c idempotency.Claim) int64 {
	f.Helper()
	a := f.claim(c)[0]
	if a.Verdict != idempotency.Won {
		f.Fatalf("claim of %v: %+v, want won", c.ID, a)
	}
	return a.Fence
}

func (f *fixture) finish(id idempotency.ID, fence int64, o idempotency.Outcome) idempotency.FinishAnswer {
	f.Helper()
	a, err := f.s.Finish(f.Context(), "ns", []idempotency.Finish{{ID: id, Fence: fence, Outcome: o, Wake: f.due}})
	if err != nil {
		f.Fatal(err)
	}
	return a[0]
}

// count is one number of the store's tables.
func (f *fixture) count(text string, args ...any) (n int64) {
	f.Helper()
	if err := f.p.QueryRow(f.Context(), f.s.texts.of(text), args...).Scan(&n); err != nil {
		f.Fatalf("%s: %v", text, err)
	}
	return n
}

// other is a transaction that stands for another replica's, or the user's.
type other struct {
	f  *fixture
	tx pgx.Tx
}

func (f *fixture) other() *other {
	f.Helper()
	tx, err := f.p.Begin(f.Context())
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() { _ = tx.Rollback(context.Background()) }) // where the test did not end it
	return &other{f, tx}
}

func (o *other) exec(text string, args ...any) {
	o.f.Helper()
	if _, err := o.tx.Exec(o.f.Context(), o.f.s.texts.of(text), args...); err != nil {
		o.f.Fatalf("%s: %v", text, err)
	}
}

// holds makes the key held, as an exclusive run that is claimed does.
func (o *other) holds(job, key string) {
	o.f.Helper()
	o.exec(`INSERT INTO belfry_running (space, session, job, due, key, request, slot) SELECT id, 0, $1, now(), $2, '', '' FROM belfry_space`, job, []byte(key))
}

func (o *other) commit() {
	o.f.Helper()
	if err := o.tx.Commit(o.f.Context()); err != nil {
		o.f.Fatal(err)
	}
}

func (o *other) rollback() {
	o.f.Helper()
	if err := o.tx.Rollback(o.f.Context()); err != nil {
		o.f.Fatal(err)
	}
}

// waiting returns when so many transactions of the database wait for a lock.
func (f *fixture) waiting(n int64) {
	f.Helper()
	ctx, cancel := context.WithTimeout(f.Context(), time.Minute)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for f.count(`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`) != n {
		select {
		case <-tick.C:
		case <-ctx.Done():
			f.Fatalf("there were never %d calls that wait for a lock", n)
		}
	}
}

// answer is what a call that runs beside the test answered.
type answer[T any] struct {
	value T
	err   error
}

// beside runs a call beside the test.
func beside[T any](call func() (T, error)) <-chan answer[T] {
	c := make(chan answer[T], 1)
	go func() {
		value, err := call()
		c <- answer[T]{value, err}
	}()
	return c
}

// claimBeside claims one run beside the test.
func (f *fixture) claimBeside(c ...idempotency.Claim) <-chan answer[[]idempotency.Answer] {
	f.nonce++
	nonce := f.nonce
	return beside(func() ([]idempotency.Answer, error) { return f.s.Claim(f.Context(), f.ses, nonce, c) })
}
