package sim

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/sim/oracle"
	"github.com/belfry-go/belfry/jobs"
)

// choose draws the policies of a job.
func (j *Job) choose(r *rand.Rand) {
	j.Overlap = jobs.Overlap(r.IntN(4))
	if r.IntN(3) == 0 {
		j.Crash = jobs.CrashAbandon
	}
	if r.IntN(3) == 0 {
		j.Within = time.Duration(1+r.IntN(4)) * time.Second
	}
	if r.IntN(3) == 0 {
		j.StallAfter = time.Duration(400+r.IntN(600)) * time.Millisecond
	}
}

// steer makes one command of a person, about a job or one of its runs, whatever becomes of it.
func (p *plan) steer() {
	w := p.w
	j := w.cfg.Jobs[w.rand.IntN(len(w.cfg.Jobs))]
	c := idempotency.Command{Kind: idempotency.CommandKind(1 + w.rand.IntN(int(idempotency.Retry)))}
	c.ID.Job = j.Name
	if names := p.source.names(); j.Source != nil && len(names) > 0 && w.rand.IntN(3) > 0 {
		c.ID.Key = names[w.rand.IntN(len(names))]
	}
	second := w.StoreNow().Truncate(time.Second)
	switch c.Kind {
	case idempotency.Skip:
		c.ID.Due = second.Add(time.Duration(1+w.rand.IntN(8)) * time.Second)
	case idempotency.Backfill:
		for back := 10; back > 0; back-- {
			if w.rand.IntN(3) == 0 {
				c.Dues = append(c.Dues, second.Add(-time.Duration(back)*time.Second))
			}
		}
	case idempotency.Cancel, idempotency.Retry:
		id, ok := w.someRun(c.Kind)
		if !ok {
			return
		}
		c.ID = id
	}
	w.Submit(c)
	if c.Kind == idempotency.Pause {
		w.After(w.between(time.Second, 6*time.Second), func() {
			w.Submit(idempotency.Command{Kind: idempotency.Resume, ID: idempotency.ID{Job: j.Name}})
		})
	}
}

// someRun is one that the command can be about.
func (w *World) someRun(kind idempotency.CommandKind) (id idempotency.ID, ok bool) {
	var list []idempotency.ID
	for r, err := range w.memory.List(context.Background(), idempotency.Filter{Namespace: Namespace}) {
		if err != nil {
			w.fail("store: %w", err)
			return id, false
		}
		if kind == idempotency.Cancel && r.State != idempotency.Ended || kind == idempotency.Retry && r.Outcome == idempotency.Failed {
			list = append(list, r.ID)
		}
	}
	if len(list) == 0 {
		return id, false
	}
	return list[w.rand.IntN(len(list))], true
}

// resumeAll ends all pauses.
func (p *plan) resumeAll() {
	if p.w.faults(Steer) {
		for _, j := range p.w.cfg.Jobs {
			p.w.Submit(idempotency.Command{Kind: idempotency.Resume, ID: idempotency.ID{Job: j.Name}})
		}
	}
}

// Submit brings a person's command to the store, and tells the oracle what it means.
func (w *World) Submit(c idempotency.Command) {
	w.commands++
	c.Request, c.Actor = fmt.Sprintf("c%d", w.commands), "a person"
	submit := w.memory.Submit
	if w.journal != nil {
		submit = w.journal.Submit
	}
	done, err := submit(context.Background(), Namespace, c)
	w.note("", "a person wants", c.Kind.String(), key(c.ID).String(), len(c.Dues), done.Changed, fmt.Sprint(err))
	switch {
	case errors.Is(err, idempotency.ErrRejected):
		return
	case err != nil:
		w.fail("command: %w", err)
		return
	}
	w.Oracle.At(w.StoreNow().Truncate(time.Microsecond))
	all := c.ID.Key == ""
	if j := w.job(c.ID.Job); all && j.Source == nil {
		all, done.ID.Key = false, j.Name
	}
	c.At = done.At
	tellCommand(w.Oracle, c, done.ID, all)
}

// tellCommand tells what a command means that was accepted as one about id, or about all keys of its job.
func tellCommand(x *oracle.Oracle, c idempotency.Command, id idempotency.ID, all bool) {
	switch c.Kind {
	case idempotency.Pause:
		x.Paused(id.Job, c.At)
	case idempotency.Resume:
		x.Resumed(id.Job, c.At)
	case idempotency.Trigger:
		if all {
			x.Opened(id.Job, id.Due.Unix())
			return
		}
		id.Request = c.Request
		x.Triggered(key(id))
	case idempotency.Skip:
		if all {
			x.SkippedDue(id.Job, id.Due.Unix())
			return
		}
		x.SkippedRun(key(id))
	case idempotency.Backfill:
		for _, due := range c.Dues {
			if id.Due = due; all {
				x.Opened(id.Job, due.Unix())
				continue
			}
			x.Backfilled(key(id))
		}
	case idempotency.Cancel:
		x.Canceled(key(c.ID))
	case idempotency.Retry:
		x.Retried(key(c.ID))
	}
}
