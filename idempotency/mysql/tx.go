package mysql

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"time"

	"github.com/cenkalti/backoff/v5"
	driver "github.com/go-sql-driver/mysql"

	"github.com/belfry-go/belfry/idempotency"
)

const (
	// callTimeout ends a call whose context has no deadline.
	callTimeout = 10 * time.Second

	// goodbye is how long a rollback may take before the connection is closed instead.
	goodbye = time.Second

	// How long a call that lost against another waits before it is tried again: it grows from the first to the last,
	// with jitter.
	firstWait = 2 * time.Millisecond
	lastWait  = 250 * time.Millisecond
)

// serverClock is the SQL of the store's clock: the server's, in microseconds since 1970.
func serverClock() string { return `TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))` }

// querier is what runs statements: a connection of ours, or a transaction of the caller's.
type querier interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// tx is one transaction. It does not begin or end it.
type tx struct {
	querier
	ctx    context.Context
	prefix string
	clock  sqlText
	packet int       // bytes that a statement may have
	now    time.Time // the store's clock, once it was read

	lost   bool // the connection failed
	broken bool // it is not to be used again
}

// exec changes rows and returns the server's count of them. What it counts depends on the caller's clientFoundRows,
// but for deleted rows and rows whose change is certain.
func (t *tx) exec(query string, args ...any) (int64, error) {
	r, err := t.ExecContext(t.ctx, render(t.prefix, query, args))
	if err != nil {
		return 0, t.failed(err)
	}
	return r.RowsAffected()
}

// execRows is exec of a statement whose last mark stands for rows, in as many statements as it needs.
func (t *tx) execRows(r *rows, query string, args ...any) (affected int64, err error) {
	err = r.packets(t.packet-size(query, args), func(part sqlText) error {
		n, err := t.exec(query, append(args[:len(args):len(args)], part)...)
		affected += n
		return err
	})
	return affected, err
}

// insert is execRows with the rest of the statement behind the rows.
func (t *tx) insert(r *rows, head, tail string) (affected int64, err error) {
	return t.execRows(r, head+` VALUES ?`+tail)
}

