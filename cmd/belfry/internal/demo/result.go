package demo

import (
	"context"
	"fmt"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// Result is what the demo found, in the form of --json. What was charged is counted in the provider's ledger, what
// was done in the rows of the store. A claim that is refused leaves no row: replicas report theirs.
type Result struct {
	Store         string `json:"store"` // its kind: sqlite, postgres or mysql
	Replicas      int    `json:"replicas"`
	Customers     int    `json:"customers"`
	Nights        int    `json:"nights"`
	Due           int    `json:"due"`            // nights x customers
	Done          int    `json:"done"`           // runs that the store holds as done
	ProviderCalls int    `json:"provider_calls"` // the ledger's lines
	Charges       int    `json:"charges"`        // calls that took money
	DoubleCharges int    `json:"double_charges"` // charges beyond one for a customer and night
	Missed        int    `json:"missed"`         // customers and nights without a charge, or without a done run
	Kills         int    `json:"kills"`          // SIGKILLs
	RefusedClaims int    `json:"refused_claims"` // as replicas reported them
	Takeups       int    `json:"takeups"`        // of runs whose holder had died, by the rows' crash counts
	MaxLatenessMS int64  `json:"max_lateness_ms"`
	HandoverMS    int64  `json:"handover_ms"`
}

// Good reports whether every renewal was made once.
func (r Result) Good() bool {
	return r.DoubleCharges == 0 && r.Missed == 0 && r.Due == r.Done
}

// rows is what the store's history says of the job.
type rows struct {
	done    map[visit]bool
	crashes int
	late    time.Duration  // the most from a due to the start of its last claim
	other   map[string]int // runs and dues that are not done, by what they are
}

func readRows(ctx context.Context, h idempotency.History, namespace string) (rows, error) {
	r := rows{done: map[visit]bool{}, other: map[string]int{}}
	for run, err := range h.List(ctx, idempotency.Filter{Namespace: namespace, Job: jobName}) {
		if err != nil {
			return rows{}, fmt.Errorf("demo: history: %w", err)
		}
		r.crashes += run.Crashes
		if run.State != idempotency.Ended || run.Outcome != idempotency.Done {
			r.other[describe(run)]++
			continue
		}
		r.done[visit{run.ID.Key, run.ID.Due.Unix()}] = true
		r.late = max(r.late, run.Started.Sub(run.ID.Due))
	}
	for g, err := range h.Ranges(ctx, namespace, jobName) {
		if err != nil {
			return rows{}, fmt.Errorf("demo: history: %w", err)
		}
		r.other["whole nights skipped or missed ("+g.Reason+")"] += int(g.Count)
	}
	return r, nil
}

// describe says what a run that is not done is instead.
func describe(r idempotency.Run) string {
	switch {
	case r.State == idempotency.Waiting:
		return "still waiting (" + r.Reason + ")"
	case r.State == idempotency.Running:
		return "still running"
	case r.Outcome == idempotency.Skipped:
		return "skipped (" + r.Reason + ")"
	case r.Outcome == idempotency.Missed:
		return "missed (" + r.Reason + ")"
	}
	return "failed (" + r.Reason + ")"
}

// count joins the two sources. It leaves kills, refused claims and hand-over to the show, which saw them.
func count(o Options, nights []time.Time, t *tally, r rows) Result {
	res := Result{
		Replicas: o.Replicas, Customers: o.Customers, Nights: o.Nights,
		Due: o.Nights * o.Customers, Done: len(r.done),
		ProviderCalls: t.calls, Charges: t.charges, DoubleCharges: t.double(),
		Takeups: r.crashes, MaxLatenessMS: r.late.Milliseconds(),
	}
	for _, n := range nights {
		for i := 1; i <= o.Customers; i++ {
			v := visit{customer(i), n.Unix()}
			if t.paid[v] == 0 || !r.done[v] {
				res.Missed++
			}
		}
	}
	return res
}
