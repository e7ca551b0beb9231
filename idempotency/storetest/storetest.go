// Package storetest is the suite that every store passes. Each law of the
// contract in package idempotency is a subtest with a name of its own; its
// comment says which page of the design it comes from: F and R numbers are the
// run protocol's, I and F-two-digit numbers the fault catalogue's.
//
// What it does not show: that acknowledged writes survive a loss of power, that
// a call ends at its deadline when the store hangs, and what becomes of calls
// when the store's process is killed. Each driver has tests of its own for it.
package storetest

import (
	"context"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// Store is what the suite tests, with all powers: it reads what was written through History. The laws of
// idempotency.Leaders are skipped where it has not that one.
type Store interface {
	idempotency.Store
	idempotency.History
	idempotency.Control
}

// Harness is one empty store for one subtest. Whoever opened it closes it, in
// t.Cleanup.
type Harness struct {
	Store Store

	// Second opens another handle on the same data, as another process has one.
	// Nil: the driver has none, and Store is shared.
	Second func(t *testing.T) Store

	// Reopen closes all handles and opens the same data again. Nil: the driver
	// forgets.
	Reopen func(t *testing.T) Store

	// Advance moves the store's clock, which stands still otherwise. Nil: the
	// clock runs by itself, and the suite waits.
	Advance func(d time.Duration)

	// Effect is what Stress finishes runs with. Nil: by Finish.
	Effect *Effect
}

// Effect is a driver's way to end a run in the transaction of its effect.
type Effect struct {
	// Apply commits one more effect of the occurrence and, in the same transaction, ends its run as done. Where another
	// holder has overtaken this one it commits nothing, and its error wraps jobs.ErrOvertaken.
	Apply func(ctx context.Context, s Store, o jobs.Occurrence) error

	// Count returns how many effects were committed, by key.
	Count func(ctx context.Context) (map[string]int, error)
}

// law is one subtest.
type law struct {
	name string
	test func(b *bundle)
}

// Run tests the store that open opens anew for each subtest. The subtests run
// in parallel.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for _, area := range []struct {
		name string
		laws []law
	}{
		{"Session", sessionLaws}, {"Declare", declareLaws}, {"Decide", decideLaws}, {"Lag", lagLaws},
		{"Claim", claimLaws}, {"TakeUp", takeUpLaws}, {"Repeat", repeatLaws}, {"Fence", fenceLaws}, {"Finish", finishLaws},
		{"Overlap", overlapLaws}, {"Newer", newerLaws}, {"Cancel", cancelLaws}, {"Retire", retireLaws},
		{"Pass", passLaws}, {"Prune", pruneLaws}, {"Bytes", byteLaws}, {"Batch", batchLaws},
		{"History", historyLaws}, {"Overview", overviewLaws},
		{"Control", controlLaws}, {"Pause", pauseLaws}, {"Trigger", triggerLaws}, {"Skip", skipLaws}, {"Backfill", backfillLaws},
		{"Lead", leadLaws}, {"Term", termLaws},
		{"Race", raceLaws},
	} {
		t.Run(area.name, func(t *testing.T) {
			t.Parallel()
			for _, l := range area.laws {
				t.Run(l.name, func(t *testing.T) {
					t.Parallel()
					hold(t, open, l)
				})
			}
		})
	}
}

// hold runs a law. Where the clock cannot be moved, a law that needs a session
// to lapse opens one with a short lease; on a slow machine that may end before
// the law is ready for it, and then the law is begun anew with a longer one.
func hold(t *testing.T, open func(t *testing.T) Harness, l law) {
	const first, last = 300 * time.Millisecond, 20 * time.Second
	for lease := first; lease < last; lease *= 4 {
		if attempt(&bundle{T: t, Harness: open(t), lease: lease}, l) {
			return
		}
	}
	t.Fatalf("a session with a lease of %v lapsed before the test needed it", last)
}

// tooShort is the panic of a law whose short session lapsed too early.
type tooShort struct{}

func attempt(b *bundle, l law) (ok bool) {
	defer func() {
		if x := recover(); x != nil {
			if _, short := x.(tooShort); !short {
				panic(x)
			}
		}
	}()
	l.test(b)
	return true
}
