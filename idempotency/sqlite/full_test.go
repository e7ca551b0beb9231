package sqlite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// F39: a full file is an error that says so, changes nothing, and is over when
// there is space.
func TestFull(t *testing.T) {
	t.Parallel()
	s := openAt(t, file(t), nil, time.Now)
	w := newWorker(t, s)
	limit := func(pages int) {
		c := <-s.writer
		defer func() { s.writer <- c }()
		if err := c.run(t.Context(), fmt.Sprintf(`PRAGMA max_page_count = %d`, pages)); err != nil {
			t.Fatal(err)
		}
	}
	limit(60)
	fillUp(t, w)
	limit(1 << 20)
	resumes(t, w)
}

// fillUp claims until the store is full, and wants to read what was acknowledged.
func fillUp(t *testing.T, w *worker) {
	t.Helper()
	won := 0
	for {
		f, err := w.tryClaim(t.Context(), won, 100)
		if err != nil {
			if !strings.Contains(err.Error(), "the disk is full; free space") {
				t.Fatalf("after %d rows: %v, want an error that says the disk is full", won, err)
			}
			break
		}
		if won += len(f); won > 100_000 {
			t.Fatal("it never gets full")
		}
	}
	if n := count(t, w.s); n != won {
		t.Fatalf("%d rows, %d were acknowledged", n, won)
	}
	if _, err := w.s.Mine(t.Context(), w.session); err != nil {
		t.Errorf("a read of a full store: %v", err)
	}
}

// resumes repeats the call that failed, and more.
func resumes(t *testing.T, w *worker) {
	t.Helper()
	from := count(t, w.s)
	f := w.claim(t, from, 1000)
	answers, err := w.s.Finish(t.Context(), "ns", f)
	if err != nil || answers[0] != idempotency.Finished {
		t.Fatalf("finish: %v %v", answers, err)
	}
	if err := w.s.quickCheck(t.Context()); err != nil {
		t.Fatal(err)
	}
}
