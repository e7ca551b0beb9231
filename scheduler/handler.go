package scheduler

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/belfry-go/belfry/internal/completion"
	"github.com/belfry-go/belfry/internal/core"
	"github.com/belfry-go/belfry/jobs"
)

// startHandler runs one handler in a goroutine of its own. The core bounds how many there are.
func (r *runner) startHandler(a core.Start) {
	ctx, cancel := context.WithCancelCause(r.base)
	ctx, mark := completion.With(ctx, a.Occurrence)
	ctx = r.tools(ctx, a)
	r.cancels[a.Handle] = cancel
	r.observer.started(a.Occurrence)
	run := a.Job.Run
	r.users.Go(func() {
		ended := core.Ended{Handle: a.Handle}
		defer func() {
			cancel(nil)
			ended.Completed = mark.Committed()
			r.mail.post(ended)
		}()
		guard(&ended, func() error { return run(ctx, a.Occurrence) })
	})
}

// tools gives a handler's context what jobs.Progress and jobs.Logger work with.
func (r *runner) tools(ctx context.Context, a core.Start) context.Context {
	p, o := &progress{handle: a.Handle}, a.Occurrence
	ctx = jobs.WithProgress(ctx, func(note string) { r.mail.progressed(p, note) })
	return jobs.WithLogger(ctx, r.log.With(about(o)...))
}

var errGoexit = errors.New("the handler ended its goroutine (runtime.Goexit) instead of returning")

// guard calls f and notes how it ended: also by a panic, and also by ending its
// goroutine, which recover alone does not see.
func guard(ended *core.Ended, f func() error) {
	handle := ended.Handle
	panicked := func(err error) {
		*ended = core.Return(handle, err)
		ended.Panic = true
	}
	panicked(errGoexit)
	defer func() {
		if v := recover(); v != nil {
			panicked(fmt.Errorf("panic: %v\n\n%s", v, debug.Stack()))
		}
	}()
	*ended = core.Return(handle, f())
}
