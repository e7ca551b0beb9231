package scheduler

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/belfry-go/belfry/internal/core"
)

// startHandler runs one handler in a goroutine of its own. The core bounds how many there are.
func (r *runner) startHandler(a core.Start) {
	ctx, cancel := context.WithCancelCause(r.base)
	r.cancels[a.Handle] = cancel
	r.observer.started(a.Occurrence)
	run := a.Job.Run
	r.users.Go(func() {
		ended := core.Ended{Handle: a.Handle}
		defer func() {
			cancel(nil)
			r.mail.post(ended)
		}()
		guard(&ended, func() error { return run(ctx, a.Occurrence) })
	})
}

// guard calls f and notes how it ended: also by a panic, and also by ending its
// goroutine, which recover alone does not see.
func guard(ended *core.Ended, f func() error) {
	ended.Panic = true
	ended.Err = errors.New("the handler ended its goroutine (runtime.Goexit) instead of returning")
	defer func() {
		if v := recover(); v != nil {
			ended.Err = fmt.Errorf("panic: %v\n\n%s", v, debug.Stack())
		}
	}()
	err := f()
	ended.Err, ended.Panic = err, false
}

// stream is one open KeySource.
type stream struct {
	pulls  chan int // room for one: the core pulls anew only after an answer; closed by closeStream
	cancel context.CancelFunc
}

func (r *runner) openStream(a core.OpenStream) {
	ctx, cancel := context.WithCancel(r.base)
	s := &stream{pulls: make(chan int, 1), cancel: cancel}
	r.streams[a.Stream] = s
	r.users.Go(func() {
		read := newReader(ctx, a.Job.Keys, a.Range)
		defer read.stop()
		for most := range s.pulls {
			e := read.next(most)
			e.Stream = a.Stream
			r.mail.post(e)
			if e.End {
				return
			}
		}
	})
}

func (r *runner) closeStream(id int64) {
	if s := r.streams[id]; s != nil {
		delete(r.streams, id)
		s.cancel()
		close(s.pulls)
	}
}
