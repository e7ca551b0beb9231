package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	driver "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/belfry-go/belfry/idempotency"
)

// How long a call waits before it asks again for a lock that another process
// holds: it doubles from the first to the last, with jitter. SQLite's own wait
// is polling too, but longer, and it does not end with a context.
const (
	firstWait = 250 * time.Microsecond
	lastWait  = 8 * time.Millisecond
)

// errWrite ends a transaction on a snapshot that has something to write.
var errWrite = errors.New("sqlite: this call has something to write")

// conn is one connection with its prepared statements. One goroutine uses it
// at a time.
type conn struct {
	db    *sql.DB // of this connection alone
	c     *sql.Conn
	stmts map[string]*sql.Stmt
}

func (c *conn) prepare(query string) (*sql.Stmt, error) {
	if st := c.stmts[query]; st != nil {
		return st, nil
	}
	st, err := c.c.PrepareContext(context.Background(), query)
	if err == nil {
		c.stmts[query] = st
	}
	return st, err
}

func (c *conn) run(ctx context.Context, query string) error {
	st, err := c.prepare(query)
	if err != nil {
		return err
	}
	_, err = st.ExecContext(ctx)
	return err
}

func (c *conn) close() error {
	var errs []error
	for _, st := range c.stmts {
		errs = append(errs, st.Close())
	}
	if c.c != nil {
		errs = append(errs, c.c.Close())
	}
	return errors.Join(append(errs, c.db.Close())...)
}

// tx is one transaction: of the only writer, or a snapshot.
type tx struct {
	*conn
	ctx    context.Context
	writes bool
	now    time.Time // the store's clock, read once

	last  int64           // the store's counter, where drawn
	drawn bool            // last has to be written back
	named map[int64]int64 // by session, how many more rows name it
}

// exec changes rows and returns how many.
func (t *tx) exec(query string, args ...any) (int64, error) {
	if !t.writes {
		return 0, errWrite
	}
	if err := t.ctx.Err(); err != nil {
		return 0, err
	}
	st, err := t.prepare(query)
	if err != nil {
		return 0, err
	}
	// Not with the context: it would cost a goroutine for each row, and no
	// statement is long.
	r, err := st.ExecContext(context.Background(), args...)
	if err != nil {
		return 0, err
	}
	return r.RowsAffected()
}

