package sqlite

import (
	"context"
	"database/sql"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// Claim claims runs; see idempotency.Runs. A batch that wins nothing takes no
// lock, unless it moves a pass: then that is all it writes.
func (s *Store) Claim(ctx context.Context, ses idempotency.Session, nonce int64, batch []idempotency.Claim) (answers []idempotency.Answer, err error) {
	if err := idempotency.CheckBatch("claim", batch, idempotency.Claim.Validate); err != nil {
		return nil, err
	}
	lost := false // by the snapshot, all of it
	err = s.with(ctx, ses, func(c *call) error {
		if lost {
			still, err := c.stillTaken(batch)
			if err != nil {
				return err
			}
			if still {
				return c.move(batch)
			}
		}
		answers = make([]idempotency.Answer, len(batch))
		taken := 0
		for i, x := range batch {
			a, err := c.claim(x, nonce)
			if err != nil {
				return err
			}
			answers[i] = a
			if !x.TakeUp && a.Verdict == idempotency.Taken {
				taken++
			}
		}
		lost = taken == len(batch)
		return c.move(batch)
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// stillTaken reports whether inserts that were all taken a moment ago must be
// so now: nothing of an open due is removed.
func (c *call) stillTaken(batch []idempotency.Claim) (bool, error) {
	for _, x := range batch {
		fresh, err := c.isFresh(x.ID.Job, x.Hash)
		if err != nil || !fresh {
			return false, err
		}
		open, err := c.isOpen(x.ID.Job, x.ID.Due)
		if err != nil || !open {
			return false, err
		}
	}
	return true, nil
}

func (c *call) claim(x idempotency.Claim, nonce int64) (idempotency.Answer, error) {
	refused, err := c.admit(x)
	if err != nil {
		return idempotency.Answer{}, err
	}
	if c.writes && !x.TakeUp && refused.Verdict == 0 {
		// Most claims are won here, by one statement; all else it leaves alone.
		fence, err := c.insertRunning(x.ID, nonce, x.Exclusive, x.Term)
		if err != nil || fence > 0 {
			return idempotency.Answer{Verdict: idempotency.Won, Fence: fence}, err
		}
	}
	r, err := c.row(x.ID)
	switch {
	case err != nil:
		return idempotency.Answer{}, err
	case r != nil && r.state == idempotency.Running && r.session == c.by.id && r.nonce == nonce:
		return won(r), nil
	case refused.Verdict == idempotency.StaleDefinition:
		return refused, nil
	case x.TakeUp:
		return c.takeUp(r, x, nonce)
	case r != nil:
		return idempotency.Answer{Verdict: idempotency.Taken}, nil
	case refused.Verdict != 0:
		return refused, c.recordExpired(x, refused.Verdict, nonce)
	}
	return c.claimAbsent(x, nonce)
}

// admit answers a claim that its definition refuses, or an insert that its due does; the verdict is zero where neither does.
func (c *call) admit(x idempotency.Claim) (a idempotency.Answer, err error) {
	fresh, err := c.isFresh(x.ID.Job, x.Hash)
	switch {
	case err != nil:
		return a, err
	case !fresh:
		return idempotency.Answer{Verdict: idempotency.StaleDefinition}, nil
	case x.TakeUp:
		return a, nil
	}
	if wait := x.ID.Due.Sub(c.now.Add(c.by.tolerance)); wait > 0 {
		return idempotency.Answer{Verdict: idempotency.Early, Retry: wait}, nil
	}
	if x.ID.Due.Before(c.now.Add(-c.by.horizon)) {
		return idempotency.Answer{Verdict: idempotency.Expired}, nil
	}
	open, err := c.isOpen(x.ID.Job, x.ID.Due)
	if !open {
		a.Verdict = idempotency.Closed
	}
	return a, err
}

// recordExpired records what the claim says of an expired run. It demands an
// open due as a claim does: a closed due's keys may have been done and pruned.
func (c *call) recordExpired(x idempotency.Claim, v idempotency.Verdict, nonce int64) error {
	if v != idempotency.Expired || x.OnExpired == nil {
		return nil
	}
	open, err := c.isOpen(x.ID.Job, x.ID.Due)
	if err != nil || !open {
		return err
	}
	return c.insertIdle(x.ID, *x.OnExpired, nonce)
}

// claimAbsent claims an admitted run that has no row: it is busy, or this is a
// snapshot and the insert is still to be done.
func (c *call) claimAbsent(x idempotency.Claim, nonce int64) (a idempotency.Answer, err error) {
	if x.Exclusive {
		holder, err := c.holder(x.ID)
		if err != nil {
			return a, err
		}
		if !holder.IsZero() {
			return c.busy(x, holder, nonce)
		}
	}
	fence, err := c.insertRunning(x.ID, nonce, x.Exclusive, x.Term)
	return idempotency.Answer{Verdict: idempotency.Won, Fence: fence}, err
}

func (c *call) takeUp(r *row, x idempotency.Claim, nonce int64) (a idempotency.Answer, err error) {
	if r == nil || r.state == idempotency.Ended || r.fence != x.Seen {
		return idempotency.Answer{Verdict: idempotency.Taken}, nil
	}
	var dead deadSession
	if r.state == idempotency.Running {
		if dead, err = c.deadSession(r.session); err != nil || !dead.marked {
			return idempotency.Answer{Verdict: idempotency.Taken}, err
		}
	}
	if r.cancel != "" {
		return idempotency.Answer{Verdict: idempotency.Taken}, c.endTold(x.ID, r.cancel)
	}
	if r.state == idempotency.Waiting && r.wake.After(c.now) {
		return idempotency.Answer{Verdict: idempotency.Early, Retry: r.wake.Sub(c.now)}, nil
	}
	if x.Exclusive {
		// An orphan that ran exclusively still holds its key itself; one that
		// did not may find the key held.
		holder, err := c.holder(x.ID)
		if err != nil || !holder.IsZero() {
			return idempotency.Answer{Verdict: idempotency.Busy}, err
		}
	}
	if r.state == idempotency.Running && !dead.bootLives {
		r.crashes++
	}
	return c.runAgain(r, x, nonce)
}

// runAgain makes a row that is there run under this session.
func (c *call) runAgain(r *row, x idempotency.Claim, nonce int64) (a idempotency.Answer, err error) {
	if r.fence, err = c.draw(); err != nil {
		return a, err
	}
	_, err = c.exec(`UPDATE belfry_run SET state = 2, fence = ?, term = ?, crashes = ?, session = ?, nonce = ?, exclusive = ?, wake = NULL, started = ?
WHERE space = ? AND due = ? AND job = ? AND key = ? AND request = ?`,
		r.fence, x.Term, r.crashes, c.by.id, nonce, flag(x.Exclusive), micro(c.now),
		c.by.space, x.ID.Due.Unix(), x.ID.Job, []byte(x.ID.Key), []byte(x.ID.Request))
	c.name(r.session, -1)
	c.name(c.by.id, 1)
	return won(r), err
}

func won(r *row) idempotency.Answer {
	return idempotency.Answer{Verdict: idempotency.Won, Fence: r.fence, Attempt: r.attempt, Crashes: r.crashes, Payload: r.payload}
}

// deadSession is of another session what a take-up of its runs looks at.
type deadSession struct {
	marked    bool
	bootLives bool // its process has a live session, so it did not crash
}

func (c *call) deadSession(id int64) (d deadSession, err error) {
	if d, ok := c.dead[id]; ok {
		return d, nil
	}
	_, err = c.get([]any{&d.marked, &d.bootLives}, `SELECT s.marked IS NOT NULL, EXISTS (
  SELECT 1 FROM belfry_session o WHERE o.space = s.space AND o.marked IS NULL AND o.expires > ? AND o.boot = s.boot)
FROM belfry_session s WHERE s.id = ?`, micro(c.now), id)
	if err != nil {
		return d, err
	}
	if c.dead == nil {
		c.dead = make(map[int64]deadSession)
	}
	c.dead[id] = d
	return d, nil
}

// Finish ends runs or lets them wait, by their fence; see idempotency.Runs.
func (s *Store) Finish(ctx context.Context, namespace string, f []idempotency.Finish) (answers []idempotency.FinishAnswer, err error) {
	if err := idempotency.CheckNamespace(namespace); err != nil {
		return nil, err
	}
	if err := idempotency.CheckBatch("finish", f, idempotency.Finish.Validate); err != nil {
		return nil, err
	}
	err = s.write(ctx, false, func(t *tx) error {
		var space int64 // 0, which none is, where the namespace is unknown
		if _, err := t.get([]any{&space}, `SELECT id FROM belfry_space WHERE name = ?`, namespace); err != nil {
			return err
		}
		answers = make([]idempotency.FinishAnswer, len(f))
		for i, x := range f {
			if answers[i], err = t.finish(space, x); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// A finish changes a row that is running with its fence.
const (
	finishSet   = `state = ?, outcome = ?, reason = ?, text = ?, attempt = ?, exclusive = NULL, cancel = NULL, wake = ?, finished = ?`
	finishWhere = `due = ? AND job = ? AND key = ? AND request = ? AND state = 2 AND fence = ?`

	updateFinished = `UPDATE belfry_run SET ` + finishSet + ` WHERE space = ? AND ` + finishWhere
)

// finishArgs are the arguments of finishSet.
func finishArgs(f idempotency.Finish, now time.Time) []any {
	state, outcome, wake, finished := columns(f, now)
	return []any{state, outcome, blob(f.Reason), blob(f.Text), f.Attempt, wake, finished}
}

func (t *tx) finish(space int64, f idempotency.Finish) (idempotency.FinishAnswer, error) {
	due, key, request := f.ID.Due.Unix(), []byte(f.ID.Key), []byte(f.ID.Request)
	if f.Outcome == idempotency.Wait {
		var cancel sql.NullString
		if _, err := t.get([]any{&cancel}, `SELECT cancel FROM belfry_run WHERE space = ? AND `+finishWhere, space, due, f.ID.Job, key, request, f.Fence); err != nil {
			return 0, err
		}
		f = rule.Heed(f, cancel.String)
	}
	n, err := t.exec(updateFinished, append(finishArgs(f, t.now), space, due, f.ID.Job, key, request, f.Fence)...)
	if err != nil || n == 1 {
		return idempotency.Finished, err
	}
	var state idempotency.State
	var outcome idempotency.Outcome
	found, err := t.get([]any{&state, &outcome}, `SELECT state, outcome FROM belfry_run
WHERE space = ? AND due = ? AND job = ? AND key = ? AND request = ? AND fence = ?`,
		space, due, f.ID.Job, key, request, f.Fence)
	if !found {
		return idempotency.Fenced, err
	}
	return rule.Late(f, state, outcome), err
}

// Mine returns the session's running runs; see idempotency.Runs.
func (s *Store) Mine(ctx context.Context, ses idempotency.Session) (runs []idempotency.Run, err error) {
	err = s.with(ctx, ses, func(c *call) error {
		runs, err = c.runs(`r.session = ? AND r.state = 2`+byDue, c.by.id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return runs, nil
}
