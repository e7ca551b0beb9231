package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// While another holds the write lock, what writes ends with its context and can
// be repeated; what loses or only reads never notices.
func TestLockHeldByAnother(t *testing.T) {
	t.Parallel()
	path := file(t)
	s := openAt(t, path, nil, time.Now)
	w := newWorker(t, s)
	w.claim(t, 0, 100)
	other := raw(t, path)
	run(t, other, `BEGIN IMMEDIATE`)

	lost, err := w.tryClaim(t.Context(), 0, 100)
	if err != nil || len(lost) != 0 {
		t.Fatalf("a batch that only loses: %d won, %v", len(lost), err)
	}
	if _, err := s.Lagging(t.Context(), w.session, idempotency.LagQuery{Limit: 10}); err != nil {
		t.Fatalf("lagging: %v", err)
	}
	if n, err := s.Prune(t.Context(), w.session, 10); n != 0 || err != nil {
		t.Fatalf("prune with nothing to remove: %d, %v", n, err)
	}
	if n := count(t, s); n != 100 {
		t.Fatalf("%d rows", n)
	}
	for name, call := range map[string]func(context.Context) error{
		"Claim":        func(ctx context.Context) error { _, err := w.tryClaim(ctx, 100, 1); return err },
		"RenewSession": func(ctx context.Context) error { _, err := s.RenewSession(ctx, w.session); return err },
		"Open": func(ctx context.Context) error {
			s, err := Open(ctx, path, nil)
			if err == nil {
				s.Close()
			}
			return err
		},
	} {
		// On a slow machine a short deadline ends before it gets to the lock.
		const first, last = 100 * time.Millisecond, 20 * time.Second
		err := error(nil)
		for d := first; d < last && !strings.Contains(fmt.Sprint(err), "another process held its lock"); d *= 4 {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			err = call(ctx)
			cancel()
			if !errors.Is(err, context.DeadlineExceeded) {
				break
			}
		}
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "another process held its lock") {
			t.Errorf("%s: %v, want the deadline's end and why", name, err)
		}
	}
	if n := count(t, s); n != 100 {
		t.Fatalf("%d rows after calls that failed", n)
	}

	// A call that waits goes on as soon as the lock is free.
	var wg sync.WaitGroup
	wg.Go(func() {
		if f, err := w.tryClaim(t.Context(), 100, 1); err != nil || len(f) != 1 {
			t.Errorf("after the wait: %d won, %v", len(f), err)
		}
	})
	run(t, other, `ROLLBACK`)
	wg.Wait()
}

// A batch that only loses still moves its session's pass, and that is all it
// writes; over a due that was closed meanwhile there is nothing to move.
func TestLosingClaimMovesThePass(t *testing.T) {
	t.Parallel()
	c := newClock()
	s := openAt(t, file(t), nil, c.Now)
	w := newWorker(t, s)
	w.claim(t, 0, 3)
	save := func(finished byte) {
		v, err := s.SavePass(t.Context(), w.session, []idempotency.Pass{{Job: job, Due: w.due, Finished: []byte{finished}}})
		if err != nil || v[0] != idempotency.Won {
			t.Fatalf("pass: %v %v", v, err)
		}
	}
	moved := func() time.Time {
		lag, err := s.Lagging(t.Context(), w.session, idempotency.LagQuery{})
		if err != nil || len(lag.Open) != 1 || len(lag.Open[0].Passes) != 1 {
			t.Fatalf("lag %+v %v", lag, err)
		}
		return lag.Open[0].Passes[0].MovedAt
	}
	lose := func() {
		if f, err := w.tryClaim(t.Context(), 0, 3); err != nil || len(f) != 0 {
			t.Fatalf("%d won, %v", len(f), err)
		}
	}
	save(1)
	before := moved()
	c.Advance(time.Second)
	lose()
	if got := moved(); !got.Equal(before.Add(time.Second)) {
		t.Errorf("the pass moved at %v, want %v", got, before.Add(time.Second))
	}
	save(0xff)
	if closed, err := s.CloseDue(t.Context(), w.session, job, w.due, nil); !closed || err != nil {
		t.Fatalf("close: %v %v", closed, err)
	}
	lose()
}

// An urgent call, such as a renewal, waits for at most the call in progress and
// the one at the head of this process's queue.
func TestUrgentOvertakesTheQueue(t *testing.T) {
	t.Parallel()
	path := file(t)
	synctest.Test(t, func(t *testing.T) {
		s := openAt(t, path, nil, time.Now)
		var wg sync.WaitGroup
		leave, order := make(chan struct{}), make(chan string, 21)
		enter := func(name string, urgent bool) {
			wg.Go(func() {
				if err := s.write(t.Context(), urgent, func(*tx) error { order <- name; return nil }); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		wg.Go(func() { s.write(t.Context(), false, func(*tx) error { <-leave; return nil }) })
		synctest.Wait()
		for range 20 {
			enter("queue", false)
		}
		enter("urgent", true)
		close(leave)
		wg.Wait()
		if a, b := <-order, <-order; a != "urgent" && b != "urgent" {
			t.Error("the urgent call waited for the queue")
		}
	})
}

// The log is cut back although there is always somebody who reads.
func TestLogStaysSmall(t *testing.T) {
	t.Parallel()
	path := file(t)
	s := openAt(t, path, nil, time.Now)
	w := newWorker(t, s)
	const pages = 100 // instead of walPages, which takes long to fill
	c := <-s.writer
	if err := c.run(t.Context(), `PRAGMA wal_autocheckpoint = 100`); err != nil {
		t.Fatal(err)
	}
	s.writer <- c
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for ctx.Err() == nil {
				for range s.List(ctx, idempotency.Filter{Namespace: "ns", Limit: 600}) {
					continue
				}
			}
		})
	}
	written := int64(0)
	for i := range 60 {
		w.claim(t, i*100, 100)
		if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > written {
			written = info.Size()
		}
	}
	cancel()
	wg.Wait()
	if most := int64(20 * pages * 4096); written > most {
		t.Errorf("the log grew to %d bytes, want at most %d", written, most)
	}
}
