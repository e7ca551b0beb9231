package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// maxPrune bounds the transaction of one Prune.
const maxPrune = 10 * idempotency.MaxBatch

// Prune removes what is older than the session's retention; see idempotency.Runs. It looks for it from the old end of each
// table on, removes at most 10,000 rows, and where there are none writes nothing.
func (s *Store) Prune(ctx context.Context, ses idempotency.Session, limit int) (n int, err error) {
	limit = min(limit, maxPrune)
	err = s.with(ctx, ses, shared, func(c *call) error {
		n = 0
		if limit <= 0 {
			return nil
		}
		p := pruning{call: c, keep: c.now.Add(-c.retention), limit: limit}
		n, err = p.prune()
		return err
	})
	if err != nil {
		return 0, err
	}
	return n, nil
}

// pruning removes rows of five tables, the oldest first.
type pruning struct {
	*call
	keep  time.Time // from which on all is kept
	limit int
	old   []stale
}

// stale is a row that retention may remove.
type stale struct {
	kind kind
	at   time.Time // how old it is
	id   idempotency.ID
	from time.Time // of a range, with the number
	num  int64     // of a range or a session
	name string    // of a command
}

type kind int

const (
	ofRun kind = iota
	ofDue
	ofRange
	ofCommand
	ofSession
)

func (p *pruning) prune() (int, error) {
	for _, find := range []func() error{p.oldRuns, p.oldDues, p.oldRanges, p.oldCommands} {
		if err := find(); err != nil {
			return 0, err
		}
	}
	slices.SortStableFunc(p.old, func(a, b stale) int { return a.at.Compare(b.at) })
	if err := p.oldSessions(); err != nil {
		return 0, err
	}
	p.old = p.old[:min(len(p.old), p.limit)]
	if len(p.old) == 0 {
		return 0, nil
	}
	if err := p.note(); err != nil {
		return 0, err
	}
	total := 0
	for _, drop := range []func() (int64, error){p.dropRuns, p.dropDues, p.dropRanges, p.dropCommands, p.dropSessions} {
		n, err := drop()
		if err != nil {
			return 0, err
		}
		total += int(n)
	}
	return total, nil
}

// note notes up to which due records are removed, before they are: a backfill that looks for them either sees that, or is waited for.
func (p *pruning) note() error {
	var last time.Time
	for _, x := range p.old {
		if (x.kind == ofRun || x.kind == ofDue || x.kind == ofRange) && x.at.After(last) {
			last = x.at
		}
	}
	if last.IsZero() {
		return nil
	}
	_, err := p.exec(`UPDATE belfry_space SET pruned = $2 WHERE id = $1 AND (pruned IS NULL OR pruned < $2)`, p.space, last)
	return err
}

// belowOpen holds where nothing of the job is open at that instant of x or before.
func belowOpen(at string) string {
	return ` AND NOT EXISTS (SELECT FROM belfry_due o WHERE o.space = x.space AND o.job = x.job AND o.closed IS NULL AND o.due <= ` + at + `)`
}

func (p *pruning) oldRuns() error {
	return p.query(func(r pgx.Rows) error {
		x := stale{kind: ofRun}
		var key, request []byte
		err := r.Scan(&x.id.Due, &x.id.Job, &key, &request)
		x.at, x.id.Key, x.id.Request = x.id.Due, string(key), string(request)
		p.old = append(p.old, x)
		return err
	}, `SELECT due, job, key, request FROM belfry_run x WHERE space = $1 AND due < $2 AND state = 3`+belowOpen(`x.due`)+`
ORDER BY due, job, key, request LIMIT $3`, p.space, rule.Ceil(p.keep), p.limit)
}

func (p *pruning) oldDues() error {
	return p.query(func(r pgx.Rows) error {
		x := stale{kind: ofDue}
		err := r.Scan(&x.id.Due, &x.id.Job)
		x.at = x.id.Due
		p.old = append(p.old, x)
		return err
	}, `SELECT due, job FROM belfry_due x WHERE space = $1 AND due < $2 AND closed IS NOT NULL`+belowOpen(`x.due`)+`
ORDER BY due, job LIMIT $3`, p.space, rule.Ceil(p.keep), p.limit)
}

func (p *pruning) oldRanges() error {
	return p.query(func(r pgx.Rows) error {
		x := stale{kind: ofRange}
		err := r.Scan(&x.from, &x.at, &x.id.Job, &x.num)
		p.old = append(p.old, x)
		return err
	}, `SELECT low, high, job, id FROM belfry_range x WHERE space = $1 AND low < $2 AND high < $2`+belowOpen(`x.high`)+`
ORDER BY high, low, job, id LIMIT $3`, p.space, p.keep, p.limit)
}

