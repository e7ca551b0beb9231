package mysql

import (
	"context"

	"github.com/belfry-go/belfry/idempotency"
)

// Claim claims runs; see idempotency.Runs. A batch that wins nothing writes nothing, unless it moves a pass: then that
// is all.
//
// It reads what it judges by, judges, and writes what it won. What it read can have changed only where rows are there
// to change; such a batch is read again under locks before it writes. Where there was no row, the primary keys see to
// it that there still is none: a duplicate begins the call anew.
func (s *Store) Claim(ctx context.Context, ses idempotency.Session, nonce int64, batch []idempotency.Claim) (answers []idempotency.Answer, err error) {
	if err := idempotency.CheckBatch("claim", batch, idempotency.Claim.Validate); err != nil {
		return nil, err
	}
	err = s.with(ctx, ses, shared, func(c *call) error {
		x := claiming{changes: c.changes(nonce), batch: batch}
		answers, err = x.answer()
		return err
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

func (x *claiming) answer() ([]idempotency.Answer, error) {
	if err := x.hold(); err != nil {
		return nil, err
	}
	for _, lock := range []string{noLock, alone} {
		if err := x.facts(lock); err != nil {
			return nil, err
		}
		x.judge()
		if len(x.touched) == 0 || !x.movable {
			break
		}
	}
	if err := x.write(); err != nil {
		return nil, err
	}
	x.tell()
	return x.answers, x.move(x.dues())
}

// Mine returns the session's running runs; see idempotency.Runs.
func (s *Store) Mine(ctx context.Context, ses idempotency.Session) (runs []idempotency.Run, err error) {
	err = s.reads(ctx, ses, func(c *call) error {
		runs, err = c.runs(`belfry_running h FORCE INDEX (session) STRAIGHT_JOIN belfry_run r FORCE INDEX (PRIMARY)
  ON r.space = h.space AND r.due = h.due AND r.job = h.job AND r.run_key = h.run_key AND r.request = h.request
WHERE h.space = ? AND h.session = ?`+byDue, c.by.space, c.by.id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return runs, nil
}
