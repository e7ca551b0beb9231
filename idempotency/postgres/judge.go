package postgres

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// claim judges a batch claim by claim: first on a snapshot, and only if there is something to write under locks.
func (c *call) claim(batch []idempotency.Claim, order []int, nonce int64) ([]idempotency.Answer, error) {
	answers := make([]idempotency.Answer, len(batch))
	contested := make(map[jobKey]bool)
	for i := range batch {
		if contests(&batch[i]) {
			contested[keyOf(batch[i].ID)] = true
		}
	}
	for rest := order; len(rest) > 0; {
		// A run that is claimed twice is judged again by what the first claim made of it; so are the claims of one key where
		// the rivals of one of them count.
		var now, later []int
		seen := make(map[identity]bool, len(rest))
		for _, i := range rest {
			id := identityOf(batch[i].ID)
			if key := keyOf(batch[i].ID); contested[key] {
				id = identity{job: key.job, key: key.key}
			}
			if seen[id] {
				later = append(later, i)
			} else {
				seen[id] = true
				now = append(now, i)
			}
		}
		r := round{call: c, batch: batch, order: now, answers: answers, nonce: nonce}
		if err := r.run(); err != nil {
			return nil, err
		}
		rest = later
	}
	return answers, c.move(batch)
}

// contests reports whether the rivals of the claim's run count.
func contests(x *idempotency.Claim) bool { return x.OnQueued != nil || x.Overtake }

// round judges claims of different runs.
type round struct {
	*call
	batch   []idempotency.Claim
	order   []int // positions in batch
	answers []idempotency.Answer
	nonce   int64

	contested []jobKey
	rivals    map[jobKey]rivals // of those

	facts  []rule.Facts // of each in order
	holder []bool       // whether the run itself holds its key
	writes []rule.Write
}

func (r *round) run() (err error) {
	for _, i := range r.order {
		if contests(&r.batch[i]) {
			r.contested = append(r.contested, keyOf(r.batch[i].ID))
		}
	}
	if r.rivals, err = r.findRivals(r.contested); err != nil {
		return err
	}
	if r.begin == beginWrite {
		if err := r.lock(); err != nil {
			return err
		}
	}
	if err := r.look(); err != nil {
		return err
	}
	if some := r.judge(); !some {
		return nil
	}
	return r.write()
}

// columns are the claims of the round, column by column.
func (r *round) columns() (k keys, hash [][]byte) {
	for _, i := range r.order {
		k.add(r.batch[i].ID)
		hash = append(hash, []byte(r.batch[i].Hash))
	}
	return k, hash
}

// lock keeps what the round is judged by as it is: entries, dues, runs to take up and rivals, and what holds the keys of others.
func (r *round) lock() error {
	var claimed, insert keys
	locked := r.rivals
	runs := runsOf(locked)
	for _, i := range r.order {
		x := &r.batch[i]
		claimed.add(x.ID)
		if x.TakeUp {
			runs = append(runs, x.ID)
		} else {
			insert.add(x.ID)
		}
	}
	takeUp := keysOf(runs)
	_, err := r.exec(`WITH e AS MATERIALIZED (
  SELECT 1 FROM (SELECT DISTINCT job COLLATE "C" AS job FROM unnest($3::text[]) u(job) ORDER BY 1) u
  CROSS JOIN LATERAL (SELECT 1 FROM belfry_entry e WHERE e.space = $1 AND e.job = u.job AND e.key = '' FOR KEY SHARE) e),
d AS MATERIALIZED (
  SELECT 1 FROM (SELECT DISTINCT job COLLATE "C" AS job, due FROM unnest($5::text[], $6::timestamptz[]) u(job, due) ORDER BY 1, 2) u
  CROSS JOIN LATERAL (SELECT 1 FROM belfry_due d WHERE d.space = $1 AND d.due = u.due AND d.job = u.job FOR KEY SHARE) d),
r AS MATERIALIZED (
  SELECT 1 FROM unnest($7::text[], $8::timestamptz[], $9::bytea[], $10::bytea[]) u(job, due, key, request)
  CROSS JOIN LATERAL (SELECT 1 FROM belfry_run r WHERE r.space = $1 AND r.due = u.due AND r.job = u.job AND r.key = u.key AND r.request = u.request
    FOR NO KEY UPDATE) r),
o AS MATERIALIZED (
  SELECT 1 FROM unnest($3::text[], $4::bytea[]) u(job, key)
  CROSS JOIN LATERAL (SELECT 1 FROM belfry_running o WHERE o.space = $1 AND o.job = u.job AND o.key = u.key AND o.slot = '' AND o.session <> $2
    FOR KEY SHARE) o)
SELECT (SELECT count(*) FROM e), (SELECT count(*) FROM d), (SELECT count(*) FROM r), (SELECT count(*) FROM o)`,
		r.space, r.id, claimed.job, claimed.key, insert.job, insert.due, takeUp.job, takeUp.due, takeUp.key, takeUp.request)
	if err != nil || len(r.contested) == 0 {
		return err
	}
	if r.rivals, err = r.findRivals(r.contested); err != nil {
		return err
	}
	return stay(r.rivals, locked)
}