func (p *pruning) oldCommands() error {
	return p.query(func(r pgx.Rows) error {
		x := stale{kind: ofCommand}
		err := r.Scan(&x.at, &x.name)
		p.old = append(p.old, x)
		return err
	}, `SELECT at, name FROM belfry_command x WHERE space = $1 AND at < $2`+belowOpen(`x.at`)+`
ORDER BY at, name LIMIT $3`, p.space, p.keep, p.limit)
}

// oldSessions are those that neither a running run nor the leader's row names.
func (p *pruning) oldSessions() error {
	return p.query(func(r pgx.Rows) error {
		x := stale{kind: ofSession}
		err := r.Scan(&x.num, &x.at)
		p.old = append(p.old, x)
		return err
	}, `SELECT id, least(expires, marked) FROM belfry_session
WHERE space = $1 AND (marked IS NOT NULL OR expires <= $2) AND least(expires, marked) < $3
  AND id <> ALL (ARRAY(SELECT DISTINCT session FROM belfry_running WHERE space = $1))
  AND id <> ALL (ARRAY(SELECT session FROM belfry_leader WHERE space = $1)) ORDER BY id LIMIT $4`, p.space, p.now, p.keep, p.limit)
}

func (p *pruning) dropRuns() (int64, error) {
	var k keys
	for _, x := range p.old {
		if x.kind == ofRun {
			k.add(x.id)
		}
	}
	if len(k.job) == 0 {
		return 0, nil
	}
	return p.exec(`DELETE FROM belfry_run r USING (
  SELECT r.id FROM unnest($2::text[], $3::timestamptz[], $4::bytea[], $5::bytea[]) u(job, due, key, request)
  CROSS JOIN LATERAL (SELECT r.ctid AS id FROM belfry_run r
    WHERE r.space = $1 AND r.due = u.due AND r.job = u.job AND r.key = u.key AND r.request = u.request AND r.state = 3 LIMIT 1) r) x
WHERE r.ctid = x.id AND r.state = 3`, p.space, k.job, k.due, k.key, k.request)
}

func (p *pruning) dropDues() (int64, error) {
	var d dues
	for _, x := range p.old {
		if x.kind == ofDue {
			d.add(x.id.Job, x.id.Due)
		}
	}
	if len(d.job) == 0 {
		return 0, nil
	}
	return p.exec(`DELETE FROM belfry_due d USING unnest($2::text[], $3::timestamptz[]) u(job, due)
WHERE d.space = $1 AND d.due = u.due AND d.job = u.job AND d.closed IS NOT NULL`, p.space, d.job, d.due)
}

func (p *pruning) dropRanges() (int64, error) {
	var job []string
	var low, high []time.Time
	var id []int64
	for _, x := range p.old {
		if x.kind == ofRange {
			job, low, high, id = append(job, x.id.Job), append(low, x.from), append(high, x.at), append(id, x.num)
		}
	}
	if len(job) == 0 {
		return 0, nil
	}
	return p.exec(`DELETE FROM belfry_range r USING unnest($2::text[], $3::timestamptz[], $4::timestamptz[], $5::bigint[]) u(job, low, high, id)
WHERE r.space = $1 AND r.low = u.low AND r.high = u.high AND r.job = u.job AND r.id = u.id`, p.space, job, low, high, id)
}

func (p *pruning) dropCommands() (int64, error) {
	var name []string
	for _, x := range p.old {
		if x.kind == ofCommand {
			name = append(name, x.name)
		}
	}
	if len(name) == 0 {
		return 0, nil
	}
	return p.exec(`DELETE FROM belfry_command WHERE space = $1 AND name = ANY ($2::text[])`, p.space, name)
}

// dropSessions removes sessions with their definitions and decisions.
func (p *pruning) dropSessions() (n int64, err error) {
	var id []int64
	for _, x := range p.old {
		if x.kind == ofSession {
			id = append(id, x.num)
		}
	}
	if len(id) == 0 {
		return 0, nil
	}
	for _, text := range []string{
		`DELETE FROM belfry_definition WHERE session = ANY ($1::bigint[])`,
		`DELETE FROM belfry_decision WHERE session = ANY ($1::bigint[])`,
		`DELETE FROM belfry_session WHERE id = ANY ($1::bigint[])`,
	} {
		if n, err = p.exec(text, id); err != nil {
			return 0, err
		}
	}
	return n, nil
}
