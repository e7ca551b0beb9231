package scheduler

import (
	"context"
	"fmt"
	"iter"
	"runtime/debug"
	"time"

	"github.com/belfry-go/belfry/internal/core"
	"github.com/belfry-go/belfry/jobs"
)

// reader pulls keys out of a KeySource in batches. One goroutine uses it.
type reader struct {
	pull func() (string, error, bool)
	stop func()
}

// linger is how long keys that came may wait for more to fill their batch.
const linger = 10 * time.Millisecond

func newReader(ctx context.Context, source jobs.KeySource, r jobs.KeyRange) *reader {
	pull, stop := iter.Pull2(safely(source, ctx, r))
	return &reader{pull: pull, stop: stop}
}

// next returns up to most keys, fewer when the source is slow. It blocks until the source yields or ends.
func (r *reader) next(most int) core.Streamed {
	var e core.Streamed
	var first time.Time
	for len(e.Keys) < most {
		key, err, ok := r.pull()
		switch {
		case !ok:
			e.End = true
			return e
		case err != nil:
			e.End, e.Err = true, err
			return e
		}
		e.Keys = append(e.Keys, key)
		if first.IsZero() {
			first = time.Now()
		} else if time.Since(first) > linger {
			return e
		}
	}
	return e
}

// safely is the source's sequence, with a panic of the source as its last error.
func safely(source jobs.KeySource, ctx context.Context, r jobs.KeyRange) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		stopped := false
		defer func() {
			if v := recover(); v != nil && !stopped {
				yield("", fmt.Errorf("panic in the KeySource: %v\n\n%s", v, debug.Stack()))
			}
		}()
		for key, err := range source.Keys(ctx, r) {
			if stopped = !yield(key, err); stopped || err != nil {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			stopped = !yield("", err) // a source that was cut short has not ended
		}
	}
}
