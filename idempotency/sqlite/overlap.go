package sqlite

import (
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// isQueued reports whether a run of the job and key waits.
func (c *call) isQueued(id idempotency.ID) (bool, error) {
	var one int
	return c.get([]any{&one}, `SELECT 1 FROM belfry_run INDEXED BY belfry_run_queued WHERE space = ? AND job = ? AND key = ? AND state = 1 LIMIT 1`,
		c.by.space, id.Job, []byte(id.Key))
}

// busy answers a claim whose key a run of that due holds, and records what it says of that.
func (c *call) busy(x idempotency.Claim, holder time.Time, nonce int64) (a idempotency.Answer, err error) {
	a.Verdict = idempotency.Busy
	queued := false
	if x.OnQueued != nil {
		if queued, err = c.isQueued(x.ID); err != nil {
			return a, err
		}
	}
	record, w := rule.Busy(x, rule.HeldBy(holder.After(x.ID.Due)), queued)
	if w == rule.Nothing {
		return a, nil
	}
	a.Recorded = record.Outcome
	if err := c.insertIdle(x.ID, *record, nonce); err != nil || w != rule.RecordBusy || !x.Overtake {
		return a, err
	}
	return a, c.overtake(x.ID)
}

// overtake tells the run that holds the key to end, unless its due is newer, and ends those of older dues that wait.
func (c *call) overtake(id idempotency.ID) error {
	n, err := c.exec(`UPDATE belfry_run INDEXED BY belfry_run_exclusive SET cancel = ?
WHERE space = ? AND job = ? AND key = ? AND exclusive = 1 AND cancel IS NULL AND due <= ?`,
		idempotency.Overtaken, c.by.space, id.Job, []byte(id.Key), id.Due.Unix())
	if err == nil && n > 0 {
		err = c.raiseControls(c.by.space)
	}
	if err != nil {
		return err
	}
	_, err = c.exec(`UPDATE belfry_run INDEXED BY belfry_run_queued SET state = 3, outcome = ?, reason = ?, wake = NULL, finished = ?
WHERE space = ? AND job = ? AND key = ? AND state = 1 AND due < ?`,
		idempotency.Skipped, []byte(idempotency.Overtaken), micro(c.now), c.by.space, id.Job, []byte(id.Key), id.Due.Unix())
	return err
}

// raiseControls tells replicas that Declare or Mine has news.
func (t *tx) raiseControls(space int64) error {
	_, err := t.exec(`UPDATE belfry_space SET controls = controls + 1 WHERE id = ?`, space)
	return err
}

// endTold ends a run that was told to end and whose session is dead.
func (c *call) endTold(id idempotency.ID, cancel string) error {
	outcome, reason := rule.Told(cancel)
	return c.end(c.by.space, id, outcome, reason)
}

// end ends a run that waits or runs; attempts and text stay as they are.
func (t *tx) end(space int64, id idempotency.ID, o idempotency.Outcome, reason string) error {
	_, err := t.exec(`UPDATE belfry_run SET state = 3, outcome = ?, reason = ?, exclusive = NULL, cancel = NULL, wake = NULL, finished = ?
WHERE space = ? AND due = ? AND job = ? AND key = ? AND request = ?`,
		o, []byte(reason), micro(t.now), space, id.Due.Unix(), id.Job, []byte(id.Key), []byte(id.Request))
	return err
}
