package mysql

import (
	"context"
	"database/sql"
	"iter"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// Overview returns what is scheduled, open and alive; see idempotency.History. It reads one snapshot.
func (s *Store) Overview(ctx context.Context, namespace string) (o idempotency.Overview, err error) {
	if err := idempotency.CheckNamespace(namespace); err != nil {
		return o, err
	}
	err = s.read(ctx, func(t *tx) error {
		o = idempotency.Overview{}
		var now, space int64
		if _, err := t.get([]any{&now}, `SELECT ?`, t.clock); err != nil {
			return err
		}
		t.now = time.UnixMicro(now).UTC()
		o.Now = t.now
		found, err := t.get([]any{&space, &o.Partitions}, `SELECT id, partitions FROM belfry_space WHERE name = ?`, namespace)
		if err != nil || !found {
			return err
		}
		if o.Entries, err = t.allEntries(space); err != nil {
			return err
		}
		all := func(string) bool { return true }
		if o.Open, err = t.listOpen(openQuery{space, o.Partitions, all, false}); err != nil {
			return err
		}
		o.Sessions, err = t.liveSessions(space)
		return err
	})
	if err != nil {
		return idempotency.Overview{}, err
	}
	return o, nil
}

func (t *tx) allEntries(space int64) (list []idempotency.Entry, err error) {
	inForce, err := t.inForce(space, nil)
	if err != nil {
		return nil, err
	}
	err = t.query(func(r *sql.Rows) error {
		e, err := scanEntry(r)
		e.InForce = inForce[e.Job]
		list = append(list, e)
		return err
	}, `SELECT `+entryColumns+` FROM belfry_entry e FORCE INDEX (PRIMARY) WHERE e.space = ? ORDER BY e.job, e.run_key`, space)
	return list, err
}

// liveSessions are the sessions that are live now, with what they announced.
func (t *tx) liveSessions(space int64) (list []idempotency.SessionStatus, err error) {
	const live = ` FROM belfry_session s STRAIGHT_JOIN belfry_lease l ON l.session = s.id`
	const where = ` WHERE s.space = ? AND s.marked IS NULL AND l.expires > ?`
	at := make(map[int64]int)
	err = t.query(func(r *sql.Rows) error {
		x := idempotency.SessionStatus{Announced: make(map[string]string)}
		var expires int64
		err := r.Scan(&x.ID, &x.Replica, &x.Boot, &expires)
		x.Expires = time.UnixMicro(expires).UTC()
		at[x.ID] = len(list)
		list = append(list, x)
		return err
	}, `SELECT s.id, s.replica, s.boot, l.expires`+live+where+` ORDER BY s.replica, s.id`, space, t.now.UnixMicro())
	if err != nil {
		return nil, err
	}
	err = t.query(func(r *sql.Rows) error {
		var id int64
		var job, hash string
		err := r.Scan(&id, &job, &hash)
		list[at[id]].Announced[job] = hash
		return err
	}, `SELECT d.session, d.job, d.hash`+live+` STRAIGHT_JOIN belfry_definition d ON d.session = s.id`+where, space, t.now.UnixMicro())
	return list, err
}

// openQuery says which open dues are asked for.
type openQuery struct {
	space      int64
	partitions int
	of         func(job string) bool
	live       bool // only the passes of live sessions
}

// listOpen are open dues with their passes.
func (t *tx) listOpen(q openQuery) (list []idempotency.OpenDue, err error) {
	at := make(map[dueOf]int)
	err = t.query(func(r *sql.Rows) error {
		var x idempotency.OpenDue
		var due, opened int64
		if err := r.Scan(&due, &x.Job, &opened, &x.CatchUp, &x.ByHand); err != nil || !q.of(x.Job) {
			return err
		}
		x.Due, x.Opened, x.Finished = time.Unix(due, 0).UTC(), time.UnixMicro(opened).UTC(), rule.Bitmap(q.partitions)
		at[dueOf{due, x.Job}] = len(list)
		list = append(list, x)
		return nil
	}, `SELECT due, job, opened, catch_up, by_hand FROM belfry_due FORCE INDEX (closed) WHERE space = ? AND closed = 0 ORDER BY due, job`, q.space)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	err = t.query(func(r *sql.Rows) error {
		var p idempotency.Pass
		var due, moved int64
		var live bool
		if err := r.Scan(&due, &p.Job, &p.Session, &p.Mine, &p.Finished, &p.Keys, &moved, &live); err != nil {
			return err
		}
		i, ok := at[dueOf{due, p.Job}]
		if !ok {
			return nil
		}
		p.Due, p.MovedAt = list[i].Due, time.UnixMicro(moved).UTC()
		rule.Or(list[i].Finished, p.Finished)
		if live || !q.live {
			list[i].Passes = append(list[i].Passes, p)
		}
		return nil
	}, `SELECT p.due, p.job, p.session, p.mine, p.finished, p.settled, p.moved, coalesce(s.marked IS NULL AND l.expires > ?, 0)
FROM belfry_pass p LEFT JOIN belfry_session s ON s.id = p.session LEFT JOIN belfry_lease l ON l.session = p.session
WHERE p.space = ? ORDER BY p.due, p.job, p.session`, t.now.UnixMicro(), q.space)
	return list, err
}

// Dues yields the dues of a job with keys; see idempotency.History. It reads as List does.
func (s *Store) Dues(ctx context.Context, namespace, job string, from, to time.Time) iter.Seq2[idempotency.Due, error] {
	return rule.DuePages(namespace, from, to, func(low, high int64) (list []idempotency.Due, err error) {
		err = s.read(ctx, func(t *tx) error {
			list = nil
			space, err := t.spaceOf(namespace)
			if err == nil && space != 0 {
				list, err = t.dues(space, job, low, high)
			}
			return err
		})
		return list, err
	})
}

// dues returns a page of the job's dues in [low, high).
func (t *tx) dues(space int64, job string, low, high int64) (list []idempotency.Due, err error) {
	err = t.query(func(r *sql.Rows) error {
		x := idempotency.Due{Job: job}
		var due, opened, closed int64
		err := r.Scan(&due, &opened, &closed, &x.Keys)
		x.Due, x.Opened = time.Unix(due, 0).UTC(), time.UnixMicro(opened).UTC()
		if closed != 0 {
			x.Closed = time.UnixMicro(closed).UTC()
		}
		list = append(list, x)
		return err
	}, `SELECT due, opened, closed, settled FROM belfry_due FORCE INDEX (PRIMARY)
WHERE space = ? AND due >= ? AND due < ? AND job = ? AND opened <> 0 ORDER BY due LIMIT ?`, space, low, high, job, rule.Page)
	return list, err
}
