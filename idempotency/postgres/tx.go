package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfry-go/belfry/idempotency"
)

const (
	// deadline is that of a call whose context has none.
	deadline = 10 * time.Second

	// A call that another transaction was in the way of is made anew after a wait that doubles from the first to the
	// last, with jitter.
	firstWait = 2 * time.Millisecond
	lastWait  = 100 * time.Millisecond

	// lost is how often a call is made anew whose connection was lost before it committed.
	lost = 3

	// longest is how long a statement may take; the server counts milliseconds in 32 bits.
	longest = 24 * time.Hour

	// idleFor is how long a client may be silent in a transaction, at most. It may always be so for spare beyond the call's
	// deadline: the server ends the connection, and that of a process which merely waits for a processor is dear to replace.
	idleFor = 5 * time.Second
	spare   = time.Second

	// linger is how long a call waits beyond the end of its context for an answer, most often that the server's own
	// timeout has ended the statement. A call that gave up at once would have to close its connection; a server that is
	// slow because it has much to do would have to make a new one, which costs it more than the call, and every call would
	// be late then.
	linger = 500 * time.Millisecond

	// rollbackFor bounds the end of a transaction that failed. A connection that takes longer is closed.
	rollbackFor = time.Second
)

// Every transaction says how it wants to be, for roles, databases and poolers have defaults of their own.
const (
	beginWrite = `BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE`
	beginRead  = `BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`

	// A client that is stopped in the middle of a transaction keeps its locks until a second after the call's deadline, or
	// for five seconds if that is earlier. The planner knows nothing of a due that was just opened, and would read all of its
	// rows for each batch: batches are driven row by row, so all that it could choose instead is worse. The last three
	// are for clients that speak in text.
	settings = `SELECT set_config('statement_timeout', $1, true), set_config('lock_timeout', '0', true),
  set_config('idle_in_transaction_session_timeout', $2, true),
  set_config('enable_seqscan', 'off', true), set_config('enable_hashjoin', 'off', true), set_config('enable_mergejoin', 'off', true),
  set_config('plan_cache_mode', 'force_generic_plan', true), set_config('jit', 'off', true),
  set_config('bytea_output', 'hex', true), set_config('datestyle', 'ISO', true), set_config('timezone', 'UTC', true)`
)

// errAgain makes the transaction anew: another one came between what it read and what it wrote.
var errAgain = errors.New("postgres: another transaction came between")

// errWrite ends a transaction on a snapshot that has something to write.
var errWrite = errors.New("postgres: this call has something to write")

// texts makes the SQL of one store from what the package says: it puts in the tables' prefix and the clock.
type texts struct {
	replacer *strings.Replacer
	made     sync.Map // by text
}

func newTexts(prefix, clock string) *texts {
	return &texts{replacer: strings.NewReplacer("belfry_", prefix, "{clock}", clock)}
}

func (x *texts) of(text string) string {
	if made, ok := x.made.Load(text); ok {
		return made.(string)
	}
	made := x.replacer.Replace(text)
	x.made.Store(text, made)
	return made
}

// tx is one transaction. It begins with its first statement, in one round trip.
type tx struct {
	*Store
	ctx   context.Context
	c     *pgxpool.Conn
	begin string
	begun bool
}

// query calls scan for each row.
func (t *tx) query(scan func(pgx.Rows) error, text string, args ...any) error {
	rows, end, err := t.send(t.texts.of(text), args)
	if err != nil {
		return err
	}
	for err == nil && rows.Next() {
		err = scan(rows)
	}
	rows.Close()
	return cmp.Or(err, rows.Err(), end())
}

// send sends a statement; end is called when its rows are closed.
func (t *tx) send(text string, args []any) (rows pgx.Rows, end func() error, err error) {
	if t.begun {
		rows, err = t.c.Query(t.ctx, text, args...)
		return rows, func() error { return nil }, err
	}
	t.begun = true
	left := deadline
	if d, ok := t.ctx.Deadline(); ok {
		left = min(max(time.Until(d), 0), longest)
	}
	var b pgx.Batch
	b.Queue(t.begin)
	b.Queue(settings, milliseconds(left), milliseconds(min(left+spare, idleFor)))
	b.Queue(text, args...)
	r := t.c.SendBatch(t.ctx, &b)
	for range 2 {
		if _, err := r.Exec(); err != nil {
			return nil, nil, cmp.Or(err, r.Close())
		}
	}
	if rows, err = r.Query(); err != nil {
		return nil, nil, cmp.Or(err, r.Close())
	}
	return rows, r.Close, nil
}

// milliseconds is how a setting says a duration; it would take zero for none.
func milliseconds(d time.Duration) string { return fmt.Sprintf("%dms", d.Milliseconds()+1) }

// exec changes rows and returns how many.
func (t *tx) exec(text string, args ...any) (int64, error) {
	if t.begin == beginRead {
		return 0, errWrite
	}
	rows, end, err := t.send(t.texts.of(text), args)
	if err != nil {
		return 0, err
	}
	rows.Close()
	return rows.CommandTag().RowsAffected(), cmp.Or(rows.Err(), end())
}

