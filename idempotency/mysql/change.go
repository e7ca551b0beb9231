package mysql

import (
	"database/sql"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// row is a run's row as it will be, and where it was found.
type row struct {
	rule.Row
	ref
	exclusive bool // where running

	found   *rule.Row           // nil: there is none
	record  *idempotency.Finish // what it was made of, if it was not claimed
	touched bool
}

// changes are the rows of runs that a call claims or records, as they are and will be.
type changes struct {
	*call
	nonce   int64
	rows    map[ref]*row
	held    map[jobKey]ref // running exclusively
	movable bool           // others may change what was read
	touched []*row         // to be written
}

// findRows reads the rows that are there.
func (x *changes) findRows(refs []ref, lock string) error {
	return x.queryRows(func(s *sql.Rows) error {
		r := &row{}
		var at int64
		err := s.Scan(&r.due, &r.job, &r.key, &r.request, &r.State, &r.Fence, &r.Attempt, &r.Crashes, &r.Payload, &r.Session, &r.Nonce, &at)
		if r.State == idempotency.Waiting {
			r.Wake = time.UnixMicro(at).UTC()
		}
		found := r.Row
		r.found, r.exclusive = &found, isExclusive(r.Fence)
		x.rows[r.ref] = r
		x.movable = x.movable || r.State != idempotency.Ended
		return err
	}, runsAt(sorted(slices.Clone(refs), compareRefs)), `SELECT due, job, run_key, request, state, fence, attempt, crashes, payload, session, nonce, at
FROM belfry_run FORCE INDEX (PRIMARY) WHERE space = ? AND (?)`+lock, x.by.space)
}

// findHeld reads which runs are running exclusively.
func (x *changes) findHeld(keys []jobKey, lock string) error {
	places := make([]place, len(keys))
	for i, k := range keys {
		places[i] = place{k, ""}
	}
	return x.queryRows(func(s *sql.Rows) error {
		var r ref
		err := s.Scan(&r.due, &r.job, &r.key, &r.request)
		x.held[jobKey{r.job, r.key}] = r
		x.movable = true
		return err
	}, runningAt(sorted(places, comparePlaces)), `SELECT due, job, run_key, request FROM belfry_running FORCE INDEX (PRIMARY)
WHERE space = ? AND (?)`+lock, x.by.space)
}

// run makes a row run under this session; its fence is yet to be drawn.
func (x *changes) run(r *row, c idempotency.Claim, crashes int) {
	if r == nil {
		r = &row{ref: refOf(c.ID)}
		x.rows[r.ref] = r
	}
	x.touch(r)
	r.State, r.Session, r.Nonce, r.Crashes = idempotency.Running, x.by.id, x.nonce, crashes
	if r.exclusive = c.Exclusive; c.Exclusive {
		x.held[jobKey{r.job, r.key}] = r.ref
	}
}

// record makes a row of a run that never ran, or waits.
func (x *changes) record(c idempotency.Claim, f *idempotency.Finish) {
	r := &row{ref: refOf(c.ID), record: f}
	r.Session, r.Nonce, r.Attempt, r.State = x.by.id, x.nonce, f.Attempt, idempotency.Ended
	if f.Outcome == idempotency.Wait {
		r.State, r.Wake = idempotency.Waiting, rule.Instant(f.Wake)
	}
	x.rows[r.ref] = r
	x.touch(r)
}

func (x *changes) touch(r *row) {
	if !r.touched {
		r.touched = true
		x.touched = append(x.touched, r)
	}
}

const (
	insertRunning = `INSERT INTO belfry_running (space, job, run_key, slot, due, request, session)`
	insertWaiting = `INSERT INTO belfry_waiting (space, due, job, run_key, request, wake)`
	deleteRunning = `DELETE h FROM belfry_running h FORCE INDEX (PRIMARY) WHERE h.space = ? AND (?)`
	deleteWaiting = `DELETE w FROM belfry_waiting w FORCE INDEX (PRIMARY) WHERE w.space = ? AND (?)`
)

// write writes the rows that were touched. What makes a run the only one of its key is written first, and only then,
// while that is held, the fences are drawn: so whoever comes to hold the key later draws higher ones.
func (x *changes) write() error {
	if len(x.touched) == 0 {
		return nil
	}
	slices.SortFunc(x.touched, func(a, b *row) int { return compareRefs(a.ref, b.ref) })
	if err := x.leave(); err != nil {
		return err
	}
	if err := x.enter(); err != nil {
		return err
	}
	if err := x.drawFences(); err != nil {
		return err
	}
	return x.writeRuns()
}

// leave removes the rows that stand beside those that were waiting, or running under a dead session.
func (x *changes) leave() error {
	var waiting []ref
	var running []place
	for _, r := range x.touched {
		switch {
		case r.found == nil:
		case r.found.State == idempotency.Waiting:
			waiting = append(waiting, r.ref)
		case r.found.State == idempotency.Running:
			running = append(running, r.place(isExclusive(r.found.Fence)))
		}
	}
	if _, err := x.execRows(runsAt(waiting), deleteWaiting, x.by.space); err != nil {
		return err
	}
	_, err := x.execRows(runningAt(sorted(running, comparePlaces)), deleteRunning, x.by.space)
	return err
}

// enter writes the rows that stand beside those that now wait or run.
func (x *changes) enter() error {
	var waiting, running rows
	var places []*row
	for _, r := range x.touched {
		switch r.State {
		case idempotency.Waiting:
			waiting.add(x.by.space, r.due, r.job, r.key, r.request, r.Wake.UnixMicro())
		case idempotency.Running:
			places = append(places, r)
		}
	}
	slices.SortFunc(places, func(a, b *row) int { return comparePlaces(a.place(a.exclusive), b.place(b.exclusive)) })
	for _, r := range places {
		running.add(x.by.space, r.job, r.key, slotOf(r.ref, r.exclusive), r.due, r.request, x.by.id)
	}
	if _, err := x.insert(&running, insertRunning, ``); err != nil {
		return err
	}
	_, err := x.insert(&waiting, insertWaiting, ``)
	return err
}

// drawFences draws the fences of all that now run.
func (x *changes) drawFences() error {
	n, place := int64(0), 0
	for _, r := range x.touched {
		if r.State != idempotency.Running {
			continue
		}
		if n == 0 {
			var err error
			if n, err = x.draw(); err != nil {
				return err
			}
		}
		r.Fence = fenceOf(n, place, r.exclusive)
		place++
	}
	return nil
}

const insertRun = `INSERT INTO belfry_run (space, due, job, run_key, request, state, fence, session, replica, nonce, started`

// writeRuns writes the runs' own rows.
func (x *changes) writeRuns() error {
	var claimed, retaken, recorded rows
	now := x.now.UnixMicro()
	for _, r := range x.touched {
		common := []any{x.by.space, r.due, r.job, r.key, r.request, int(r.State), r.Fence, x.by.id, x.by.replica, x.nonce, now}
		switch {
		case r.found != nil:
			retaken.add(append(common, r.Crashes)...)
		case r.record != nil:
			recorded.add(x.recorded(common, r)...)
		default:
			claimed.add(common...)
		}
	}
	if _, err := x.insert(&claimed, insertRun+`)`, ``); err != nil {
		return err
	}
	if _, err := x.insert(&recorded, insertRun+`, outcome, attempt, at, reason, text)`, ``); err != nil {
		return err
	}
	// All of these are there and locked, so this inserts none.
	_, err := x.insert(&retaken, insertRun+`, crashes)`, ` ON DUPLICATE KEY UPDATE state = VALUES(state), fence = VALUES(fence),
  session = VALUES(session), replica = VALUES(replica), nonce = VALUES(nonce), started = VALUES(started), crashes = VALUES(crashes), at = 0`)
	return err
}

// recorded is the row of a run that was recorded, and may have been taken up by a later claim of the batch.
func (x *changes) recorded(common []any, r *row) []any {
	_, outcome, at := columns(*r.record, x.now)
	if r.State == idempotency.Running {
		at = 0
	} else {
		common[len(common)-1] = 0 // never started
	}
	return append(common, int(outcome), r.record.Attempt, at, blob(r.record.Reason), blob(r.record.Text))
}