// look reads what the round is judged by.
func (r *round) look() error {
	k, hash := r.columns()
	return r.query(func(rows pgx.Rows) error {
		var f rule.Facts
		var state *idempotency.State
		var fence, session, nonce *int64
		var attempt, crashes *int
		var wake *time.Time
		var told *int16
		var payload []byte
		var exclusive bool
		var newer *bool
		err := rows.Scan(&f.Fresh, &f.Open, &newer, &f.Marked, &f.BootLives, &exclusive,
			&state, &fence, &attempt, &crashes, &payload, &session, &nonce, &wake, &told)
		if state != nil {
			f.Row = &rule.Row{State: *state, Fence: *fence, Attempt: *attempt, Crashes: *crashes, Payload: payload,
				Session: *session, Nonce: *nonce, Wake: at(wake), Cancel: cancelOf(told)}
		}
		if newer != nil {
			f.Held = rule.HeldBy(*newer)
		}
		if x := &r.batch[r.order[len(r.facts)]]; contests(x) {
			beside := r.rivals[keyOf(x.ID)]
			f.Queued = len(beside.waiting) > 0
			if newer != nil && beside.holder == nil && err == nil {
				err = errAgain // it began between the two looks
			}
		}
		r.facts = append(r.facts, f)
		r.holder = append(r.holder, exclusive && state != nil && *state == idempotency.Running)
		return err
	}, `SELECT f.fresh IS NOT NULL, d.open IS NOT NULL, o.newer, coalesce(m.marked, false), coalesce(m.lives, false), coalesce(r.exclusive, false),
  r.state, r.fence, r.attempt, r.crashes, r.payload, r.session, r.nonce, r.wake, r.cancel
FROM unnest($4::text[], $5::timestamptz[], $6::bytea[], $7::bytea[], $8::bytea[]) WITH ORDINALITY u(job, due, key, request, hash, n)
LEFT JOIN LATERAL (SELECT true AS fresh FROM belfry_definition d, belfry_entry e WHERE d.session = $2 AND d.job = u.job AND d.hash = u.hash
  AND e.space = $1 AND e.job = u.job AND e.key = '' AND e.hash = u.hash LIMIT 1) f ON true
LEFT JOIN LATERAL (SELECT true AS open FROM belfry_due d WHERE d.space = $1 AND d.due = u.due AND d.job = u.job AND d.closed IS NULL LIMIT 1) d ON true
LEFT JOIN LATERAL (SELECT * FROM belfry_run r WHERE r.space = $1 AND r.due = u.due AND r.job = u.job AND r.key = u.key AND r.request = u.request LIMIT 1) r ON true
LEFT JOIN LATERAL (SELECT o.due > u.due AS newer FROM belfry_running o WHERE o.space = $1 AND o.job = u.job AND o.key = u.key AND o.slot = ''
  AND (o.due <> u.due OR o.request <> u.request) LIMIT 1) o ON true
LEFT JOIN LATERAL (SELECT s.marked IS NOT NULL AS marked, EXISTS (
    SELECT FROM belfry_session l WHERE l.space = $1 AND l.marked IS NULL AND l.expires > $3 AND l.boot = s.boot) AS lives
  FROM belfry_session s WHERE r.state = 2 AND s.id = r.session LIMIT 1) m ON true
ORDER BY u.n`, r.space, r.id, r.now, k.job, k.due, k.key, k.request, hash)
}

