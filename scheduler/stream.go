package scheduler

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/belfry-go/belfry/internal/core"
	"github.com/belfry-go/belfry/jobs"
)

// stream is one open KeySource.
type stream struct {
	pulls  chan int // room for one: the core pulls anew only after an answer; closed by closeStream
	cancel context.CancelFunc
}

// openStream starts two goroutines: one calls the source, which may block, and one
// answers the core's pulls with what came.
func (r *runner) openStream(a core.OpenStream) {
	ctx, cancel := context.WithCancel(r.base)
	s := &stream{pulls: make(chan int, 1), cancel: cancel}
	r.streams[a.Stream] = s
	came := make(chan yield, ahead)
	source := a.Job.Keys
	r.users.Go(func() { read(ctx, source, a.Range, came) })
	r.ours.Go(func() {
		for most := range s.pulls {
			e := collect(ctx, came, most)
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

// yield is what a source yielded; end is set once, after its last key.
type yield struct {
	key string
	err error
	end bool
}

// ahead is how many keys a source may be ahead of the pulls, linger how long
// keys that came wait for more to fill their batch.
const (
	ahead  = 256
	linger = 5 * time.Millisecond
)

// read calls the source and hands on what it yields, until it ends, fails,
// panics, ends its goroutine or ctx ends.
func read(ctx context.Context, source jobs.KeySource, r jobs.KeyRange, to chan<- yield) {
	last := yield{end: true, err: errors.New("the KeySource ended its goroutine (runtime.Goexit) instead of returning")}
	send := func(y yield) bool {
		select {
		case to <- y:
			return true
		case <-ctx.Done():
			return false
		}
	}
	defer func() {
		if v := recover(); v != nil {
			last.err = fmt.Errorf("panic in the KeySource: %v\n\n%s", v, debug.Stack())
		}
		send(last)
	}()
	for key, err := range source.Keys(ctx, r) {
		if err != nil {
			last.err = err
			return
		}
		if !send(yield{key: key}) {
			break
		}
	}
	last.err = ctx.Err() // a source that was cut short has not ended
}

// collect waits for a key, and for a moment for more of them, up to most.
func collect(ctx context.Context, from <-chan yield, most int) core.Streamed {
	var e core.Streamed
	var full <-chan time.Time
	for len(e.Keys) < most {
		select {
		case y := <-from:
			if y.end {
				e.End, e.Err = true, y.err
				return e
			}
			e.Keys = append(e.Keys, y.key)
			if full == nil {
				full = time.After(linger)
			}
		case <-full:
			return e
		case <-ctx.Done():
			e.End, e.Err = true, ctx.Err()
			return e
		}
	}
	return e
}
