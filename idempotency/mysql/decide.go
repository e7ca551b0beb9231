package mysql

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// Decide moves entries on; see idempotency.Entries.
func (s *Store) Decide(ctx context.Context, ses idempotency.Session, nonce int64, d []idempotency.Decision) (decided []idempotency.Decided, err error) {
	if err := idempotency.CheckDecisions(d); err != nil {
		return nil, err
	}
	jobs := make([]string, len(d))
	for i, x := range d {
		jobs[i] = x.Job
	}
	err = s.with(ctx, ses, shared, func(c *call) error {
		x := deciding{call: c, nonce: nonce}
		if err := x.facts(jobs); err != nil {
			return err
		}
		decided = make([]idempotency.Decided, len(d))
		for i, y := range d {
			decided[i] = x.decide(y)
		}
		if err := x.write(); err != nil {
			return err
		}
		return x.addRuns(d, decided)
	})
	if err != nil {
		return nil, err
	}
	return decided, nil
}

// deciding is one batch of decisions.
type deciding struct {
	*call
	nonce     int64
	entries   map[string]idempotency.Entry // locked
	won       map[string]int64             // by job: the nonce under which the session last won
	announced map[string]string            // by job: the hash that the session announced
	apply     []idempotency.Decision       // those that are won now
}

func (x *deciding) facts(jobs []string) (err error) {
	entries, err := x.call.entries(jobs, alone)
	if err != nil {
		return err
	}
	x.entries = make(map[string]idempotency.Entry, len(entries))
	for job, e := range entries {
		x.entries[job] = e.Entry
	}
	x.won, x.announced = make(map[string]int64), make(map[string]string)
	err = x.queryRows(func(r *sql.Rows) error {
		var job string
		var n int64
		err := r.Scan(&job, &n)
		x.won[job] = n
		return err
	}, list(jobs), `SELECT job, nonce FROM belfry_decision WHERE session = ? AND run_key = '' AND job IN (?)`, x.by.id)
	if err != nil {
		return err
	}
	return x.queryRows(func(r *sql.Rows) error {
		var job, hash string
		err := r.Scan(&job, &hash)
		x.announced[job] = hash
		return err
	}, list(jobs), `SELECT job, hash FROM belfry_definition WHERE session = ? AND job IN (?)`, x.by.id)
}

// decide says whether a decision is won, now or before, and what its entry then is.
func (x *deciding) decide(d idempotency.Decision) idempotency.Decided {
	e, ok := x.entries[d.Job]
	if !ok {
		return idempotency.Decided{}
	}
	if last, before := x.won[d.Job]; before && last == x.nonce {
		return idempotency.Decided{Won: true, Entry: e}
	}
	if x.announced[d.Job] != d.Hash || !rule.Wins(e, d, x.now.Add(x.by.tolerance)) {
		return idempotency.Decided{Entry: e}
	}
	e.Definition, e.Opened, e.Next = d.Definition, rule.Instant(d.Opened), rule.Instant(d.Next)
	x.apply = append(x.apply, d)
	return idempotency.Decided{Won: true, Entry: e}
}

// write writes the decisions that are won.
func (x *deciding) write() error {
	if len(x.apply) == 0 {
		return nil
	}
	var entries, decisions rows
	var ranges []idempotency.Range
	for _, d := range x.apply {
		entries.add(x.by.space, d.Job, "", d.Schedule, d.Hash, d.Revision, d.Definition.Keyed, d.Leader, micro(d.Opened), micro(d.Next))
		decisions.add(x.by.id, d.Job, "", x.nonce)
		ranges = append(ranges, d.Ranges...)
	}
	if _, err := x.insert(&decisions, `INSERT INTO belfry_decision (session, job, run_key, nonce)`, ` ON DUPLICATE KEY UPDATE nonce = VALUES(nonce)`); err != nil {
		return err
	}
	// All of these are there and locked, so this inserts none.
	if _, err := x.insert(&entries, `INSERT INTO belfry_entry (space, job, run_key, schedule, hash, revision, keyed, leader, opened, next)`,
		` ON DUPLICATE KEY UPDATE schedule = VALUES(schedule), hash = VALUES(hash), revision = VALUES(revision), keyed = VALUES(keyed), leader = VALUES(leader), opened = VALUES(opened), next = VALUES(next)`); err != nil {
		return err
	}
	if err := x.writeDues(); err != nil {
		return err
	}
	if err := x.writeRuns(); err != nil {
		return err
	}
	return x.record(ranges...)
}

// writeDues opens dues of jobs with keys, but those that were opened before.
func (x *deciding) writeDues() error {
	var dues []dueOf
	for _, d := range x.apply {
		for _, due := range d.Run {
			if d.Keyed {
				dues = append(dues, dueOf{due.Unix(), d.Job})
			}
		}
	}
	old := make(map[dueOf]bool)
	err := x.queryRows(func(r *sql.Rows) error {
		var d dueOf
		err := r.Scan(&d.due, &d.job)
		old[d] = true
		return err
	}, dueRows(dues), `SELECT due, job FROM belfry_due FORCE INDEX (PRIMARY) WHERE space = ? AND (due, job) IN (?)`, x.by.space)
	if err != nil {
		return err
	}
	var fresh rows
	for _, d := range x.apply {
		for _, due := range d.Run {
			if d.Keyed && !old[dueOf{due.Unix(), d.Job}] {
				fresh.add(x.by.space, due.Unix(), d.Job, x.now.UnixMicro(), d.CatchUp)
			}
		}
	}
	_, err = x.insert(&fresh, `INSERT INTO belfry_due (space, due, job, opened, catch_up)`, ``)
	return err
}

