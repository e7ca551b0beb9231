package postgres

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// Decide moves entries on; see idempotency.Entries. It waits for the claims in flight of the jobs whose entries it moves.
func (s *Store) Decide(ctx context.Context, ses idempotency.Session, nonce int64, d []idempotency.Decision) (decided []idempotency.Decided, err error) {
	if err := idempotency.CheckDecisions(d); err != nil {
		return nil, err
	}
	err = s.with(ctx, ses, shared, func(c *call) (err error) {
		x := deciding{call: c, nonce: nonce, batch: d}
		decided, err = x.decide()
		return err
	})
	if err != nil {
		return nil, err
	}
	return decided, nil
}

// deciding is a batch of decisions.
type deciding struct {
	*call
	nonce int64
	batch []idempotency.Decision
	jobs  []string

	won  []idempotency.Decision // of entries, in the order of their jobs
	keys map[string]string      // by job: the key of its runs
}

func (x *deciding) decide() ([]idempotency.Decided, error) {
	for _, d := range x.batch {
		x.jobs = append(x.jobs, d.Job)
	}
	slices.Sort(x.jobs)
	x.jobs = slices.Compact(x.jobs)
	if x.begin == beginWrite {
		if err := x.lockEntries(x.jobs); err != nil {
			return nil, err
		}
	}
	found, err := x.entries(x.jobs)
	if err != nil {
		return nil, err
	}
	decided := make([]idempotency.Decided, len(x.batch))
	x.keys = make(map[string]string)
	for i, d := range x.batch {
		e, ok := found[d.Job]
		if !ok {
			continue
		}
		x.keys[d.Job] = rule.RunKey(e.Entry)
		decided[i] = idempotency.Decided{Entry: e.Entry, Won: e.nonce != nil && *e.nonce == x.nonce}
		if !decided[i].Won && e.announced == d.Hash && rule.Wins(e.Entry, d, x.now.Add(x.tolerance)) {
			decided[i].Won = true
			x.won = append(x.won, d)
		}
	}
	if len(x.won) > 0 {
		if err := x.apply(); err != nil {
			return nil, err
		}
		if found, err = x.entries(x.jobs); err != nil {
			return nil, err
		}
	}
	return decided, x.answer(decided, found)
}

// lockEntries keeps others from deciding, declaring anew and retiring, and waits for the claims that rely on the entries.
func (c *call) lockEntries(jobs []string) error {
	_, err := c.exec(`SELECT e.opened FROM unnest($2::text[]) u(job)
CROSS JOIN LATERAL (SELECT e.opened FROM belfry_entry e WHERE e.space = $1 AND e.job = u.job AND e.key = '' FOR UPDATE) e`, c.space, jobs)
	return err
}

// apply writes the decisions that are won.
func (x *deciding) apply() error {
	slices.SortFunc(x.won, func(a, b idempotency.Decision) int { return strings.Compare(a.Job, b.Job) })
	if err := x.moveEntries(); err != nil {
		return err
	}
	var ranges []idempotency.Range
	var open dues
	var catchUp []bool
	var runs []idempotency.Decision
	for _, d := range x.won {
		ranges = append(ranges, d.Ranges...)
		if !d.Keyed {
			runs = append(runs, d)
			continue
		}
		for _, due := range d.Run {
			open.add(d.Job, due)
			catchUp = append(catchUp, d.CatchUp)
		}
	}
	if err := x.record(ranges); err != nil {
		return err
	}
	if len(catchUp) > 0 {
		if _, err := x.exec(`INSERT INTO belfry_due (space, opened, job, due, catch_up)
SELECT $1, $2, u.* FROM unnest($3::text[], $4::timestamptz[], $5::boolean[]) u ON CONFLICT DO NOTHING`,
			x.space, x.now, open.job, open.due, catchUp); err != nil {
			return err
		}
	}
	return x.decideRuns(runs)
}