// judge answers all claims, and reports whether there is something to write. Of several that could hold one key the one
// that is due first does.
func (r *round) judge() (some bool) {
	type key struct{ job, key string }
	claimer := rule.Claimer{Now: r.now, Session: r.id, Nonce: r.nonce, Horizon: r.horizon, Tolerance: r.tolerance}
	r.writes = make([]rule.Write, len(r.order))
	taken := make(map[key]bool)
	for n, i := range r.order {
		x := r.batch[i]
		f := r.facts[n]
		k := key{x.ID.Job, x.ID.Key}
		if f.Held == rule.Free && taken[k] { // by an earlier claim of this batch, which is due earlier too
			f.Held = rule.Older
		}
		r.answers[i], r.writes[n] = claimer.Judge(x, f)
		if w := r.writes[n]; x.Exclusive && (w == rule.Insert || w == rule.TakeUp) {
			taken[k] = true
		}
		some = some || r.writes[n] != rule.Nothing
	}
	return some
}

// writing is what a round makes of its runs.
type writing struct {
	held, rows []newRun // that hold their keys anew; without a row until now

	// Runs to take up.
	again     keys
	crashes   []int32
	exclusive []bool
	term      []*int64

	left, kept           keys // no longer held as they were; held by another session
	leftSlots, keptSlots [][]byte

	told map[string][]idempotency.ID // runs that end, by their Cancel
	over overtaking
}

// write makes what was judged so.
func (r *round) write() error {
	w := writing{told: make(map[string][]idempotency.ID)}
	for n := range r.order {
		r.collect(&w, n)
	}
	for told, list := range w.told {
		outcome, reason := rule.Told(told)
		if err := r.end(list, idempotency.Running, outcome, reason); err != nil {
			return err
		}
	}
	if err := r.overtake(w.over); err != nil {
		return err
	}
	if err := r.rehold(w.left, w.leftSlots, w.held, w.kept, w.keptSlots); err != nil {
		return err
	}
	fences, err := r.insertRuns(w.rows, r.nonce)
	if err != nil {
		return err
	}
	taken, err := r.runAgain(&w)
	if err != nil {
		return err
	}
	for n, i := range r.order {
		switch id := identityOf(r.batch[i].ID); r.writes[n] {
		case rule.Insert:
			r.answers[i].Fence = fences[id]
		case rule.TakeUp:
			r.answers[i].Fence = taken[id]
		}
	}
	return nil
}

