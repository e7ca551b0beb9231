package scheduler

import (
	"context"
	"time"
)

// term is one term of this replica, while it lasts and until what belongs to it has ended.
type term struct {
	number int64
	ctx    termContext // of the roles
	cancel context.CancelCauseFunc

	// Under roles.mu.
	ended bool        // no role begins any more
	calls int         // roles that are at work, or pause before they are called again
	late  *time.Timer // once it has ended: when those that have not returned are left behind

	quiet chan struct{} // closed when it has ended and its roles have returned
	done  chan struct{} // closed likewise, or when they are left behind
}

// newTerm is a term whose context ends with that of an elector's, or with base, or as soon as it is asked once lapsed says so.
func newTerm(ctx context.Context, number int64, lapsed func() bool) *term {
	t := &term{number: number, quiet: make(chan struct{}), done: make(chan struct{})}
	t.ctx.elector, t.ctx.lapsed = ctx, lapsed
	t.ctx.Context, t.cancel = context.WithCancelCause(ctx)
	t.ctx.cancel = t.cancel
	return t
}

// over says whether the term is over, as of now. A process that was frozen may look before the timer of a deadline does.
func (t *term) over() bool {
	if t.ctx.Err() != nil {
		return true
	}
	deadline, ok := t.ctx.Deadline()
	return ok && !time.Now().Before(deadline)
}

// why says why the term is over.
func (t *term) why() string {
	cause := context.Cause(t.ctx.elector)
	if cause == nil {
		cause = context.Cause(t.ctx)
	}
	switch cause {
	case nil:
		return "the deadline of its term passed"
	case context.Canceled, context.DeadlineExceeded:
		return "the elector ended its term"
	}
	return cause.Error()
}

// termContext is a context of ours whose Err asks the elector's, which may look at the clocks itself, and whether the session has lapsed by
// them: a process that was frozen goes on with its roles as soon as with its loop.
type termContext struct {
	context.Context
	elector context.Context
	lapsed  func() bool
	cancel  context.CancelCauseFunc
}

func (c termContext) Err() error {
	if err := c.elector.Err(); err != nil {
		return err
	}
	if c.lapsed() {
		c.cancel(ErrDeposed)
	}
	return c.Context.Err()
}
