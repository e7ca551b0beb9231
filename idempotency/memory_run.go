package idempotency

import (
	"context"
	"slices"
)

// Claim claims runs; see Runs.
func (m *Memory) Claim(ctx context.Context, s Session, nonce int64, batch []Claim) (answers []Answer, err error) {
	if err := CheckBatch("claim", batch, Claim.Validate); err != nil {
		return nil, err
	}
	err = m.with(ctx, s, func(c *call) error {
		answers = make([]Answer, len(batch))
		for i, x := range batch {
			answers[i] = c.claim(x, nonce)
		}
		c.move(batch)
		return nil
	})
	return answers, err
}

func (c *call) claim(x Claim, nonce int64) Answer {
	e, r := c.entries[x.ID.Job], c.row(x.ID)
	switch {
	case r != nil && r.heldBy(holder{c.by.id, nonce}):
		return won(r)
	case e == nil || e.Hash != x.Hash || !c.by.announced(x.ID.Job, x.Hash):
		return Answer{Verdict: StaleDefinition}
	case x.TakeUp:
		return c.takeUp(r, x, nonce)
	case r != nil:
		return Answer{Verdict: Taken}
	}
	return c.claimNew(x, nonce)
}

// claimNew claims an occurrence that has no row.
func (c *call) claimNew(x Claim, nonce int64) Answer {
	if wait := x.ID.Due.Sub(c.now.Add(c.by.Tolerance)); wait > 0 {
		return Answer{Verdict: Early, Retry: wait}
	}
	// A record demands an open due as a claim does: a closed due's keys may
	// have been done and pruned.
	open := c.openDue(x.ID.Job, x.ID.Due) != nil
	switch {
	case x.ID.Due.Before(c.now.Add(-c.by.Horizon)):
		if open {
			c.recordRun(x.ID, x.OnExpired, nonce)
		}
		return Answer{Verdict: Expired}
	case !open:
		return Answer{Verdict: Closed}
	case x.Exclusive && c.busy(x.ID):
		return Answer{Verdict: Busy, Recorded: c.recordBusy(x, nonce)}
	}
	r := c.insert(x.ID, holder{c.by.id, nonce})
	c.run(r, nonce, x.Exclusive, x.Term)
	return won(r)
}

// recordBusy records what a claim says of a run whose key is held, and returns its outcome.
func (c *call) recordBusy(x Claim, nonce int64) Outcome {
	record, overtakes := x.OnBusy, x.Overtake
	others := slices.Clone(c.waiting[keyOf(x.ID)])
	switch {
	case x.OnNewer != nil && c.exclusive[keyOf(x.ID)].ID.Due.After(x.ID.Due):
		record, overtakes = x.OnNewer, false
	case x.OnQueued != nil && len(others) > 0:
		record = x.OnQueued
	case record == nil:
		return 0
	}
	c.recordRun(x.ID, record, nonce)
	if overtakes {
		c.overtake(x.ID, others, c.now)
	}
	return record.Outcome
}

// recordRun records that a run never ran, or waits; a nil f records nothing.
func (c *call) recordRun(id ID, f *Finish, nonce int64) {
	if f != nil {
		c.apply(c.insert(id, holder{c.by.id, nonce}), *f, c.now)
	}
}

func (c *call) takeUp(r *row, x Claim, nonce int64) Answer {
	if r == nil || r.State == Ended || r.Fence != x.Seen {
		return Answer{Verdict: Taken}
	}
	if r.State == Running && c.session(r.by.session).marked.IsZero() {
		return Answer{Verdict: Taken}
	}
	if r.Cancel != "" {
		outcome, reason := told(r.Cancel)
		c.end(r, outcome, reason, c.now)
		return Answer{Verdict: Taken}
	}
	if r.State == Waiting && r.Wake.After(c.now) {
		return Answer{Verdict: Early, Retry: r.Wake.Sub(c.now)}
	}
	// An orphan that ran exclusively still holds its key itself; one that did
	// not may find the key held.
	if x.Exclusive && c.busy(x.ID) {
		return Answer{Verdict: Busy}
	}
	if r.State == Running && !c.bootLives(r.by.session) {
		r.Crashes++
	}
	c.run(r, nonce, x.Exclusive, x.Term)
	return won(r)
}

// bootLives reports whether the dead session's process has a live session: then
// it only lost its lease, and did not crash.
func (c *call) bootLives(dead int64) bool {
	boot := c.session(dead).Boot
	for _, s := range c.sessions {
		if s.Boot == boot && s.live(c.now) {
			return true
		}
	}
	return false
}

func won(r *row) Answer {
	return Answer{Verdict: Won, Fence: r.Fence, Attempt: r.Attempt, Crashes: r.Crashes, Payload: r.Payload}
}

// Finish ends runs or lets them wait, by their fence; see Runs.
func (m *Memory) Finish(ctx context.Context, namespace string, f []Finish) ([]FinishAnswer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if err := CheckNamespace(namespace); err != nil {
		return nil, err
	}
	if err := CheckBatch("finish", f, Finish.Validate); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	now := instant(m.now())
	sp := m.spaces[namespace]
	answers := make([]FinishAnswer, len(f))
	for i, x := range f {
		answers[i] = Fenced
		if sp == nil {
			continue
		}
		r := sp.row(x.ID)
		switch {
		case r == nil || r.Fence != x.Fence:
		case r.State == Running:
			sp.apply(r, x, now)
			answers[i] = Finished
		case r.State == Ended && r.Outcome == Done && x.Outcome != Done:
			answers[i] = Completed
		case x.Outcome == Done && (r.State != Ended || r.Outcome != Done): // others had the last word
		default:
			answers[i] = Already
		}
	}
	return answers, nil
}

// Mine returns the session's running runs; see Runs.
func (m *Memory) Mine(ctx context.Context, s Session) (list []Run, err error) {
	err = m.with(ctx, s, func(c *call) error {
		rows := make([]*row, 0, len(c.by.runs))
		for r := range c.by.runs {
			rows = append(rows, r)
		}
		slices.SortFunc(rows, byDue)
		list = runs(rows)
		return nil
	})
	return list, err
}
