package mysql

import (
	"database/sql"
	"slices"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// claiming is one batch of claims.
type claiming struct {
	changes
	batch []idempotency.Claim

	fresh   map[string]string // by job: the hash of entry and session, where they agree
	open    map[dueOf]bool
	dead    map[int64]deadSession
	wanted  []jobKey // by claims that overtake
	answers []idempotency.Answer
}

// dues are those that the batch names.
func (x *claiming) dues() []dueOf {
	list := make([]dueOf, len(x.batch))
	for i, c := range x.batch {
		list[i] = dueOf{c.ID.Due.Unix(), c.ID.Job}
	}
	return list
}

// hold reads which definitions are fresh and which dues open, and keeps them so.
func (x *claiming) hold() (err error) {
	jobs := make([]string, len(x.batch))
	for i, c := range x.batch {
		jobs[i] = c.ID.Job
	}
	if x.fresh, err = x.freshHashes(jobs); err != nil {
		return err
	}
	if !slices.ContainsFunc(x.batch, func(c idempotency.Claim) bool { return !c.TakeUp }) {
		return nil
	}
	x.open, err = x.openDues(x.dues(), shared)
	return err
}

// judge answers the batch, claim after claim, each in the light of those before it.
func (x *claiming) judge() {
	by := rule.Claimer{Now: x.now, Session: x.by.id, Nonce: x.nonce, Horizon: x.by.horizon, Tolerance: x.by.tolerance}
	x.answers = make([]idempotency.Answer, len(x.batch))
	for i, c := range x.batch {
		r := x.rows[refOf(c.ID)]
		facts := rule.Facts{
			Fresh: x.fresh[c.ID.Job] == c.Hash,
			Open:  x.open[dueOf{c.ID.Due.Unix(), c.ID.Job}],
		}
		if r != nil {
			facts.Row = &r.Row
			d := x.dead[r.Session]
			facts.Marked, facts.BootLives = d.marked, d.bootLives
		}
		k := jobKey{c.ID.Job, c.ID.Key}
		holder, held := x.held[k]
		if held && holder != refOf(c.ID) {
			facts.Held = rule.HeldBy(holder.due > c.ID.Due.Unix())
		}
		facts.Queued = len(x.waiting[k]) > 0
		answer, write := by.Judge(c, facts)
		x.answers[i] = answer
		x.apply(write, c, r, answer)
	}
}

// apply does what was judged of a claim.
func (x *claiming) apply(write rule.Write, c idempotency.Claim, r *row, answer idempotency.Answer) {
	switch write {
	case rule.Insert, rule.TakeUp:
		x.run(r, c, answer.Crashes)
	case rule.RecordBusy:
		others := slices.Clone(x.waiting[jobKey{c.ID.Job, c.ID.Key}])
		x.record(c.ID, c.OnBusy)
		if c.Overtake {
			x.overtake(c.ID, others)
		}
	case rule.RecordQueued:
		x.record(c.ID, c.OnQueued)
	case rule.RecordNewer:
		x.record(c.ID, c.OnNewer)
	case rule.RecordExpired:
		x.record(c.ID, c.OnExpired)
	case rule.EndTold:
		o, reason := rule.Told(r.Cancel)
		x.end(r, o, reason)
	}
}

// deadSession is of a session that has running runs what a take-up looks at.
type deadSession struct {
	marked    bool
	bootLives bool // its process has a live session, so it did not crash
}

// facts reads the rows that the batch is judged by: under locks, also those that were its rivals when it looked without.
func (x *claiming) facts(lock string) error {
	rivals := x.rivals(x.wanted)
	x.changes = x.call.changes(x.nonce)
	refs := make([]ref, len(x.batch))
	for i, c := range x.batch {
		refs[i] = refOf(c.ID)
	}
	if err := x.findRows(append(rivals, refs...), lock); err != nil {
		return err
	}
	var keys []jobKey // that are still to be had
	for i, c := range x.batch {
		if c.Exclusive && (c.TakeUp || x.rows[refs[i]] == nil) {
			keys = append(keys, jobKey{c.ID.Job, c.ID.Key})
		}
	}
	if err := x.findHeld(keys, lock); err != nil {
		return err
	}
	if err := x.findQueues(refs, lock); err != nil {
		return err
	}
	return x.findDead(lock)
}

// findQueues reads who waits for the keys where that matters: of inserts that queue or overtake, and find their key held
// or not the first time in the batch.
func (x *claiming) findQueues(refs []ref, lock string) error {
	var queued []jobKey
	x.wanted = nil
	times := make(map[jobKey]int)
	for _, r := range refs {
		times[r.jobKey()]++
	}
	for i, c := range x.batch {
		k := refs[i].jobKey()
		_, held := x.held[k]
		if x.rows[refs[i]] != nil || !held && times[k] < 2 || c.OnQueued == nil && !c.Overtake {
			continue
		}
		queued = append(queued, k)
		if c.Overtake {
			x.wanted = append(x.wanted, k)
		}
	}
	if err := x.findWaiting(queued); err != nil {
		return err
	}
	return x.findRivals(x.wanted, lock)
}

// findDead reads what there is to know of the sessions whose runs are to be taken up.
func (x *claiming) findDead(lock string) error {
	x.dead = make(map[int64]deadSession)
	var ids []int64
	for _, c := range x.batch {
		if r := x.rows[refOf(c.ID)]; c.TakeUp && r != nil && r.State == idempotency.Running {
			ids = append(ids, r.Session)
		}
	}
	if lock == alone {
		lock = shared
	}
	return x.queryRows(func(s *sql.Rows) error {
		var id int64
		var d deadSession
		err := s.Scan(&id, &d.marked, &d.bootLives)
		x.dead[id] = d
		return err
	}, list(ids), `SELECT s.id, s.marked IS NOT NULL, EXISTS (
  SELECT 1 FROM belfry_session o JOIN belfry_lease l ON l.session = o.id
  WHERE o.space = s.space AND o.boot = s.boot AND o.marked IS NULL AND l.expires > ?)
FROM belfry_session s WHERE s.id IN (?)`+lock, x.now.UnixMicro())
}

// tell adds to the answers the fences that were drawn.
func (x *claiming) tell() {
	for i, c := range x.batch {
		if x.answers[i].Verdict == idempotency.Won {
			x.answers[i].Fence = x.rows[refOf(c.ID)].Fence
		}
	}
}
