package demo

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// history is a store's, from slices.
type history struct {
	idempotency.History // nil: nothing else is asked
	runs                []idempotency.Run
	ranges              []idempotency.Range
	err                 error
}

func (h history) List(context.Context, idempotency.Filter) iter.Seq2[idempotency.Run, error] {
	return sequence(h.runs, h.err)
}

func (h history) Ranges(context.Context, string, string) iter.Seq2[idempotency.Range, error] {
	return sequence(h.ranges, h.err)
}

func sequence[T any](list []T, err error) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, v := range list {
			if !yield(v, nil) {
				return
			}
		}
		if err != nil {
			var zero T
			yield(zero, err)
		}
	}
}

var night = time.Unix(1_790_000_000, 0).UTC()

func run(i int, state idempotency.State, outcome idempotency.Outcome) idempotency.Run {
	return idempotency.Run{ID: idempotency.ID{Job: jobName, Key: customer(i), Due: night}, State: state, Outcome: outcome,
		Reason: "why", Started: night.Add(time.Duration(i) * time.Second)}
}

func paid(i int, at time.Time, first bool) call {
	return call{Key: customer(i) + at.String(), charge: charge{Customer: customer(i), Night: at, Replica: "replica-1", Pid: 1}, First: first}
}

// TestCount has a customer for each thing that can go wrong, in either source.
func TestCount(t *testing.T) {
	t.Parallel()
	crashed := run(1, idempotency.Ended, idempotency.Done)
	crashed.Crashes = 2
	h := history{
		runs: []idempotency.Run{
			crashed,
			run(2, idempotency.Ended, idempotency.Done),
			run(3, idempotency.Ended, idempotency.Done), // done, not charged
			run(4, idempotency.Ended, idempotency.Failed),
			run(5, idempotency.Ended, idempotency.Skipped),
			run(6, idempotency.Waiting, 0),
			run(7, idempotency.Running, 0), // charged, not done
		},
		ranges: []idempotency.Range{{Job: jobName, Count: 1, Outcome: idempotency.Missed, Reason: "late"}},
	}
	r, err := readRows(t.Context(), h, "demo")
	if err != nil {
		t.Fatal(err)
	}
	tally := newTally([]time.Time{night})
	for _, c := range []call{
		paid(1, night, true), paid(1, night, false), // a repeat is harmless
		paid(2, night, true), paid(2, night, true), // twice
		paid(7, night, true),
		paid(1, night.Add(time.Hour), true), // a night that was not planned
	} {
		tally.add(c)
	}
	got := count(Options{Replicas: 3, Customers: 8, Nights: 1}, []time.Time{night}, tally, r)
	want := Result{Replicas: 3, Customers: 8, Nights: 1, Due: 8, Done: 3, ProviderCalls: 6, Charges: 5, DoubleCharges: 2,
		Missed: 6, Takeups: 2, MaxLatenessMS: 3000}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got.Good() || tally.once() != 2 {
		t.Errorf("good: %t, charged once: %d", got.Good(), tally.once())
	}
	text := story{Result: got, once: tally.once(), other: r.other}.text()
	for _, part := range []string{"8 renewals due, 2 charged once, 2 twice, 6 missed.", "1 failed (why).", "1 skipped (why).", "1 still waiting (why).", "1 still running.", "1 whole nights skipped or missed (late)."} {
		if !strings.Contains(text, part) {
			t.Errorf("the summary does not say %q:\n%s", part, text)
		}
	}
}

func TestGood(t *testing.T) {
	t.Parallel()
	good := Result{Due: 3, Done: 3, Charges: 3, ProviderCalls: 9, Kills: 1, RefusedClaims: 5}
	if !good.Good() {
		t.Error("all done once is not good")
	}
	for _, change := range []func(*Result){
		func(r *Result) { r.DoubleCharges = 1 }, func(r *Result) { r.Missed = 1 }, func(r *Result) { r.Done = 2 },
	} {
		bad := good
		if change(&bad); bad.Good() {
			t.Errorf("%+v is good", bad)
		}
	}
}

func TestReadRowsPassesErrorsOn(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk is gone")
	if _, err := readRows(t.Context(), history{err: broken}, "demo"); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

func TestJSON(t *testing.T) {
	t.Parallel()
	got, err := json.Marshal(Result{"postgres", 3, 1000, 3, 3000, 3000, 3047, 3000, 0, 0, 1, 12, 61, 2810, 1420})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"store":"postgres","replicas":3,"customers":1000,"nights":3,"due":3000,"done":3000,"provider_calls":3047,"charges":3000,"double_charges":0,"missed":0,"kills":1,"refused_claims":12,"takeups":61,"max_lateness_ms":2810,"handover_ms":1420}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	s := story{Result: Result{"postgres", 3, 1000, 3, 3000, 3000, 3047, 3000, 0, 0, 1, 12, 61, 2810, 1420}, once: 3000,
		killed: []string{"replica-2"}, peak: 31 << 20, kept: "here"}
	const want = `3 nights, 1,000 customers: 3,000 renewals due, 3,000 charged once, 0 twice, 0 missed.
replica-2 was killed in the second night and started again; 61 runs left unfinished were taken up.
1.4 s after a kill at most, another process charged a customer that the killed one owned.
The provider was called 3,047 times, 47 of them for a charge that it had made already (the caller died before it wrote that down): the idempotency key made the repeat harmless.
The latest start was 2.8 s after its due. The store refused 12 claims.
Each refused claim was for a run that another replica had: it did not start twice.
The largest replica used 31 MB of memory.
The files are in here: the provider's ledger, the store, and a log for each process.
`
	if got := s.text(); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	calm := story{Result: Result{Replicas: 1, Customers: 1, Nights: 1, Due: 1, Done: 1, ProviderCalls: 1, Charges: 1}, once: 1}
	const short = `1 night, 1 customer: 1 renewal due, 1 charged once, 0 twice, 0 missed.
The latest start was 0.0 s after its due. The store refused 0 claims.
`
	if got := calm.text(); got != short {
		t.Errorf("got:\n%s\nwant:\n%s", got, short)
	}
}