// writeRuns writes the runs of jobs without keys. Those of one decision never skip each other, but all are skipped where
// a run of an older one holds the key, unless the decision says otherwise.
func (x *deciding) writeRuns() error {
	var refs []ref
	var keys, overtake []jobKey
	lock := shared // lest a run ends while this decides that its key is held
	for _, d := range x.apply {
		if d.Keyed || len(d.Run) == 0 {
			continue
		}
		for _, due := range d.Run {
			refs = append(refs, refOf(x.id(d, due)))
		}
		k := refs[len(refs)-1].jobKey()
		keys = append(keys, k)
		switch d.Overlap {
		case idempotency.OverlapQueue:
			lock = alone // lest others queue there too
		case idempotency.OverlapCancel:
			lock = alone
			overtake = append(overtake, k)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	c := x.call.changes(x.nonce)
	if err := c.findContested(refs, keys, overtake, lock); err != nil {
		return err
	}
	for _, d := range x.apply {
		if !d.Keyed && len(d.Run) > 0 {
			x.decideRuns(&c, d)
		}
	}
	return c.write()
}

// findContested reads the rows of decided dues and what their keys are contested by: the rows of those that may be
// overtaken are locked, as others lock them, before what makes them hold their keys.
func (x *changes) findContested(refs []ref, keys, overtake []jobKey, lock string) error {
	if len(overtake) > 0 {
		before := x.call.changes(x.nonce)
		if err := errors.Join(before.findHeld(overtake, noLock), before.findWaiting(overtake)); err != nil {
			return err
		}
		if err := x.findRows(before.rivals(overtake), alone); err != nil {
			return err
		}
	}
	if err := x.findRows(refs, noLock); err != nil {
		return err
	}
	if err := x.findHeld(keys, lock); err != nil {
		return err
	}
	held := slices.DeleteFunc(slices.Clone(keys), func(k jobKey) bool { _, ok := x.held[k]; return !ok })
	if lock == alone {
		if err := x.findWaiting(held); err != nil {
			return err
		}
	}
	return x.findRivals(slices.DeleteFunc(held, func(k jobKey) bool { return !slices.Contains(overtake, k) }), alone)
}

func (x *deciding) decideRuns(c *changes, d idempotency.Decision) {
	k := jobKey{d.Job, rule.RunKey(x.entries[d.Job])}
	var holder time.Time
	if r, held := c.held[k]; held {
		holder = time.Unix(r.due, 0)
	}
	others := slices.Clone(c.waiting[k])
	o := rule.Overlapping(d, holder, len(others) > 0, x.now)
	claims := o.Claim
	for _, due := range d.Run {
		run := idempotency.Claim{ID: x.id(d, due), Exclusive: o.Exclusive, Term: d.Term}
		switch {
		case c.rows[refOf(run.ID)] != nil:
		case claims > 0:
			claims--
			c.run(nil, run, 0)
		default:
			idle, overtakes := o.Idle(due)
			c.record(run.ID, &idle)
			if overtakes {
				c.overtake(run.ID, others)
			}
		}
	}
}

func (x *deciding) id(d idempotency.Decision, due time.Time) idempotency.ID {
	return idempotency.ID{Job: d.Job, Key: rule.RunKey(x.entries[d.Job]), Due: due}
}

// addRuns adds the rows that the decisions wrote and nobody claimed since.
func (x *deciding) addRuns(d []idempotency.Decision, decided []idempotency.Decided) error {
	var refs []ref
	at := make(map[string]int)
	for i, y := range d {
		if !decided[i].Won || y.Keyed {
			continue
		}
		at[y.Job] = i
		for _, due := range y.Run {
			refs = append(refs, refOf(x.id(y, due)))
		}
	}
	return runsAt(sorted(refs, compareRefs)).packets(x.packet, func(part sqlText) error {
		runs, err := x.runs(`belfry_run r FORCE INDEX (PRIMARY) WHERE space = ? AND session = ? AND nonce = ? AND (?)`+byDue, x.by.space, x.by.id, x.nonce, part)
		for _, r := range runs {
			i := at[r.ID.Job]
			decided[i].Runs = append(decided[i].Runs, r)
		}
		return err
	})
}

// rangesOf is how many ranges one drawn number names.
const rangesOf = 1 << 20

// record records ranges, behind those that are equal.
func (c *call) record(ranges ...idempotency.Range) error {
	if len(ranges) == 0 {
		return nil
	}
	n, err := c.draw()
	if err != nil {
		return err
	}
	var r rows
	for i, x := range ranges {
		r.add(c.by.space, x.From.UnixMicro(), x.To.UnixMicro(), x.Job, n*rangesOf+int64(i), x.Count, int(x.Outcome), x.Reason)
	}
	_, err = c.insert(&r, `INSERT INTO belfry_range (space, low, high, job, id, dues, outcome, reason)`, ``)
	return err
}