// query calls scan for each row.
func (t *tx) query(scan func(*sql.Rows) error, query string, args ...any) error {
	if err := t.ctx.Err(); err != nil {
		return err
	}
	st, err := t.prepare(query)
	if err != nil {
		return err
	}
	ctx := context.Background()
	if !t.writes {
		ctx = t.ctx // a snapshot may read for long
	}
	rows, err := st.QueryContext(ctx, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
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

// count returns the one number that a query reads, 0 where there is no row.
func (t *tx) count(query string, args ...any) (n int64, err error) {
	_, err = t.get([]any{&n}, query, args...)
	return n, err
}

// draw returns a number that the store has never drawn before, and higher than
// all of them: sessions, fences, ranges and first-seen counts share the counter.
func (t *tx) draw() (int64, error) {
	if !t.writes {
		return 0, errWrite
	}
	if !t.drawn {
		if _, err := t.get([]any{&t.last}, `SELECT last FROM belfry_store`); err != nil {
			return 0, err
		}
		t.drawn = true
	}
	t.last++
	return t.last, nil
}

// name counts rows that name a session, so that it is not removed before them.
func (t *tx) name(session, rows int64) {
	if t.named == nil {
		t.named = make(map[int64]int64)
	}
	t.named[session] += rows
}

// flush writes what the transaction has counted.
func (t *tx) flush() error {
	if t.drawn {
		if _, err := t.exec(`UPDATE belfry_store SET last = ?`, t.last); err != nil {
			return err
		}
	}
	for session, n := range t.named {
		if _, err := t.exec(`UPDATE belfry_session SET named = named + ? WHERE id = ?`, n, session); err != nil {
			return err
		}
	}
	return nil
}

// read runs f on a snapshot. It waits for nobody's lock but that of a process
// that recovers the file or is the last to close it.
func (s *Store) read(ctx context.Context, f func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	var c *conn
	select {
	case c = <-s.readers:
		defer func() { s.readers <- c }()
	case <-s.closed:
		return s.explain(errClosed)
	case <-ctx.Done():
		return s.explain(ctx.Err())
	}
	return s.transact(ctx, c, "BEGIN", func() *tx { return &tx{conn: c, ctx: ctx} }, f)
}

// write runs f in the write transaction. Urgent calls wait for at most two
// others of this process, whatever the queue.
func (s *Store) write(ctx context.Context, urgent bool, f func(*tx) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !urgent {
		select {
		case s.turn <- struct{}{}:
			defer func() { <-s.turn }()
		case <-s.closed:
			return s.explain(errClosed)
		case <-ctx.Done():
			return s.explain(ctx.Err())
		}
	}
	select {
	case c := <-s.writer:
		defer func() { s.writer <- c }()
		return s.transact(ctx, c, "BEGIN IMMEDIATE", func() *tx { return &tx{conn: c, ctx: ctx, writes: true} }, f)
	case <-s.closed:
		return s.explain(errClosed)
	case <-ctx.Done():
		return s.explain(ctx.Err())
	}
}

// transact runs f in a transaction, again and again while another process is in
// the way, until the context ends.
func (s *Store) transact(ctx context.Context, c *conn, begin string, open func() *tx, f func(*tx) error) error {
	err := untilFree(ctx, func() error {
		if err := c.run(context.Background(), begin); err != nil {
			return err
		}
		err := s.commit(open(), f)
		if err != nil {
			// On some errors SQLite has rolled back already; then this one
			// fails, and nothing is left to do.
			_ = c.run(context.Background(), "ROLLBACK")
		}
		return err
	})
	return s.explain(err)
}

func (s *Store) commit(t *tx, f func(*tx) error) error {
	t.now = s.now().UTC().Truncate(time.Microsecond)
	if err := f(t); err != nil {
		return err
	}
	if err := t.flush(); err != nil {
		return err
	}
	if err := t.ctx.Err(); err != nil {
		return err
	}
	return t.run(context.Background(), "COMMIT")
}

// untilFree repeats f while it answers that the file is busy.
func untilFree(ctx context.Context, f func() error) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for wait := firstWait; ; wait = min(2*wait, lastWait) {
		err := f()
		if !busy(err) {
			return err
		}
		timer.Reset(wait/2 + rand.N(wait))
		select {
		case <-ctx.Done():
			return fmt.Errorf("another process held its lock until the deadline; repeat the call: %w", errors.Join(ctx.Err(), err))
		case <-timer.C:
		}
	}
}

// code is SQLite's primary result code, 0 where the error is not SQLite's.
func code(err error) int {
	var e *driver.Error
	if errors.As(err, &e) {
		return e.Code() & 0xff
	}
	return 0
}

func busy(err error) bool {
	switch code(err) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL:
		return true
	}
	return false
}

// explain says whose error it is and, where it can, what to do. Verdicts of the
// contract stay what they are.
func (s *Store) explain(err error) error {
	if err == nil || err == errWrite || errors.Is(err, idempotency.ErrSessionDead) || errors.Is(err, idempotency.ErrRefused) || errors.Is(err, idempotency.ErrRejected) {
		return err
	}
	advice := ""
	switch code(err) {
	case sqlite3.SQLITE_FULL:
		advice = "the disk is full; free space: nothing was written, and the call may be repeated: "
	case sqlite3.SQLITE_READONLY:
		advice = "the file or its folder is read-only; make both writable for this user: "
	case sqlite3.SQLITE_CANTOPEN:
		advice = "the file or its -wal and -shm beside it cannot be opened; make the folder writable for this user: "
	case sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB:
		advice = "the file is damaged or no database; stop all replicas and restore a backup, or save what is left with `sqlite3 FILE .recover`: "
	case sqlite3.SQLITE_IOERR:
		advice = "the disk failed; see the system's log: "
	}
	return fmt.Errorf("sqlite: store %q: %s%w", s.path, advice, err)
}