// collect adds what one claim makes of its run.
func (r *round) collect(w *writing, n int) {
	i := r.order[n]
	x := &r.batch[i]
	run := newRun{id: x.ID, exclusive: x.Exclusive, term: x.Term}
	switch r.writes[n] {
	case rule.Insert:
		w.held, w.rows = append(w.held, run), append(w.rows, run)
	case rule.RecordBusy:
		run.finish = x.OnBusy
		w.rows = append(w.rows, run)
		if x.Overtake {
			w.over.add(x.ID, r.rivals[keyOf(x.ID)])
		}
	case rule.RecordQueued:
		run.finish = x.OnQueued
		w.rows = append(w.rows, run)
	case rule.RecordNewer:
		run.finish = x.OnNewer
		w.rows = append(w.rows, run)
	case rule.RecordExpired:
		run.finish = x.OnExpired
		w.rows = append(w.rows, run)
	case rule.EndTold:
		told := r.facts[n].Row.Cancel
		w.told[told] = append(w.told[told], x.ID)
		w.left.add(x.ID)
		w.leftSlots = append(w.leftSlots, slot(x.ID, r.holder[n]))
	case rule.TakeUp:
		w.again.add(x.ID)
		w.crashes, w.exclusive, w.term = append(w.crashes, int32(r.answers[i].Crashes)), append(w.exclusive, x.Exclusive), append(w.term, termOf(x.Term))
		switch running := r.facts[n].Row.State == idempotency.Running; {
		case running && r.holder[n] == x.Exclusive:
			w.kept.add(x.ID)
			w.keptSlots = append(w.keptSlots, slot(x.ID, x.Exclusive))
			return
		case running:
			w.left.add(x.ID)
			w.leftSlots = append(w.leftSlots, slot(x.ID, r.holder[n]))
		}
		w.held = append(w.held, run)
	}
}

// rehold brings belfry_running up to date: runs that are held in another way now, anew, and by another session.
func (r *round) rehold(left keys, leftSlots [][]byte, held []newRun, kept keys, keptSlots [][]byte) error {
	const find = `(SELECT o.id FROM unnest($2::text[], $3::bytea[], $4::bytea[]) u(job, key, slot)
  CROSS JOIN LATERAL (SELECT o.ctid AS id FROM belfry_running o WHERE o.space = $1 AND o.job = u.job AND o.key = u.key AND o.slot = u.slot LIMIT 1) o) x`
	if len(leftSlots) > 0 {
		if _, err := r.exec(`DELETE FROM belfry_running o USING `+find+` WHERE o.ctid = x.id`, r.space, left.job, left.key, leftSlots); err != nil {
			return err
		}
	}
	if len(held) > 0 {
		if err := r.hold(held); err != nil {
			return err
		}
	}
	if len(keptSlots) == 0 {
		return nil
	}
	_, err := r.exec(`UPDATE belfry_running o SET session = $5 FROM `+find+` WHERE o.ctid = x.id`, r.space, kept.job, kept.key, keptSlots, r.id)
	return err
}

// runAgain makes runs that have rows, which are locked, run under this session, and returns their fences.
func (r *round) runAgain(w *writing) (map[identity]int64, error) {
	k := w.again
	fences := make(map[identity]int64, len(k.job))
	if len(k.job) == 0 {
		return fences, nil
	}
	err := r.returning(func(rows pgx.Rows) error {
		var id idempotency.ID
		var key, request []byte
		var fence int64
		err := rows.Scan(&id.Job, &id.Due, &key, &request, &fence)
		id.Key, id.Request = string(key), string(request)
		fences[identityOf(id)] = fence
		return err
	}, `UPDATE belfry_run r SET state = 2, outcome = 0, fence = nextval('belfry_number'), crashes = x.crashes, session = $2, nonce = $3, replica = $4,
  exclusive = x.exclusive, term = x.term, wake = NULL, started = $5
FROM (SELECT u.*, r.id FROM unnest($6::text[], $7::timestamptz[], $8::bytea[], $9::bytea[], $10::integer[], $11::boolean[], $12::bigint[]) u(job, due, key, request, crashes, exclusive, term)
  CROSS JOIN LATERAL (SELECT r.ctid AS id FROM belfry_run r
    WHERE r.space = $1 AND r.due = u.due AND r.job = u.job AND r.key = u.key AND r.request = u.request LIMIT 1) r) x
WHERE r.ctid = x.id RETURNING r.job, r.due, r.key, r.request, r.fence`,
		r.space, r.id, r.nonce, r.replica, r.now, k.job, k.due, k.key, k.request, w.crashes, w.exclusive, w.term)
	if err == nil && len(fences) < len(k.job) {
		err = errAgain
	}
	return fences, err
}
