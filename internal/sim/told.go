package sim

import (
	"context"
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

func unix(dues []time.Time) (list []int64) {
	for _, t := range dues {
		list = append(list, t.Unix())
	}
	return list
}

func rangeOf(r idempotency.Range) oracle.Range {
	return oracle.Range{From: r.From.Unix(), To: r.To.Unix(), Count: r.Count, Outcome: outcome(r.Outcome), Reason: r.Reason}
}

func rowsOf(runs []idempotency.Run) []oracle.Row {
	rows := make([]oracle.Row, len(runs))
	for i := range runs {
		rows[i] = rowOf(&runs[i])
	}
	return rows
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

func decisionOf(session, nonce int64, d idempotency.Decision, a idempotency.Decided) oracle.Decision {
	x := oracle.Decision{
		Session: session, Nonce: nonce, Job: d.Job, Term: d.Term, SeenHash: d.Seen.Hash, Hash: d.Hash,
		SeenOpened: d.Seen.Opened, Open: d.Opened, Next: d.Next, Keyed: d.Keyed, Run: unix(d.Run), Rows: rowsOf(a.Runs),
		Parallel: d.Overlap == idempotency.OverlapAllow, Overtakes: d.Overlap == idempotency.OverlapCancel && !d.CatchUp,
	}
	for _, r := range d.Ranges {
		x.Ranges = append(x.Ranges, rangeOf(r))
	}
	return x
}

// Stored is every run that the store holds.
func (w *World) Stored() []oracle.Row {
	rows, err := storedIn(w.memory)
	if err != nil {
		w.fail("store: %w", err)
	}
	return rows
}

func storedIn(h idempotency.History) (rows []oracle.Row, err error) {
	for r, err := range h.List(context.Background(), idempotency.Filter{Namespace: Namespace}) {
		if err != nil {
			return nil, err
		}
		rows = append(rows, rowOf(&r))
	}
	return rows, nil
}
