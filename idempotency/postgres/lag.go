package postgres

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// Lagging returns what the replica may take; see idempotency.Entries. It reads a snapshot, so it waits for nobody.
func (s *Store) Lagging(ctx context.Context, ses idempotency.Session, q idempotency.LagQuery) (lag idempotency.Lag, err error) {
	err = s.with(ctx, ses, unlocked, func(c *call) error {
		if err := q.Validate(c.partitions); err != nil {
			return err
		}
		l := lagging{call: c, Lag: rule.Lag{Now: c.now, Partitions: c.partitions, Query: q}}
		if err := l.lateEntries(); err != nil {
			return err
		}
		lag = idempotency.Lag{Now: c.now, Entries: l.Entries(), Controls: c.controls}
		if lag.Open, err = l.openDues(l.Known, false); err != nil {
			return err
		}
		if q.Limit == 0 {
			return nil
		}
		if lag.Waiting, err = l.choose(l.Waiting(), waitingRuns); err != nil {
			return err
		}
		lag.Orphaned, err = l.choose(l.Orphaned(), orphanedRuns)
		return err
	})
	if err != nil {
		return idempotency.Lag{}, err
	}
	return lag, nil
}

// lagging answers one query.
type lagging struct {
	*call
	rule.Lag
}

func (l *lagging) lateEntries() error {
	announced, err := l.definitions()
	if err != nil {
		return err
	}
	entries, err := l.entries(slices.Collect(maps.Keys(announced)))
	for _, e := range entries {
		l.Entry(e.Entry, e.announced)
	}
	return err
}

// openDues are those of jobs that are known, oldest first, with the passes of live sessions, or of dead ones too.
func (c *call) openDues(known func(job string) bool, dead bool) ([]idempotency.OpenDue, error) {
	var list []idempotency.OpenDue
	at := make(map[dueOf]int)
	var d dues
	err := c.query(func(r pgx.Rows) error {
		var x idempotency.OpenDue
		err := r.Scan(&x.Due, &x.Job, &x.Opened, &x.CatchUp, &x.ByHand)
		if known(x.Job) {
			x.Due, x.Opened, x.Finished = x.Due.UTC(), x.Opened.UTC(), rule.Bitmap(c.partitions)
			at[dueOf{x.Job, x.Due.Unix()}] = len(list)
			d.add(x.Job, x.Due)
			list = append(list, x)
		}
		return err
	}, `SELECT due, job, opened, catch_up, by_hand FROM belfry_due WHERE space = $1 AND closed IS NULL ORDER BY due, job`, c.space)
	if err != nil || len(list) == 0 {
		return nil, err
	}
	err = c.query(func(r pgx.Rows) error {
		var p idempotency.Pass
		var live bool
		err := r.Scan(&p.Job, &p.Due, &p.Session, &p.Mine, &p.Finished, &p.Keys, &p.MovedAt, &live)
		p.Due, p.MovedAt = p.Due.UTC(), p.MovedAt.UTC()
		x := &list[at[dueOf{p.Job, p.Due.Unix()}]]
		rule.Or(x.Finished, p.Finished)
		if live || dead {
			x.Passes = append(x.Passes, p)
		}
		return err
	}, `SELECT p.job, p.due, p.session, p.mine, p.finished, p.keys, p.moved, s.live IS NOT NULL
FROM unnest($3::text[], $4::timestamptz[]) u(job, due)
CROSS JOIN LATERAL (SELECT * FROM belfry_pass p WHERE p.space = $1 AND p.due = u.due AND p.job = u.job) p
LEFT JOIN LATERAL (SELECT true AS live FROM belfry_session s WHERE s.id = p.session AND s.marked IS NULL AND s.expires > $2 LIMIT 1) s ON true
ORDER BY p.session`, c.space, c.now, d.job, d.due)
	return list, err
}

// The runs that lag behind a run, oldest due first, with when each began to. Running ones are few, dead sessions may be many:
// so orphans are looked for from the runs. What waits of a job that this replica does not know may be much, and stay for long:
// it is not even read.
const (
	waitingRuns = `SELECT ` + runColumns + `, r.wake FROM belfry_run r
WHERE r.space = $1 AND r.wake IS NOT NULL AND r.wake <= $2 AND r.job = ANY ($8::text[]) AND (r.due, r.job, r.key, r.request) > ($3::timestamptz, $4::text, $5::bytea, $6::bytea)
  AND NOT EXISTS (SELECT FROM belfry_running o WHERE o.space = r.space AND o.job = r.job AND o.key = r.key AND o.slot = '')` + byDue + ` LIMIT $7`

	orphanedRuns = `SELECT ` + runColumns + `, o.died FROM (
  SELECT o.*, least(s.expires, s.marked) AS died FROM belfry_running o JOIN belfry_session s ON s.id = o.session
  WHERE o.space = $1 AND (s.marked IS NOT NULL OR s.expires <= $2) AND o.job = ANY ($8::text[]) AND (o.due, o.job, o.key, o.request) > ($3::timestamptz, $4::text, $5::bytea, $6::bytea)
  ORDER BY o.due, o.job, o.key, o.request LIMIT $7) o
CROSS JOIN LATERAL (SELECT * FROM belfry_run r WHERE r.space = $1 AND r.due = o.due AND r.job = o.job AND r.key = o.key AND r.request = o.request LIMIT 1) r` + byDue
)

// choose offers runs page by page until there are enough.
func (l *lagging) choose(runs *rule.Runs, text string) ([]idempotency.Run, error) {
	last, jobs := first, l.Jobs()
	for {
		n, enough := 0, false
		err := l.query(func(r pgx.Rows) error {
			var since time.Time
			x, err := scanRun(r, &since)
			if err == nil && !enough {
				enough = runs.Add(x, since)
			}
			last = x.ID
			n++
			return err
		}, text, l.space, l.now, last.Due, last.Job, []byte(last.Key), []byte(last.Request), rule.Page, jobs)
		if err != nil || enough || n < rule.Page {
			return runs.List, err
		}
	}
}
