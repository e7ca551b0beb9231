package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/completion"
	"github.com/belfry-go/belfry/jobs"
)

// settleWithin is how long to ask what became of a transaction that failed.
const settleWithin = 5 * time.Second

var (
	errNoStore   = errors.New("the store is nil; give it the one that Open returned")
	errNoEffect  = errors.New("the function is nil; give it one that writes the effect")
	errNoTx      = errors.New("the transaction is nil; begin one in the store's database")
	errEndedByF  = errors.New("the function ended the transaction itself: its effect may have been committed without the completion; let it only return")
	errElsewhere = errors.New("the transaction is not of the store's database; begin it there")
)

// InTx runs f in a transaction that also completes the run o: both are
// committed, or neither. So the effect of an occurrence happens once, whatever
// crashes, pauses and repeats there are. Call it from a handler, with the
// handler's ctx and occurrence, once; after it has returned nil the run is
// done, whatever the handler returns.
//
// The transaction is begun on the *sql.DB that Open was given, with the
// isolation level that is the default there; its tables are of an engine with
// transactions. The completion comes last, so that the run's row is locked for
// a moment only: whoever wants to take the run up does not wait for f. Where the
// process is stopped in that moment, the server rolls back after five seconds.
// f ends no transaction, and so uses no statement that commits by itself, such
// as DDL. When ctx ends, so does the transaction, and its connection with it.
//
// An error of f is returned as it is, and a panic goes on, both after a
// rollback. An error that wraps jobs.ErrOvertaken says that the run is another
// holder's by now, at every isolation level: nothing was written, and the
// handler returns. A deadlock (1213), a lock that did not come in time (1205)
// and a changed snapshot (1020) that are the application's own are returned as
// they are; InTx may be called again after them, and so it may after any other
// error. The commit that was not answered is settled by reading the run; where
// that fails too the error says so, the store's record of the run decides, and
// a repeat is safe.
func InTx(ctx context.Context, s *Store, o jobs.Occurrence, f func(tx *sql.Tx) error) error {
	switch {
	case s == nil:
		return fmt.Errorf("mysql: InTx: %w", errNoStore)
	case f == nil:
		return fmt.Errorf("mysql: InTx: %w", errNoEffect)
	}
	done, err := completion.Of(o)
	if err != nil {
		return fmt.Errorf("mysql: InTx: %w", err)
	}
	end, err := completion.Begin(ctx, o)
	if err != nil {
		return fmt.Errorf("mysql: InTx: %w", err)
	}
	committed := false
	defer func() { end(committed) }()
	e := effect{s: s, o: o, done: done}
	err = e.run(ctx, f)
	committed = err == nil
	return err
}

// Complete completes the run o in a transaction that is already open, such as
// one of an outer unit of work, as its last statement: the caller commits if it
// returns nil, and rolls back if not, at once: until then nobody else can finish
// the run or take it up. Of a process that is stopped before, the server keeps
// the lock until it resumes or for the connection's wait_timeout, which is eight
// hours by default; InTx has it for seconds. The transaction is of the store's
// database, on any connection. An error that wraps jobs.ErrOvertaken says that
// the run is another holder's by now. Beside that it may be a deadlock, or a
// lock that did not come in time, which are the application's to repeat, after a rollback.
//
// The handler then returns nil where the commit succeeded. Where it failed, it
// returns the error: the store's record of the run decides.
func Complete(ctx context.Context, tx *sql.Tx, s *Store, o jobs.Occurrence) error {
	switch {
	case s == nil:
		return fmt.Errorf("mysql: Complete: %w", errNoStore)
	case tx == nil:
		return fmt.Errorf("mysql: Complete: %w", errNoTx)
	}
	done, err := completion.Of(o)
	if err == nil {
		err = completion.Join(ctx, o)
	}
	if err == nil {
		e := effect{s: s, o: o, done: done}
		err = e.complete(ctx, tx)
	}
	if err != nil {
		return fmt.Errorf("mysql: Complete: %w", err)
	}
	return nil
}

// effect is one run that its handler completes.
type effect struct {
	s    *Store
	o    jobs.Occurrence
	done idempotency.Finish
}

func (e *effect) run(ctx context.Context, f func(*sql.Tx) error) error {
	b, err := borrow(ctx, e.s.calls.db)
	if err != nil {
		return explain(fmt.Errorf("InTx: %w", err))
	}
	committed := false
	defer func() { b.end(ctx, committed) }()
	if err := f(b.tx); err != nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("mysql: InTx: %w", context.Cause(ctx))
	}
	err = b.hurry(ctx)
	switch {
	case errors.Is(err, sql.ErrTxDone):
		err = errEndedByF
	case err == nil:
		err = e.complete(ctx, b.tx)
	}
	if err != nil {
		return fmt.Errorf("mysql: InTx: %w", err)
	}
	// Not tx.Commit, which waits for a server that does not answer without an end.
	if _, err := b.tx.ExecContext(ctx, `COMMIT`); err != nil {
		return e.settle(ctx, fmt.Errorf("mysql: InTx: commit: %w", err))
	}
	committed = true
	return nil
}

// complete ends the run in a transaction. Its error says why that cannot be.
func (e *effect) complete(ctx context.Context, tx *sql.Tx) error {
	answer, err := e.s.finishIn(ctx, tx, e.o.Namespace, e.done)
	switch {
	case errors.Is(err, sql.ErrTxDone) && ctx.Err() == nil:
		return errEndedByF
	case conflict(err):
		row, asked := e.look(ctx, "")
		return completion.Refused(e.o, row, asked, err)
	case err != nil:
		return err
	case answer == idempotency.Finished:
		return nil
	}
	var id string
	if err := tx.QueryRowContext(ctx, render(e.s.prefix, `SELECT id FROM belfry_store`, nil)).Scan(&id); err != nil {
		return err
	}
	if id != e.s.id {
		return errElsewhere
	}
	return completion.Overtaken(e.o, "it is not running with this fence any more")
}

// conflict reports whether another transaction was in the way, which may be the one that took the run up.
func conflict(err error) bool {
	var m *driver.MySQLError
	return errors.As(err, &m) && (m.Number == checkRead || m.Number == deadlock || m.Number == lockWaitTimeout)
}

// settle finds out what became of a commit that failed. An error that the server gave is a rollback.
func (e *effect) settle(ctx context.Context, failed error) error {
	var m *driver.MySQLError
	if errors.As(failed, &m) && m.Number != shutdown && m.Number != killed {
		row, asked := e.look(ctx, "")
		return completion.Refused(e.o, row, asked, failed)
	}
	// The transaction would still have its row locked.
	row, asked := e.look(ctx, ` LOCK IN SHARE MODE`)
	return completion.Unanswered(e.o, row, asked, failed)
}

// look reads the run outside of the transaction.
func (e *effect) look(ctx context.Context, lock string) (row completion.Row, err error) {
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	id := e.done.ID
	err = e.s.write(brief, func(t *tx) (err error) {
		row.Found, err = t.get([]any{&row.State, &row.Outcome, &row.Fence}, `SELECT state, outcome, fence FROM belfry_run
WHERE space = (SELECT id FROM belfry_space WHERE name = ?) AND due = ? AND job = ? AND run_key = ? AND request = ?`+lock,
			e.o.Namespace, id.Due.Unix(), id.Job, []byte(id.Key), []byte(id.Request))
		return err
	})
	return row, err
}