func (x *deciding) moveEntries() error {
	u := columnsOf(x.won, func(d idempotency.Decision) idempotency.Definition { return d.Definition })
	var opened, next []*time.Time
	for _, d := range x.won {
		opened, next = append(opened, instant(d.Opened)), append(next, instant(d.Next))
	}
	if _, err := x.exec(`INSERT INTO belfry_decision (session, job, key, nonce) SELECT $1, u.job, '', $2 FROM unnest($3::text[]) u(job)
ON CONFLICT (session, job, key) DO UPDATE SET nonce = excluded.nonce`, x.id, x.nonce, u.job); err != nil {
		return err
	}
	_, err := x.exec(`UPDATE belfry_entry e SET schedule = u.schedule, hash = u.hash, revision = u.revision, keyed = u.keyed, leader = u.leader, opened = u.opened, next = u.next
FROM unnest($2::text[], $3::bytea[], $4::bytea[], $5::bigint[], $6::boolean[], $7::boolean[], $8::timestamptz[], $9::timestamptz[]) u(job, schedule, hash, revision, keyed, leader, opened, next)
WHERE e.space = $1 AND e.job = u.job AND e.key = ''`, x.space, u.job, u.schedule, u.hash, u.revision, u.keyed, u.leader, opened, next)
	return err
}

// decideRuns writes the runs of jobs without keys. Those of one decision never skip or overtake each other; what a run of an
// older decision that holds the key makes of them, rule.Overlapping says.
func (x *deciding) decideRuns(decisions []idempotency.Decision) error {
	if len(decisions) == 0 {
		return nil
	}
	rivals, err := x.rivals(decisions)
	if err != nil {
		return err
	}
	overlaps, err := x.overlaps(decisions)
	if err != nil {
		return err
	}
	old, err := x.decided(decisions, false)
	if err != nil {
		return err
	}
	var held, rows []newRun
	var over overtaking
	for _, d := range decisions {
		id := idempotency.ID{Job: d.Job, Key: x.keys[d.Job]}
		beside := rivals[keyOf(id)]
		if looks(d) && !overlaps[d.Job].IsZero() && beside.holder == nil {
			return errAgain // it began between the two looks
		}
		plan := rule.Overlapping(d, overlaps[d.Job], len(beside.waiting) > 0, x.now)
		claims := plan.Claim
		for _, id.Due = range d.Run {
			if _, ok := old[identityOf(id)]; ok {
				continue
			}
			run := newRun{id: id, exclusive: plan.Exclusive, term: d.Term}
			if claims > 0 {
				claims--
				held = append(held, run)
			} else {
				idle, overtakes := plan.Idle(id.Due)
				run.finish = &idle
				if overtakes {
					over.add(id, beside)
				}
			}
			rows = append(rows, run)
		}
	}
	if err := x.overtake(over); err != nil {
		return err
	}
	if len(held) > 0 {
		if err := x.hold(held); err != nil {
			return err
		}
	}
	_, err = x.insertRuns(rows, x.nonce)
	return err
}

// looks reports whether a decision looks at the rivals of its runs.
func looks(d idempotency.Decision) bool {
	return !d.CatchUp && (d.Overlap == idempotency.OverlapQueue || d.Overlap == idempotency.OverlapCancel)
}

// rivals are those of the decisions that look at them. They stay as they are until the call has committed. No claim is in
// flight, since the entries are locked.
func (x *deciding) rivals(decisions []idempotency.Decision) (map[jobKey]rivals, error) {
	var of []jobKey
	for _, d := range decisions {
		if looks(d) {
			of = append(of, jobKey{d.Job, x.keys[d.Job]})
		}
	}
	found, err := x.findRivals(of)
	if err != nil || len(found) == 0 {
		return found, err
	}
	if err := x.lockRuns(runsOf(found)); err != nil {
		return nil, err
	}
	again, err := x.findRivals(of)
	if err != nil {
		return nil, err
	}
	return again, stay(again, found)
}

