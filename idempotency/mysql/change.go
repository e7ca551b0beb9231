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
	outcome   idempotency.Outcome // where ended
	reason    string
	term      int64 // where claimed by this call: the leader's
	exclusive bool  // where running

	found   *rule.Row           // nil: there is none
	record  *idempotency.Finish // what it was made of, if it was not claimed
	claimed bool                // by this call
	fate    fate                // of one that was found and is not claimed; none: it is only told to end
	touched bool
}

// fate is what becomes of a run otherwise than by its holder's word.
type fate struct {
	state   idempotency.State
	outcome idempotency.Outcome
	reason  string
	anew    bool // its attempts, crashes and text are gone
}

// changes are the rows of runs that a call claims, records or ends, as they are and will be.
type changes struct {
	*call
	nonce   int64
	rows    map[ref]*row
	held    map[jobKey]ref   // running exclusively
	waiting map[jobKey][]ref // of keys that more than one run wants
	movable bool             // others may change what was read
	touched []*row           // to be written
	told    int              // runs that are told to end
}

func (c *call) changes(nonce int64) changes {
	return changes{call: c, nonce: nonce, rows: make(map[ref]*row), held: make(map[jobKey]ref), waiting: make(map[jobKey][]ref)}
}

// findRows reads the rows that are there.
func (x *changes) findRows(refs []ref, lock string) error {
	return x.queryRows(func(s *sql.Rows) error {
		r := &row{}
		var at int64
		var cancel mark
		err := s.Scan(&r.due, &r.job, &r.key, &r.request, &r.State, &r.outcome, &r.Fence, &r.Attempt, &r.Crashes, &cancel, &r.Payload, &r.Session, &r.Nonce, &at, &r.reason)
		switch r.State {
		case idempotency.Waiting:
			r.Wake = time.UnixMicro(at).UTC()
		case idempotency.Running:
			r.Cancel = cancel.word()
		}
		found := r.Row
		r.found, r.exclusive = &found, isExclusive(r.Fence)
		x.rows[r.ref] = r
		x.movable = x.movable || r.State != idempotency.Ended
		return err
	}, runsAt(sorted(slices.Clone(refs), compareRefs)), `SELECT due, job, run_key, request, state, outcome, fence, attempt, crashes, cancel, payload, session, nonce, at, coalesce(reason, '')
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

// findWaiting reads which runs wait for keys. It locks none: who holds the row of the run that is running has kept all
// others from queueing there.
func (x *changes) findWaiting(keys []jobKey) error {
	keys = sorted(keys, func(a, b jobKey) int { return comparePlaces(place{a, ""}, place{b, ""}) })
	return x.queryRows(func(s *sql.Rows) error {
		var r ref
		err := s.Scan(&r.due, &r.job, &r.key, &r.request)
		k := jobKey{r.job, r.key}
		x.waiting[k] = append(x.waiting[k], r)
		return err
	}, points(len(keys), func(i int) point {
		return point{rest: render(defaultPrefix, `job = ?`, []any{keys[i].job}), key: keys[i].key}
	}), `SELECT due, job, run_key, request FROM belfry_waiting FORCE INDEX (run_key) WHERE space = ? AND (?)`, x.by.space)
}

// findRivals reads the rows of the runs that hold keys or wait for them, if they were not read before.
func (x *changes) findRivals(keys []jobKey, lock string) error {
	var refs []ref
	for _, r := range x.rivals(keys) {
		if x.rows[r] == nil {
			refs = append(refs, r)
		}
	}
	return x.findRows(refs, lock)
}

func (x *changes) rivals(keys []jobKey) (refs []ref) {
	for _, k := range keys {
		if r, ok := x.held[k]; ok {
			refs = append(refs, r)
		}
		refs = append(refs, x.waiting[k]...)
	}
	return refs
}

// run makes a row run under this session; its fence is yet to be drawn.
func (x *changes) run(r *row, c idempotency.Claim, crashes int) {
	if r == nil {
		r = &row{ref: refOf(c.ID)}
		x.rows[r.ref] = r
	}
	x.leaveQueue(r)
	x.touch(r)
	r.State, r.Session, r.Nonce, r.Crashes, r.Cancel, r.term, r.claimed = idempotency.Running, x.by.id, x.nonce, crashes, "", c.Term, true
	if r.exclusive = c.Exclusive; c.Exclusive {
		x.held[r.jobKey()] = r.ref
	}
}

// record makes a row of a run that never ran, or waits.
func (x *changes) record(id idempotency.ID, f *idempotency.Finish) *row {
	r := &row{ref: refOf(id), record: f}
	r.Session, r.Nonce, r.Attempt, r.State = x.by.id, x.nonce, f.Attempt, idempotency.Ended
	if f.Outcome == idempotency.Wait {
		r.State, r.Wake = idempotency.Waiting, rule.Instant(f.Wake)
		x.waiting[r.jobKey()] = append(x.waiting[r.jobKey()], r.ref)
	}
	x.rows[r.ref] = r
	x.touch(r)
	return r
}

// end ends a row that waits or runs. Its attempts and its text stay as they are.
func (x *changes) end(r *row, o idempotency.Outcome, reason string) {
	x.leaveQueue(r)
	if k := r.jobKey(); x.held[k] == r.ref {
		delete(x.held, k)
	}
	x.touch(r)
	r.State, r.Cancel = idempotency.Ended, ""
	r.fate = fate{state: r.State, outcome: o, reason: reason}
	if r.found == nil { // recorded by this batch
		r.record = &idempotency.Finish{Outcome: o, Reason: reason, Attempt: r.Attempt}
	}
}

// mark tells a running row to end.
func (x *changes) mark(r *row, cancel string) {
	r.Cancel = cancel
	x.told++
	x.touch(r)
}

// overtake tells the run that holds the key to end, unless its due is newer, and ends those of the waiting that are older.
func (x *changes) overtake(id idempotency.ID, waiting []ref) {
	due := id.Due.Unix()
	if r := x.rows[x.held[jobKey{id.Job, id.Key}]]; r != nil && r.State == idempotency.Running && r.due <= due && r.Cancel == "" {
		x.mark(r, idempotency.Overtaken)
	}
	for _, w := range waiting {
		if r := x.rows[w]; r != nil && r.State == idempotency.Waiting && r.due < due {
			x.end(r, idempotency.Skipped, idempotency.Overtaken)
		}
	}
}

func (x *changes) leaveQueue(r *row) {
	if r.State == idempotency.Waiting {
		k := r.jobKey()
		x.waiting[k] = slices.DeleteFunc(slices.Clone(x.waiting[k]), func(w ref) bool { return w == r.ref })
	}
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
	if err := x.writeRuns(); err != nil {
		return err
	}
	if err := x.writeFates(); err != nil {
		return err
	}
	return x.bump(x.told)
}

// bump raises the namespace's count of what people asked for and of runs that were told to end. It comes last: others that
// do so wait for it.
func (c *call) bump(n int) error {
	if n == 0 {
		return nil
	}
	_, err := c.exec(`UPDATE belfry_control SET controls = controls + ? WHERE space = ?`, n, c.by.space)
	return err
}

// leave removes the rows that stand beside those that were waiting, or running under a dead session, and are no longer.
func (x *changes) leave() error {
	var waiting []ref
	var running []place
	for _, r := range x.touched {
		switch {
		case r.found == nil, !r.claimed && r.fate == (fate{}):
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
		switch {
		case r.State == idempotency.Waiting:
			waiting.add(x.by.space, r.due, r.job, r.key, r.request, r.Wake.UnixMicro())
		case r.State == idempotency.Running && r.claimed:
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
		if r.State != idempotency.Running || !r.claimed {
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

const insertRun = `INSERT INTO belfry_run (space, due, job, run_key, request, state, fence, session, replica, nonce, started, cancel, term`

// writeRuns writes the rows of runs that are claimed or recorded.
func (x *changes) writeRuns() error {
	var claimed, retaken, recorded rows
	now := x.now.UnixMicro()
	for _, r := range x.touched {
		common := []any{x.by.space, r.due, r.job, r.key, r.request, int(r.State), r.Fence, x.by.id, x.by.replica, x.nonce, now, int(markOf(r.Cancel)), r.term}
		switch {
		case r.found != nil && r.claimed:
			retaken.add(append(common, r.Crashes)...)
		case r.found != nil: // see writeFates
		case r.record != nil:
			recorded.add(x.recorded(common, r)...)
		default:
			claimed.add(common...)
		}
	}
	if _, err := x.insert(&claimed, insertRun+`)`, ``); err != nil {
		return err
	}
	if _, err := x.insert(&recorded, insertRun+`, outcome, attempt, at, reason, text, payload)`, ``); err != nil {
		return err
	}
	// All of these are there and locked, so this inserts none.
	_, err := x.insert(&retaken, insertRun+`, crashes)`, ` ON DUPLICATE KEY UPDATE state = VALUES(state), fence = VALUES(fence),
  session = VALUES(session), replica = VALUES(replica), nonce = VALUES(nonce), started = VALUES(started), cancel = VALUES(cancel), term = VALUES(term), crashes = VALUES(crashes), at = 0`)
	return err
}

// recorded is the row of a run that was recorded, and may have been taken up by a later claim of the batch.
func (x *changes) recorded(common []any, r *row) []any {
	_, outcome, at := columns(*r.record, x.now)
	if r.State == idempotency.Running {
		at = 0
	} else {
		common[10] = 0 // never started
	}
	return append(common, int(outcome), r.record.Attempt, at, blob(r.record.Reason), blob(r.record.Text), r.payload())
}

// payload is how the row's is kept: one of no bytes is not none.
func (r *row) payload() any {
	if r.Payload == nil {
		return nil
	}
	return r.Payload
}

// writeFates writes what becomes of rows that were there and are not claimed, one statement for all that fare alike.
func (x *changes) writeFates() error {
	groups := make(map[fate][]ref)
	var told []ref
	var order []fate
	for _, r := range x.touched {
		switch {
		case r.found == nil || r.claimed:
		case r.fate == (fate{}):
			told = append(told, r.ref)
		default:
			if groups[r.fate] == nil {
				order = append(order, r.fate)
			}
			groups[r.fate] = append(groups[r.fate], r.ref)
		}
	}
	for _, k := range order {
		anew := ``
		if k.anew {
			anew = `, attempt = 0, crashes = 0, text = NULL`
		}
		// It ends now, or it wakes now.
		if _, err := x.execRows(runsAt(groups[k]), `UPDATE belfry_run FORCE INDEX (PRIMARY) SET state = ?, outcome = ?, reason = ?, at = ?, cancel = 0`+anew+` WHERE space = ? AND (?)`,
			int(k.state), int(k.outcome), k.reason, x.now.UnixMicro(), x.by.space); err != nil {
			return err
		}
	}
	for _, cancel := range marks[1:] {
		at := slices.DeleteFunc(slices.Clone(told), func(r ref) bool { return x.rows[r].Cancel != cancel })
		if _, err := x.execRows(runsAt(at), `UPDATE belfry_run FORCE INDEX (PRIMARY) SET cancel = ? WHERE space = ? AND (?)`, int(markOf(cancel)), x.by.space); err != nil {
			return err
		}
	}
	return nil
}
