package scheduler

import (
	"context"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// maxHolders bounds how many older runs of a key are looked at for the one that was at work.
const maxHolders = 20

// readHolder reads which other run of the key was at work, where the run waits, or was skipped for it.
func (x *explainer) readHolder(ctx context.Context) error {
	r, at := x.run, x.overview.Now
	f := idempotency.Filter{Namespace: x.client.namespace, Job: r.ID.Job, Key: r.ID.Key, State: idempotency.Running, Newest: true, Limit: maxHolders}
	skipped := r.State == idempotency.Ended && r.Reason == "overlap"
	switch {
	case skipped:
		at, f.State, f.To = r.Finished, 0, r.ID.Due.Add(time.Second)
	case r.State != idempotency.Waiting:
		return nil
	}
	for h, err := range x.client.history.List(ctx, f) {
		switch {
		case err != nil:
			return err
		case h.ID == r.ID:
		case atWork(h, at):
			if x.holder == nil {
				x.holder = &h
			}
		case skipped && x.queued == nil && hadNotEnded(h, at):
			x.queued = &h
		}
	}
	if x.queued != nil && x.redone.After(at) {
		x.holder, x.queued = nil, nil // perhaps it waits since then only, and nobody can tell which of them was the cause
	}
	return nil
}

// atWork says whether a run surely was at work at an instant.
func atWork(h idempotency.Run, at time.Time) bool {
	switch {
	case h.Fence == 0 || h.Started.After(at):
		return false
	case h.State == idempotency.Ended:
		return !h.Finished.Before(at) && (h.Outcome != idempotency.Skipped || h.Reason == "handler") // other skips end one that waits
	}
	return h.State == idempotency.Running
}

// hadNotEnded says whether a run that is not known to have been at work at an instant ended later. It waited then, if another run of
// its key was at work.
func hadNotEnded(h idempotency.Run, at time.Time) bool {
	return h.State != idempotency.Ended || h.Finished.After(at)
}

// tellHolder says which runs of the key stood in the way of one that was skipped. With OverlapQueue it was skipped for the one that
// waited, else for the one at work; the store does not know which policy the job had.
func (x *explainer) tellHolder() {
	switch {
	case x.holder == nil:
	case x.queued == nil:
		x.say("That was %s.", x.held())
	default:
		x.say("That of due %s waited then, behind %s.", instant(x.queued.ID.Due), x.held())
	}
}