// overlaps returns the dues of the runs that hold the keys of jobs. They go on doing so until the call has committed.
func (x *deciding) overlaps(decisions []idempotency.Decision) (map[string]time.Time, error) {
	var job []string
	var key [][]byte
	for _, d := range decisions {
		job, key = append(job, d.Job), append(key, []byte(x.keys[d.Job]))
	}
	m := make(map[string]time.Time)
	err := x.query(func(r pgx.Rows) error {
		var job string
		var due time.Time
		err := r.Scan(&job, &due)
		m[job] = due
		return err
	}, `SELECT o.job, o.due FROM unnest($2::text[], $3::bytea[]) u(job, key)
CROSS JOIN LATERAL (SELECT o.job, o.due FROM belfry_running o WHERE o.space = $1 AND o.job = u.job AND o.key = u.key AND o.slot = '' FOR KEY SHARE) o`,
		x.space, job, key)
	return m, err
}

// decided returns the rows of the decisions' dues, by identity: all, or those that this call's decisions wrote and nobody
// has claimed since.
func (x *deciding) decided(decisions []idempotency.Decision, own bool) (map[identity]idempotency.Run, error) {
	var k keys
	for _, d := range decisions {
		for _, due := range d.Run {
			k.add(idempotency.ID{Job: d.Job, Key: x.keys[d.Job], Due: due})
		}
	}
	m := make(map[identity]idempotency.Run, len(k.job))
	err := x.query(func(r pgx.Rows) error {
		run, err := scanRun(r)
		m[identityOf(run.ID)] = run
		return err
	}, `SELECT `+runColumns+` FROM unnest($2::text[], $3::timestamptz[], $4::bytea[]) u(job, due, key)
CROSS JOIN LATERAL (SELECT * FROM belfry_run r WHERE r.space = $1 AND r.due = u.due AND r.job = u.job AND r.key = u.key AND r.request = ''
  AND ($5 = false OR r.session = $6 AND r.nonce = $7) LIMIT 1) r`, x.space, k.job, k.due, k.key, own, x.id, x.nonce)
	return m, err
}

// answer says how the entries are now, and of decisions that are won, what became of their runs.
func (x *deciding) answer(decided []idempotency.Decided, found map[string]entry) error {
	var won []idempotency.Decision
	for i, d := range x.batch {
		decided[i].Entry = found[d.Job].Entry
		if decided[i].Won && !d.Keyed {
			won = append(won, d)
		}
	}
	if len(won) == 0 {
		return nil
	}
	runs, err := x.decided(won, true)
	if err != nil {
		return err
	}
	for i, d := range x.batch {
		if !decided[i].Won || d.Keyed {
			continue
		}
		for _, due := range d.Run {
			if r, ok := runs[identity{d.Job, x.keys[d.Job], "", due.Unix()}]; ok {
				decided[i].Runs = append(decided[i].Runs, r)
			}
		}
	}
	return nil
}

// record writes ranges, behind those that are equal.
func (c *call) record(list []idempotency.Range) error {
	if len(list) == 0 {
		return nil
	}
	n := len(list)
	job, low, high := make([]string, n), make([]time.Time, n), make([]time.Time, n)
	count, outcome, reason := make([]int64, n), make([]int16, n), make([][]byte, n)
	for i, r := range list {
		job[i], low[i], high[i] = r.Job, r.From, r.To
		count[i], outcome[i], reason[i] = r.Count, int16(r.Outcome), []byte(r.Reason)
	}
	_, err := c.exec(`INSERT INTO belfry_range (space, job, low, high, count, outcome, reason, id)
SELECT $1, u.*, nextval('belfry_number') FROM unnest($2::text[], $3::timestamptz[], $4::timestamptz[], $5::bigint[], $6::smallint[], $7::bytea[]) u`,
		c.space, job, low, high, count, outcome, reason)
	return err
}
