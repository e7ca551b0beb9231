package sqlite

import (
	"context"
	"errors"
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
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		err := call(ctx)
		cancel()
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
