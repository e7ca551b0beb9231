package mysql

import (
	"context"
	"database/sql"
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
	if x.entries, err = x.call.entries(jobs, alone); err != nil {
		return err
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
		entries.add(x.by.space, d.Job, "", d.Schedule, d.Hash, d.Revision, d.Definition.Keyed, micro(d.Opened), micro(d.Next))
		decisions.add(x.by.id, d.Job, "", x.nonce)
		ranges = append(ranges, d.Ranges...)
	}
	if _, err := x.insert(&decisions, `INSERT INTO belfry_decision (session, job, run_key, nonce)`, ` ON DUPLICATE KEY UPDATE nonce = VALUES(nonce)`); err != nil {
		return err
	}
	// All of these are there and locked, so this inserts none.
	if _, err := x.insert(&entries, `INSERT INTO belfry_entry (space, job, run_key, schedule, hash, revision, keyed, opened, next)`,
		` ON DUPLICATE KEY UPDATE schedule = VALUES(schedule), hash = VALUES(hash), revision = VALUES(revision), keyed = VALUES(keyed), opened = VALUES(opened), next = VALUES(next)`); err != nil {
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
// a run of an older one holds the key, unless they catch up.
func (x *deciding) writeRuns() error {
	c := changes{call: x.call, nonce: x.nonce, rows: make(map[ref]*row), held: make(map[jobKey]ref)}
	var refs []ref
	var keys []jobKey
	for _, d := range x.apply {
		for _, due := range d.Run {
			if r := refOf(x.id(d, due)); !d.Keyed {
				refs = append(refs, r)
				keys = append(keys, jobKey{r.job, r.key})
			}
		}
	}
	if len(refs) == 0 {
		return nil
	}
	if err := c.findRows(refs, noLock); err != nil {
		return err
	}
	// Locked, lest one ends while this decides that its key is held.
	if err := c.findHeld(keys, shared); err != nil {
		return err
	}
	for _, d := range x.apply {
		if !d.Keyed {
			x.decideRuns(&c, d)
		}
	}
	return c.write()
}

func (x *deciding) decideRuns(c *changes, d idempotency.Decision) {
	_, overlap := c.held[jobKey{d.Job, rule.RunKey(x.entries[d.Job])}]
	idle := idempotency.Finish{Outcome: idempotency.Wait, Wake: x.now}
	if overlap && !d.CatchUp {
		idle = idempotency.Finish{Outcome: idempotency.Skipped, Reason: "overlap"}
	}
	claims := min(d.Claim, 1) // the first one that is claimed holds the key
	for _, due := range d.Run {
		run := idempotency.Claim{ID: x.id(d, due), Exclusive: true}
		switch {
		case c.rows[refOf(run.ID)] != nil:
		case !overlap && claims > 0:
			claims--
			c.run(nil, run, 0)
		default:
			c.record(run, &idle)
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
