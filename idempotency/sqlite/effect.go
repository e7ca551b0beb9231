package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/completion"
	"github.com/belfry-go/belfry/jobs"
)

const (
	// effectWithin is how long an effect may hold the file's only write lock. Renewals of all replicas wait for it, and
	// a session with the default lease outlives that.
	effectWithin = 5 * time.Second

	// settleWithin is how long to ask what became of a commit that failed.
	settleWithin = 5 * time.Second
)

var (
	errNoStore   = errors.New("the store is nil; give it the one that Open returned")
	errNoEffect  = errors.New("the function is nil; give it one that writes the effect")
	errNoTx      = errors.New("the transaction is nil; begin one in the store's file")
	errHeld      = fmt.Errorf("the transaction held the file's only write lock for %v and was rolled back; do what takes long before it", effectWithin)
	errEndedByF  = errors.New("the function ended the transaction itself: its effect may have been committed without the completion; let it only return")
	errElsewhere = errors.New("the transaction is not of the store's file; open it in the same file")
)

// InTx runs f in a transaction that also completes the run o: both are
// committed, or neither. So the effect of an occurrence happens once, whatever
// crashes, pauses and repeats there are. Call it from a handler, with the
// handler's ctx and occurrence, once; after it has returned nil the run is
// done, whatever the handler returns.
//
// The transaction is one of the store's own connection, so that f reaches the
// tables of the application which lie in the store's file; it leaves belfry_
// tables alone, ends no transaction, changes no setting and attaches nothing.
// SQLite has one writer: until InTx returns nobody writes to the file, neither
// other calls of the store nor, in f, another connection of the application,
// which would wait for this very transaction. So f does nothing but write; what
// takes long, such as a call to another service, comes before InTx. After 5 s,
// or when ctx ends, it is rolled back even while f is still busy.
//
// An error of f is returned as it is, and a panic goes on, both after a
// rollback. An error that wraps jobs.ErrOvertaken says that the run is another
// holder's by now: nothing was written, and the handler returns. Any other
// error says that nothing was written either, but one of a commit of which it
// is not known: that says so, and then the store's record of the run decides,
// and a repeat is safe.
func InTx(ctx context.Context, s *Store, o jobs.Occurrence, f func(tx *sql.Tx) error) error {
	switch {
	case s == nil:
		return fmt.Errorf("sqlite: InTx: %w", errNoStore)
	case f == nil:
		return fmt.Errorf("sqlite: InTx: %w", errNoEffect)
	}
	done, err := completion.Of(o)
	if err != nil {
		return fmt.Errorf("sqlite: InTx: %w", err)
	}
	end, err := completion.Begin(ctx, o)
	if err != nil {
		return fmt.Errorf("sqlite: InTx: %w", err)
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
// returns nil, and rolls back if not. The transaction is of the application's
// own handle, in the store's file; begun with "begin immediate" it cannot fail
// for having read before another wrote. An error that wraps jobs.ErrOvertaken
// says that the run is another holder's by now.
//
// The handler then returns nil where the commit succeeded. Where it failed, it
// returns the error: the store's record of the run decides.
func Complete(ctx context.Context, tx *sql.Tx, s *Store, o jobs.Occurrence) error {
	switch {
	case s == nil:
		return fmt.Errorf("sqlite: Complete: %w", errNoStore)
	case tx == nil:
		return fmt.Errorf("sqlite: Complete: %w", errNoTx)
	}
	done, err := completion.Of(o)
	if err == nil {
		err = completion.Join(ctx, o)
	}
	if err != nil {
		return fmt.Errorf("sqlite: Complete: %w", err)
	}
	won, err := s.complete(ctx, tx, o.Namespace, done)
	if err == nil && !won {
		err = s.refused(ctx, tx, o)
	}
	if err != nil {
		return fmt.Errorf("sqlite: Complete: %w", err)
	}
	return nil
}

// complete ends a running run in any transaction, and reports whether it was this fence's.
func (s *Store) complete(ctx context.Context, tx *sql.Tx, namespace string, f idempotency.Finish) (bool, error) {
	r, err := tx.ExecContext(ctx, `UPDATE belfry_run SET `+finishSet+`
WHERE space = (SELECT id FROM belfry_space WHERE name = ?) AND `+finishWhere, append(finishArgs(f, s.now()), namespace, f.ID.Due.Unix(),
		f.ID.Job, []byte(f.ID.Key), []byte(f.ID.Request), f.Fence)...)
	if err != nil {
		return false, err
	}
	n, err := r.RowsAffected()
	return n == 1, err
}

// refused says why a completion changed no row.
func (s *Store) refused(ctx context.Context, tx *sql.Tx, o jobs.Occurrence) error {
	var id string
	err := tx.QueryRowContext(ctx, `SELECT id FROM belfry_store`).Scan(&id)
	switch {
	case err != nil:
		return err
	case id != s.id:
		return errElsewhere
	}
	return completion.Overtaken(o, "it is not running with this fence any more")
}

// effect is one InTx.
type effect struct {
	s    *Store
	o    jobs.Occurrence
	done idempotency.Finish
}

// run takes the writer, and gives it back at the latest when the time is over, even if f is busy then: a transaction that
// has ended reaches the connection no more.
func (e *effect) run(ctx context.Context, f func(*sql.Tx) error) error {
	c, free, err := e.s.takeWriter(ctx)
	if err != nil {
		return err
	}
	hold, cancel := context.WithTimeoutCause(ctx, effectWithin, errHeld)
	defer cancel()
	tx, err := c.begin(hold)
	if err != nil {
		free()
		return e.s.explain(err)
	}
	leave := sync.OnceFunc(func() {
		_ = tx.Rollback() // nothing, where it was committed
		// Where the commit failed, SQLite may have it open still.
		_ = c.run(context.Background(), "ROLLBACK")
		free()
	})
	stop := context.AfterFunc(hold, leave)
	defer func() {
		if stop() {
			leave()
		}
	}()
	if err := e.write(hold, tx, f); err != nil {
		if hold.Err() != nil && !errors.Is(err, jobs.ErrOvertaken) {
			return fmt.Errorf("sqlite: InTx: %w: %w", context.Cause(hold), err)
		}
		return err
	}
	// From here on nobody else ends the transaction: a rollback beside a commit could hit what came after it.
	if !stop() {
		return fmt.Errorf("sqlite: InTx: %w", context.Cause(hold))
	}
	defer leave()
	err = tx.Commit()
	if err == nil {
		return nil
	}
	leave() // before it is asked what is in the file
	return e.settle(ctx, errors.Join(context.Cause(hold), err))
}

// write writes the effect, and then the completion.
func (e *effect) write(ctx context.Context, tx *sql.Tx, f func(*sql.Tx) error) error {
	if err := f(tx); err != nil {
		return err
	}
	won, err := e.s.complete(ctx, tx, e.o.Namespace, e.done)
	switch {
	case errors.Is(err, sql.ErrTxDone) && ctx.Err() == nil:
		return fmt.Errorf("sqlite: InTx: %w", errEndedByF)
	case err != nil:
		return e.s.explain(err)
	case !won:
		return fmt.Errorf("sqlite: InTx: %w", completion.Overtaken(e.o, "it is not running with this fence any more"))
	}
	return nil
}

// settle finds out what became of a commit that failed.
func (e *effect) settle(ctx context.Context, failed error) error {
	brief, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleWithin)
	defer cancel()
	id := e.done.ID
	var state idempotency.State
	var outcome idempotency.Outcome
	var fence int64
	found := false
	err := e.s.read(brief, func(t *tx) (err error) {
		found, err = t.get([]any{&state, &outcome, &fence}, `SELECT state, outcome, fence FROM belfry_run
WHERE space = (SELECT id FROM belfry_space WHERE name = ?) AND due = ? AND job = ? AND key = ? AND request = ?`,
			e.o.Namespace, id.Due.Unix(), id.Job, []byte(id.Key), []byte(id.Request))
		return err
	})
	row := completion.Row{Found: found, State: state, Outcome: outcome, Fence: fence}
	failed = fmt.Errorf("sqlite: InTx: %w", failed)
	if errors.Is(failed, sql.ErrTxDone) {
		return completion.Refused(e.o, row, err, failed)
	}
	return completion.Unanswered(e.o, row, err, failed) // by now it is rolled back, if it was not done
}

// takeWriter waits for its turn and the writer; free gives both back.
func (s *Store) takeWriter(ctx context.Context) (c *conn, free func(), err error) {
	select {
	case s.turn <- struct{}{}:
	case <-s.closed:
		return nil, nil, s.explain(errClosed)
	case <-ctx.Done():
		return nil, nil, s.explain(ctx.Err())
	}
	select {
	case c := <-s.writer:
		return c, func() { s.writer <- c; <-s.turn }, nil
	case <-s.closed:
		err = errClosed
	case <-ctx.Done():
		err = ctx.Err()
	}
	<-s.turn
	return nil, nil, s.explain(err)
}

// begin begins a write transaction as the application knows one. Its context is not ctx: database/sql would give up
// the connection when that ends.
func (c *conn) begin(ctx context.Context) (tx *sql.Tx, err error) {
	err = untilFree(ctx, func() error {
		tx, err = c.c.BeginTx(context.Background(), nil)
		return err
	})
	return tx, err
}