// returning changes rows and calls scan for what each returns.
func (t *tx) returning(scan func(pgx.Rows) error, text string, args ...any) error {
	if t.begin == beginRead {
		return errWrite
	}
	return t.query(scan, text, args...)
}

// get scans the first row into to and reports whether there is one.
func (t *tx) get(to []any, text string, args ...any) (found bool, err error) {
	err = t.query(func(r pgx.Rows) error {
		if found {
			return nil
		}
		found = true
		return r.Scan(to...)
	}, text, args...)
	return found, err
}

// read runs f on one snapshot. It takes no lock and writes nothing.
func (s *Store) read(ctx context.Context, f func(*tx) error) error {
	return s.transact(ctx, s.calls, beginRead, f)
}

// write runs f in a transaction; f may run several times, and the last one counts.
func (s *Store) write(ctx context.Context, p *pgxpool.Pool, f func(*tx) error) error {
	return s.transact(ctx, p, beginWrite, f)
}

func (s *Store) transact(ctx context.Context, p *pgxpool.Pool, begin string, f func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return explain(err)
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, deadline)
		defer cancel()
	}
	var last error
	broken := 0
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		committing, err := s.once(ctx, p, begin, f)
		if last == nil || ctx.Err() == nil {
			last = err // and not that the call's time is over
		}
		switch {
		case err == nil:
			return struct{}{}, nil
		case committing && code(err) == "":
			err = backoff.Permanent(err) // it may have been committed: that is the caller's to find out
		case isBroken(err) && ctx.Err() == nil && broken < lost:
			broken++
		case !again(err):
			err = backoff.Permanent(err)
		}
		return struct{}{}, err
	}, backoff.WithBackOff(&backoff.ExponentialBackOff{
		InitialInterval: firstWait, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: lastWait,
	}), backoff.WithMaxElapsedTime(0))
	if err != nil && !errors.Is(err, last) {
		err = errors.Join(err, last)
	}
	return explain(err)
}

// once runs f in one transaction, and reports whether its commit was sent: only then may it have happened in spite of
// the error.
func (s *Store) once(ctx context.Context, p *pgxpool.Pool, begin string, f func(*tx) error) (committing bool, err error) {
	c, err := p.Acquire(ctx)
	if err != nil {
		return false, err
	}
	defer release(c)
	t := &tx{Store: s, ctx: ctx, c: c, begin: begin}
	if err = f(t); err == nil && t.begun {
		_, err = c.Exec(ctx, `COMMIT`)
		committing = true
	}
	if err != nil && c.Conn().PgConn().TxStatus() != 'I' {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackFor)
		defer cancel()
		// Where it fails the connection is of no more use, and the pool closes it.
		_, _ = c.Exec(ctx, `ROLLBACK`)
	}
	return committing, err
}

// release gives a connection back. One that was given up in the middle of a call takes up to fifteen seconds to close, and
// would be counted all that time: where the server does not answer, the pool would soon be full of such.
func release(c *pgxpool.Conn) {
	if c.Conn().IsClosed() {
		c.Hijack()
		return
	}
	c.Release()
}

// again reports whether the transaction did nothing because another was in its way, or was never sent.
func again(err error) bool {
	switch code(err) {
	case "40001", "40P01", "55P03": // serialization failure, deadlock, lock not available
		return true
	}
	return errors.Is(err, errAgain) || pgconn.SafeToRetry(err)
}

// isBroken reports whether the connection was lost, or the server ended it.
func isBroken(err error) bool {
	var refused *pgconn.ConnectError
	if errors.As(err, &refused) {
		return false
	}
	switch code(err) {
	case "57P01", "57P02", "25P03": // shutdown, crash of another backend, idle in a transaction
		return true
	}
	var network net.Error
	return errors.As(err, &network) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF)
}

// code is the SQLSTATE, empty where the error is not the server's.
func code(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// explain says whose error it is and, where it can, what to do. Verdicts of the contract stay what they are.
func explain(err error) error {
	if err == nil || err == errWrite || errors.Is(err, idempotency.ErrSessionDead) || errors.Is(err, idempotency.ErrRefused) || errors.Is(err, idempotency.ErrRejected) {
		return err
	}
	advice := ""
	switch code(err) {
	case "25006":
		advice = "the server is read-only, perhaps a standby; connect to the primary: "
	case "42501":
		advice = "the role lacks a privilege; grant it: "
	case "42P01":
		advice = "a table is missing; check the database, search_path and Options.Prefix, or migrate: "
	case "53100":
		advice = "the server's disk is full; free space: "
	case "53300":
		advice = "the server has no connection left; raise its limit or close others: "
	case "57014":
		advice = "the server did not finish in time; repeat the call: "
	}
	return fmt.Errorf("postgres: %s%w", advice, err)
}
