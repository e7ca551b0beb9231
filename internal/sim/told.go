package sim

import (
	"context"
	"iter"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/sim/oracle"
)

// What the store's calls say, in the oracle's own words.

func key(id idempotency.ID) oracle.ID {
	return oracle.ID{Job: id.Job, Key: id.Key, Due: id.Due.Unix(), Request: id.Request}
}

func outcome(o idempotency.Outcome) oracle.Outcome {
	switch o {
	case idempotency.Done:
		return oracle.Done
	case idempotency.Failed:
		return oracle.Failed
	case idempotency.Skipped:
		return oracle.Skipped
	case idempotency.Missed:
		return oracle.Missed
	}
	return oracle.None
}

func state(s idempotency.State) oracle.State {
	switch s {
	case idempotency.Waiting:
		return oracle.Waiting
	case idempotency.Running:
		return oracle.Running
	}
	return oracle.Ended
}

func unix(dues []time.Time) []int64 {
	list := make([]int64, len(dues))
	for i, t := range dues {
		list[i] = t.Unix()
	}
	return list
}

func rangeOf(r idempotency.Range) oracle.Range {
	return oracle.Range{From: r.From.Unix(), To: r.To.Unix(), Count: r.Count, Outcome: outcome(r.Outcome), Reason: r.Reason}
}

// rowsOf adds those of runs to a list.
func rowsOf(list []oracle.Row, runs []idempotency.Run) []oracle.Row {
	for i := range runs {
		list = append(list, rowOf(&runs[i]))
	}
	return list
}

func rowOf(r *idempotency.Run) oracle.Row {
	x := oracle.Row{
		ID: key(r.ID), State: state(r.State), Fence: r.Fence, Term: r.Term, Attempt: r.Attempt, Crashes: r.Crashes, Wake: r.Wake,
	}
	if x.State == oracle.Ended {
		x.Outcome, x.Overlap = outcome(r.Outcome), r.Reason == "overlap"
	}
	return x
}

func decisionOf(session, nonce int64, d *idempotency.Decision, rows []oracle.Row) oracle.Decision {
	x := oracle.Decision{
		Session: session, Nonce: nonce, Job: d.Job, Term: d.Term, SeenHash: d.Seen.Hash, Hash: d.Hash,
		SeenOpened: d.Seen.Opened, Open: d.Opened, Next: d.Next, Keyed: d.Keyed, Run: unix(d.Run), Rows: rows,
		Parallel: d.Overlap == idempotency.OverlapAllow, Overtakes: d.Overlap == idempotency.OverlapCancel && !d.CatchUp,
	}
	for _, r := range d.Ranges {
		x.Ranges = append(x.Ranges, rangeOf(r))
	}
	return x
}

// Stored is every run that the store holds.
func (w *World) Stored() iter.Seq[oracle.Row] {
	return storedIn(w.memory, func(err error) { w.fail("store: %w", err) })
}

func storedIn(h idempotency.History, failed func(error)) iter.Seq[oracle.Row] {
	return func(yield func(oracle.Row) bool) {
		for r, err := range h.List(context.Background(), idempotency.Filter{Namespace: Namespace}) {
			if err != nil {
				failed(err)
				return
			}
			if !yield(rowOf(&r)) {
				return
			}
		}
	}
}