// query calls scan for each row.
func (t *tx) query(scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := t.QueryContext(t.ctx, render(t.prefix, query, args))
	if err != nil {
		return t.failed(err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	if err := rows.Err(); err != nil {
		return t.failed(err)
	}
	return nil
}

// queryRows is query of a statement whose last mark stands for rows, in as many statements as it needs.
func (t *tx) queryRows(scan func(*sql.Rows) error, r *rows, query string, args ...any) error {
	return r.packets(t.packet-size(query, args), func(part sqlText) error {
		return t.query(scan, query, append(args[:len(args):len(args)], part)...)
	})
}

// get scans the first row into to and reports whether there is one.
func (t *tx) get(to []any, query string, args ...any) (found bool, err error) {
	err = t.query(func(r *sql.Rows) error {
		if found {
			return nil
		}
		found = true
		return r.Scan(to...)
	}, query, args...)
	return found, err
}

// draw returns a number that the store has never drawn before, and higher than all that were drawn before it.
func (t *tx) draw() (int64, error) {
	r, err := t.ExecContext(t.ctx, render(t.prefix, `INSERT INTO belfry_sequence VALUES ()`, nil))
	if err != nil {
		return 0, t.failed(err)
	}
	return r.LastInsertId()
}

// failed notes that a statement failed otherwise than by the server's word.
func (t *tx) failed(err error) error {
	var e *driver.MySQLError
	if !errors.As(err, &e) {
		t.lost, t.broken = true, true
	} else if e.Number == noLongerWritable || e.Number == readOnly {
		t.broken = true
	}
	return err
}

// Errors of the server after which the transaction is tried again.
const (
	checkRead        = 1020 // a row changed since the snapshot
	tooMany          = 1040
	shutdown         = 1053
	duplicate        = 1062 // another was faster: what this call read holds no more
	lockWaitTimeout  = 1205 // innodb_rollback_on_timeout is off: the transaction is still there
	tooManyOfUser    = 1203
	deadlock         = 1213
	noLongerWritable = 1290 // a primary that became a replica: the next connection may find the new one
	interrupted      = 1317
	readOnly         = 1836
	killed           = 1927 // MariaDB
)

// Errors of the server that it repeats until somebody mends something.
const (
	noDatabase    = 1044
	noTableRight  = 1142
	noColumnRight = 1143
	noTable       = 1146
	tooLarge      = 1153
	statementLog  = 1665
)

// again reports whether a transaction that failed and did not commit may succeed if it is tried once more.
func again(err error) bool {
	var e *driver.MySQLError
	if !errors.As(err, &e) {
		// The connection, then. A packet that this client refuses to send stays too large.
		return !errors.Is(err, driver.ErrPktTooLarge)
	}
	switch e.Number {
	case checkRead, tooMany, shutdown, duplicate, lockWaitTimeout, tooManyOfUser, deadlock, noLongerWritable, interrupted, readOnly, killed:
		return true
	}
	return false
}

// write runs f in a transaction that reads what is committed at each statement.
func (s *Store) write(ctx context.Context, f func(*tx) error) error {
	return s.transact(ctx, s.calls, nil, f)
}

// snapshot begins a transaction all of whose reads are of one instant.
var snapshot = []string{
	`SET TRANSACTION ISOLATION LEVEL REPEATABLE READ`, `START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY`,
}

// read runs f in a transaction that sees one instant and writes nothing.
func (s *Store) read(ctx context.Context, f func(*tx) error) error {
	return s.transact(ctx, s.calls, snapshot, f)
}

// renew is write on the connection that is kept for renewals.
func (s *Store) renew(ctx context.Context, f func(*tx) error) error {
	return s.transact(ctx, s.renewals, nil, f)
}

// transact runs f in a transaction, again and again while others are in the way or the connection fails, until the
// context ends. A commit that was not answered is not repeated: that is for the caller, who knows whether it can.
func (s *Store) transact(ctx context.Context, p *pool, begin []string, f func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx, cancel := bounded(ctx)
	defer cancel()
	wait := &backoff.ExponentialBackOff{InitialInterval: firstWait, MaxInterval: lastWait, Multiplier: 2, RandomizationFactor: 0.5}
	var last error
	_, err := backoff.Retry(ctx, func() (struct{}, error) {
		err, final := s.attempt(ctx, p, begin, f)
		if err != nil && (final || !again(err)) {
			return struct{}{}, backoff.Permanent(err)
		}
		last = err
		return struct{}{}, err
	}, backoff.WithBackOff(wait), backoff.WithMaxElapsedTime(0))
	if err != nil && last != nil && ctx.Err() != nil && !errors.Is(last, err) {
		err = fmt.Errorf("%w, after: %w", err, last)
	}
	return explain(err)
}

// bounded gives a context without a deadline one.
func bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, ok := ctx.Deadline(); ok {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, callTimeout)
}

// attempt is one try. A final error is not to be tried again, whatever it is.
func (s *Store) attempt(ctx context.Context, p *pool, begin []string, f func(*tx) error) (err error, final bool) {
	c, err := p.get(ctx)
	if err != nil {
		return err, errors.Is(err, errClosed) || ctx.Err() != nil
	}
	t := &tx{querier: c, ctx: ctx, prefix: s.prefix, clock: sqlText(s.clock()), packet: c.packet}
	defer func() { p.put(c, t.broken) }()
	for _, text := range begin {
		if _, err := t.exec(text); err != nil {
			t.broken = true
			return err, false
		}
	}
	if err := f(t); err != nil {
		t.rollback()
		var e *driver.MySQLError
		return err, !t.lost && !errors.As(err, &e)
	}
	if _, err := t.exec(`COMMIT`); err != nil {
		if t.lost && !errors.Is(err, sqldriver.ErrBadConn) { // that says that it was not sent
			return fmt.Errorf("the commit was not answered, and may have happened; repeat the call as it was: %w", err), true
		}
		t.rollback()
		return err, false
	}
	return nil, false
}

// rollback ends the transaction also where the context has ended, and where the server left it open.
func (t *tx) rollback() {
	if t.broken {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), goodbye)
	defer cancel()
	if _, err := t.ExecContext(ctx, `ROLLBACK`); err != nil {
		t.broken = true
	}
}

// explain says whose error it is and, where it can, what to do. Verdicts of the contract stay what they are.
func explain(err error) error {
	if err == nil || errors.Is(err, idempotency.ErrSessionDead) || errors.Is(err, idempotency.ErrRefused) || errors.Is(err, idempotency.ErrRejected) {
		return err
	}
	advice := ""
	var e *driver.MySQLError
	if errors.As(err, &e) {
		switch e.Number {
		case noLongerWritable, readOnly:
			advice = "the server is read-only; connect to the primary: "
		case tooMany, tooManyOfUser:
			advice = "the server has no connection left; raise max_connections, or let other clients use fewer: "
		case tooLarge:
			advice = "a row is larger than the server's max_allowed_packet; raise it to 1 MiB or more: "
		case noDatabase, noTableRight, noColumnRight:
			advice = "the user lacks a right; grant SELECT, INSERT, UPDATE and DELETE on the store's tables: "
		case noTable:
			advice = "a table of the store is missing; open the store again, or restore it: "
		case statementLog:
			advice = "the server logs statements; set binlog_format to MIXED or ROW: "
		}
	}
	if errors.Is(err, driver.ErrPktTooLarge) {
		advice = "a row is larger than the client's maxAllowedPacket; raise it in the DSN to 5 MiB or more: "
	}
	return fmt.Errorf("mysql: %s%w", advice, err)
}
