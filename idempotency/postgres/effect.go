package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

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
// The transaction is begun on the pool that Open was given, with the isolation
// level that is the default there; f may set another one in its first
// statement. The completion comes last, so that the run's row is locked for a
// moment only: whoever wants to take the run up does not wait for f. f ends no transaction.
//
// An error of f is returned as it is, and a panic goes on, both after a rollback. An error that wraps jobs.ErrOvertaken
// says that the run is another holder's by now, at every isolation level: nothing was written, and the handler returns.
// A serialization failure (SQLSTATE 40001) that is the application's own is returned as it is; InTx may be called again
// after it, and so it may after any other error. The commit that was not answered is settled by reading the run; where
// that fails too the error says so, the store's record of the run decides, and a repeat is safe.
func InTx(ctx context.Context, s *Store, o jobs.Occurrence, f func(tx pgx.Tx) error) error {
	switch {
	case s == nil:
		return fmt.Errorf("postgres: InTx: %w", errNoStore)
	case f == nil:
		return fmt.Errorf("postgres: InTx: %w", errNoEffect)
	}
	done, err := completion.Of(o)
	if err != nil {
		return fmt.Errorf("postgres: InTx: %w", err)
	}
	end, err := completion.Begin(ctx, o)
	if err != nil {
		return fmt.Errorf("postgres: InTx: %w", err)
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
// returns nil, and rolls back if not. The transaction is of the store's
// database, on any connection; from then on the server ends it when its client is silent for 5 s. An error that wraps jobs.ErrOvertaken says that
// the run is another holder's by now. Beside that it may be a serialization
// failure of the application's own, or one at the commit: both are the
// application's to repeat.
//
// The handler then returns nil where the commit succeeded. Where it failed, it
// returns the error: the store's record of the run decides.
//
// A transaction of database/sql is one of pgx's underneath, if the driver is
// pgx's stdlib: take the *sql.Conn out of the *sql.DB, begin on the pgx.Conn that
// its Raw method shows, and let both queries and Complete use that; see the example.
func Complete(ctx context.Context, tx pgx.Tx, s *Store, o jobs.Occurrence) error {
	switch {
	case s == nil:
		return fmt.Errorf("postgres: Complete: %w", errNoStore)
	case tx == nil:
		return fmt.Errorf("postgres: Complete: %w", errNoTx)
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
		return fmt.Errorf("postgres: Complete: %w", err)
	}
	return nil
}

// effect is one run that its handler completes.
type effect struct {
	s    *Store
	o    jobs.Occurrence
	done idempotency.Finish
}

func (e *effect) run(ctx context.Context, f func(pgx.Tx) error) error {
	tx, err := e.s.pool.BeginTx(ctx, pgx.TxOptions{AccessMode: pgx.ReadWrite})
	if err != nil {
		return explain(fmt.Errorf("InTx: %w", err))
	}
	defer func() {
		brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackFor)
		defer cancel()
		_ = tx.Rollback(brief) // nothing, where it was committed; where it fails, the pool closes the connection
	}()
	if err := f(tx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("postgres: InTx: %w", context.Cause(ctx))
	}
	if err := e.complete(ctx, tx); err != nil {
		return fmt.Errorf("postgres: InTx: %w", err)
	}
	if err := tx.Commit(ctx); err != nil {
		return e.settle(ctx, fmt.Errorf("postgres: InTx: commit: %w", err))
	}
	return nil
}

// complete ends the run in a transaction. Its error says why that cannot be.
func (e *effect) complete(ctx context.Context, tx pgx.Tx) error {
	// A client that is stopped or cut off before it commits keeps the run locked no longer than that.
	_, err := tx.Exec(ctx, `SELECT set_config('idle_in_transaction_session_timeout', '5s', true)`)
	finished := false
	if err == nil {
		finished, err = e.s.finishIn(ctx, tx, e.o.Namespace, e.done)
	}
	switch {
	case errors.Is(err, pgx.ErrTxClosed):
		return errEndedByF
	case code(err) == serializationFailure:
		row, asked := e.look(ctx, "")
		return completion.Refused(e.o, row, asked, err)
	case err != nil:
		return err
	case finished:
		return nil
	}
	var id string
	if err := tx.QueryRow(ctx, e.s.texts.of(`SELECT id FROM belfry_store`)).Scan(&id); err != nil {
		return err
	}
	if id != e.s.id {
		return errElsewhere
	}
	return completion.Overtaken(e.o, "it is not running with this fence any more")
}

// serializationFailure is the SQLSTATE of a transaction with a snapshot that another one has changed a row of.
const serializationFailure = "40001"

// settle finds out what became of a commit that failed. An error that the server gave while it lives on is a rollback.
func (e *effect) settle(ctx context.Context, failed error) error {
	var p *pgconn.PgError
	if errors.Is(failed, pgx.ErrTxCommitRollback) || errors.As(failed, &p) && p.SeverityUnlocalized == "ERROR" {
		row, asked := e.look(ctx, "")
		return completion.Refused(e.o, row, asked, failed)
	}
	// The transaction would still have its row locked.
	row, asked := e.look(ctx, " FOR SHARE")
	return completion.Unanswered(e.o, row, asked, failed)
}

// look reads the run outside of the transaction.
func (e *effect) look(ctx context.Context, lock string) (row completion.Row, err error) {
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	id := e.done.ID
	err = e.s.write(brief, e.s.calls, func(t *tx) (err error) {
		row.Found, err = t.get([]any{&row.State, &row.Outcome, &row.Fence}, `SELECT state, outcome, fence FROM belfry_run
WHERE space = (SELECT id FROM belfry_space WHERE name = $1) AND due = $2 AND job = $3 AND key = $4 AND request = $5`+lock,
			e.o.Namespace, id.Due, id.Job, []byte(id.Key), []byte(id.Request))
		return err
	})
	return row, err
}
