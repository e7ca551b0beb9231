package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

const leaderColumns = `l.term, l.session, l.since, l.until, l.why, s.replica, s.expires, s.marked`

// scanLeader reads leaderColumns, and more behind them.
func scanLeader(r pgx.Rows, more ...any) (l rule.Leading, err error) {
	var until, marked *time.Time
	var why, replica []byte
	err = r.Scan(append([]any{&l.Term, &l.Session, &l.Since, &until, &why, &replica, &l.Expires, &marked}, more...)...)
	l.Since, l.Until, l.Expires, l.Marked = l.Since.UTC(), at(until), l.Expires.UTC(), at(marked)
	l.Why, l.Replica = string(why), string(replica)
	return l, err
}

// Lead makes the session the leader where it may be; see idempotency.Leaders.
func (s *Store) Lead(ctx context.Context, ses idempotency.Session, term int64) (leader idempotency.Leader, err error) {
	if err := idempotency.CheckLead(term); err != nil {
		return leader, err
	}
	err = s.with(ctx, ses, shared, func(c *call) error {
		l, err := c.leading()
		if err != nil {
			return err
		}
		if next := l.Succeed(term, c.now); next.Leads {
			l, err = c.succeed(l, term, next)
		}
		leader = l.Leader(c.now)
		return err
	})
	if err != nil {
		return idempotency.Leader{}, err
	}
	return leader, nil
}

// leading is the namespace's row of who leads.
func (c *call) leading() (l rule.Leading, err error) {
	err = c.query(func(r pgx.Rows) (err error) {
		l, err = scanLeader(r)
		return err
	}, `SELECT `+leaderColumns+` FROM belfry_leader l JOIN belfry_session s ON s.id = l.session WHERE l.space = $1`, c.space)
	return l, err
}

// succeed makes the session the leader after another one, or after none. errAgain where that is not the last one any more, or its
// session was renewed. The session is marked before the row is held, for its calls in flight may wait for the row.
func (c *call) succeed(last rule.Leading, term int64, next rule.Succession) (l rule.Leading, err error) {
	if next.Mark {
		if err := c.each(1, markLapsed, []int64{last.Session}, c.space, c.now); err != nil {
			return l, err
		}
	}
	if last.Term == 0 {
		err = c.each(1, `INSERT INTO belfry_leader (space, term, session, since, why) VALUES ($1, 0, 0, $2, '') ON CONFLICT DO NOTHING`, c.space, c.now)
	} else {
		err = c.each(1, `SELECT FROM belfry_leader l WHERE l.space = $1 AND l.session = $2 AND l.term = $3 AND l.until IS NOT DISTINCT FROM $4 FOR UPDATE`,
			c.space, last.Session, last.Term, instant(last.Until))
	}
	if err != nil {
		return l, err
	}
	// The fence is drawn by a statement that begins when the row is held. So is the instant: not before the end of the last one.
	err = c.returning(func(r pgx.Rows) (err error) {
		l, err = scanLeader(r)
		return err
	}, `UPDATE belfry_leader l SET term = coalesce(nullif($3::bigint, 0), nextval('belfry_number')), session = s.id, since = {clock}, until = NULL, why = $4
FROM belfry_session s WHERE l.space = $1 AND s.id = $2 RETURNING `+leaderColumns, c.space, c.id, term, []byte(next.Why))
	return l, err
}

// Resign ends the session's leadership of a term; see idempotency.Leaders.
func (s *Store) Resign(ctx context.Context, ses idempotency.Session, term int64, why string) error {
	if err := idempotency.CheckResign(term, why); err != nil {
		return err
	}
	return s.write(ctx, s.calls, func(t *tx) error {
		// Where it leads no more, this locks nothing and writes nothing.
		_, err := t.exec(`WITH c AS MATERIALIZED (SELECT {clock} AS now), x AS MATERIALIZED (
  SELECT l.space, l.session, l.term FROM c CROSS JOIN belfry_leader l JOIN belfry_session s ON s.id = l.session
  WHERE l.space = (SELECT id FROM belfry_space WHERE name = $1) AND l.session = $2 AND l.term = $3 AND l.until IS NULL
    AND s.marked IS NULL AND s.expires > c.now FOR KEY SHARE OF s)
UPDATE belfry_leader l SET until = c.now, why = $4 FROM c, x
WHERE l.space = x.space AND l.session = x.session AND l.term = x.term AND l.until IS NULL`, ses.Namespace, ses.ID, term, []byte(rule.Resigned(why)))
		return err
	})
}

// Leader returns who leads, or led last; see idempotency.Leaders.
func (s *Store) Leader(ctx context.Context, namespace string) (leader idempotency.Leader, err error) {
	if err := idempotency.CheckNamespace(namespace); err != nil {
		return leader, err
	}
	err = s.read(ctx, func(t *tx) error {
		leader = idempotency.Leader{}
		return t.query(func(r pgx.Rows) error {
			var now time.Time
			l, err := scanLeader(r, &now)
			leader = l.Leader(now.UTC())
			return err
		}, `WITH c AS MATERIALIZED (SELECT {clock} AS now)
SELECT `+leaderColumns+`, c.now FROM c CROSS JOIN belfry_leader l JOIN belfry_session s ON s.id = l.session
WHERE l.space = (SELECT id FROM belfry_space WHERE name = $1)`, namespace)
	})
	if err != nil {
		return idempotency.Leader{}, err
	}
	return leader, nil
}
