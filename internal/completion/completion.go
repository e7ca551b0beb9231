// Package completion is how a driver, which completes a run in a transaction of the handler's, and the scheduler, which
// waits for the handler to return, know of each other: by a mark that the handler's context carries.
//
// The store alone decides whether a run is done. The mark only saves the scheduler from asking, and catches a handler
// that completes its run twice or a run of another.
package completion

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// Mark is one handler call's. It is safe for concurrent use.
type Mark struct {
	of string // the occurrence's ID and fence

	mu        sync.Mutex
	busy      bool // a transaction is under way
	committed bool
}

type contextKey struct{}

// With returns the context of a handler call for o, and the mark in it.
func With(ctx context.Context, o jobs.Occurrence) (context.Context, *Mark) {
	m := &Mark{of: name(o)}
	return context.WithValue(ctx, contextKey{}, m), m
}

// Committed reports whether the run's completion was committed: whatever its handler returns, the run is done.
func (m *Mark) Committed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.committed
}

var (
	errEfficiency = errors.New("an efficiency job's run is in no store, so there is nothing to complete; set Guarantee: jobs.Correctness")
	errOther      = errors.New("the context is of another run than the occurrence; give both as the handler got them")
	errBusy       = errors.New("another InTx of this run is under way; a run has one transaction")
	errTwice      = errors.New("this run was completed already; a run has one transaction, put all effects into it")
)

// Of is the finish of a run that its handler completes.
func Of(o jobs.Occurrence) (idempotency.Finish, error) {
	f := idempotency.Finish{
		ID:    idempotency.ID{Job: o.Job, Key: o.Key, Request: o.Request, Due: o.Due},
		Fence: o.Fence, Outcome: idempotency.Done, Attempt: o.Attempt,
	}
	if o.Fence == 0 {
		return f, errEfficiency
	}
	return f, errors.Join(idempotency.CheckNamespace(o.Namespace), f.Validate())
}

// Begin is called before a transaction that completes o; end is to be called after it, once. A context without a mark is
// not of a handler call, or came by ways that lost it: then nobody is told.
func Begin(ctx context.Context, o jobs.Occurrence) (end func(committed bool), err error) {
	m, err := find(ctx, o)
	if m == nil || err != nil {
		return func(bool) {}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.committed:
		return nil, errTwice
	case m.busy:
		return nil, errBusy
	}
	m.busy = true
	return func(committed bool) {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.busy, m.committed = false, committed
	}, nil
}

// Join is called before a run is completed in a transaction that the handler ends: whether it commits, nobody learns here.
func Join(ctx context.Context, o jobs.Occurrence) error {
	m, err := find(ctx, o)
	if err == nil && m != nil && m.Committed() {
		return errTwice
	}
	return err
}

// find returns nil where ctx has no mark.
func find(ctx context.Context, o jobs.Occurrence) (*Mark, error) {
	m, _ := ctx.Value(contextKey{}).(*Mark)
	if m != nil && m.of != name(o) {
		return nil, errOther
	}
	return m, nil
}

func name(o jobs.Occurrence) string { return fmt.Sprintf("%s %d", o.ID(), o.Fence) }

// Overtaken is the error of a run that is not its caller's any more, and why. It wraps jobs.ErrOvertaken.
func Overtaken(o jobs.Occurrence, why string) error {
	return fmt.Errorf("%s with fence %d: %s; nothing of this transaction may stay: %w", o.ID(), o.Fence, why, jobs.ErrOvertaken)
}

// Row is what became of a run, as read outside of the transaction that was to complete it.
type Row struct {
	Found   bool
	State   idempotency.State
	Outcome idempotency.Outcome
	Fence   int64
}

// Refused is the result of a transaction that was certainly rolled back, since the database refused it with an error:
// the run may have been overtaken, which databases say in many ways, or the conflict is the handler's own. asked is the
// error of reading the row.
func Refused(o jobs.Occurrence, r Row, asked, refused error) error {
	if asked != nil || r.Found && r.Fence == o.Fence && r.State == idempotency.Running {
		return refused
	}
	return lost(o, r)
}

// Unanswered is the result of a transaction whose commit was not answered. The row was read under a lock which that
// transaction would still hold if it had not ended.
func Unanswered(o jobs.Occurrence, r Row, asked, failed error) error {
	switch {
	case asked != nil:
		return fmt.Errorf("%s: the commit was not answered, and it is not known whether it was done; the store's record of the run decides: %w", o.ID(), errors.Join(failed, asked))
	case r.Found && r.Fence == o.Fence && r.State == idempotency.Ended && r.Outcome == idempotency.Done:
		return nil
	case r.Found && r.Fence == o.Fence && r.State == idempotency.Running:
		return fmt.Errorf("%s: the commit was not answered, and was not done: %w", o.ID(), failed)
	}
	return lost(o, r)
}

// lost says how a run ceased to be its holder's.
func lost(o jobs.Occurrence, r Row) error {
	switch {
	case !r.Found:
		return Overtaken(o, "it is not in the store any more")
	case r.Fence != o.Fence:
		return Overtaken(o, fmt.Sprintf("fence %d holds it", r.Fence))
	}
	return Overtaken(o, "its end was recorded meanwhile")
}
