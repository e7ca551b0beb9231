package postgres

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// Claim claims runs; see idempotency.Runs. A batch whose runs are all taken writes nothing, unless it moves a pass: then
// that is all it writes.
func (s *Store) Claim(ctx context.Context, ses idempotency.Session, nonce int64, batch []idempotency.Claim) (answers []idempotency.Answer, err error) {
	if err := idempotency.CheckBatch("claim", batch, idempotency.Claim.Validate); err != nil {
		return nil, err
	}
	order, plain := sorted(batch)
	led, one := ledBy(batch)
	if !plain || !one {
		err = s.with(ctx, ses, shared, func(c *call) (err error) {
			answers, err = c.claim(batch, order, nonce)
			return err
		})
	} else {
		err = s.write(ctx, s.calls, func(t *tx) (err error) {
			var all bool
			answers, all, err = t.insert(ses, batch, order, led, nonce)
			if err != nil || all {
				return err
			}
			return t.call(ses, shared, func(c *call) (err error) {
				answers, err = c.claim(batch, order, nonce)
				return err
			})
		})
	}
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// sorted returns the claims' positions in the order in which all batches write, so that they do not wait for each other
// crosswise. A batch is plain that only inserts, and each run once.
func sorted(batch []idempotency.Claim) (order []int, plain bool) {
	order = make([]int, len(batch))
	plain = true
	for i, x := range batch {
		order[i] = i
		plain = plain && !x.TakeUp
	}
	slices.SortFunc(order, func(i, j int) int {
		n := compare(&batch[i].ID, &batch[j].ID)
		if n == 0 {
			plain = plain && i == j
		}
		return cmp.Or(n, cmp.Compare(i, j))
	})
	return order, plain
}

// led are the jobs of a batch that its session claims as the leader, and in which term.
type led struct {
	jobs []string
	term int64
}

// ledBy returns them. It is false where that does not tell each run's term.
func ledBy(batch []idempotency.Claim) (x led, one bool) {
	terms := make(map[string]int64)
	for i := range batch {
		job, term := batch[i].ID.Job, batch[i].Term
		known, seen := terms[job]
		terms[job] = term
		switch {
		case seen && known != term, term != 0 && x.term != 0 && term != x.term:
			return led{}, false
		case !seen && term != 0:
			x.jobs, x.term = append(x.jobs, job), term
		}
	}
	return x, true
}

// compare is the order in which rows are written and locked.
func compare(a, b *idempotency.ID) int {
	return cmp.Or(strings.Compare(a.Job, b.Job), strings.Compare(a.Key, b.Key), a.Due.Compare(b.Due), strings.Compare(a.Request, b.Request))
}

// group is what the claims of one due of a job have in common.
type group struct {
	job, hash string
	due       int64
}

// insertClaims is one statement for a whole night: it inserts all that is absent and says what it found. A run's key is
// held (belfry_running) before its fence is drawn, as the row of belfry_run is made: so no claim of the key that commits
// before can have a higher one.
//
// The locks are taken only where something is absent. What the snapshot shows of what others may have changed while
// they were waited for is tested again: session, entry and due are locked as they are then, definitions by the count of their
// changes. The pass, which the statement does not look at, moves at its end.
const insertClaims = `WITH c AS MATERIALIZED (SELECT {clock} AS now),
u AS MATERIALIZED (
  SELECT * FROM unnest($7::integer[], $8::bytea[], $9::bytea[], $10::bytea[]) WITH ORDINALITY u(g, key, request, slot, n)),
me AS MATERIALIZED (
  SELECT s.space, s.replica, s.horizon * interval '1 microsecond' AS horizon, s.tolerance * interval '1 microsecond' AS tolerance, s.changes
  FROM belfry_session s, c
  WHERE s.id = $1 AND s.space = (SELECT id FROM belfry_space WHERE name = $2) AND s.marked IS NULL AND s.expires > c.now),
g AS MATERIALIZED (
  SELECT g.*, f.fresh IS NOT NULL AS fresh FROM me CROSS JOIN unnest($4::text[], $5::timestamptz[], $6::bytea[]) WITH ORDINALITY g(job, due, hash, n)
  LEFT JOIN LATERAL (SELECT true AS fresh FROM belfry_definition d, belfry_entry e WHERE d.session = $1 AND d.job = g.job AND d.hash = g.hash
    AND e.space = me.space AND e.job = g.job AND e.key = '' AND e.hash = g.hash LIMIT 1) f ON true),
x AS MATERIALIZED (
  SELECT u.*, r.mine FROM me CROSS JOIN u LEFT JOIN LATERAL (
    SELECT r.state = 2 AND r.session = $1 AND r.nonce = $3 AS mine FROM belfry_run r
    WHERE r.space = me.space AND r.due = ($5::timestamptz[])[u.g] AND r.job = ($4::text[])[u.g] AND r.key = u.key AND r.request = u.request LIMIT 1) r ON true),
l AS MATERIALIZED (
  SELECT s.changes FROM belfry_session s, c WHERE s.id = $1 AND s.marked IS NULL AND s.expires > c.now
    AND EXISTS (SELECT FROM x WHERE x.mine IS NULL) FOR KEY SHARE OF s),
k AS MATERIALIZED (
  SELECT g.n FROM l JOIN me ON me.changes = l.changes CROSS JOIN c CROSS JOIN g
  CROSS JOIN LATERAL (SELECT 1 FROM belfry_entry e WHERE e.space = me.space AND e.job = g.job AND e.key = '' AND e.hash = g.hash FOR KEY SHARE) e
  CROSS JOIN LATERAL (SELECT 1 FROM belfry_due d WHERE d.space = me.space AND d.due = g.due AND d.job = g.job AND d.closed IS NULL FOR KEY SHARE) d
  WHERE g.fresh AND g.due <= c.now + me.tolerance AND g.due >= c.now - me.horizon),
held AS (
  INSERT INTO belfry_running (space, session, job, due, key, request, slot)
  SELECT me.space, $1, ($4::text[])[x.g], ($5::timestamptz[])[x.g], x.key, x.request, x.slot FROM me CROSS JOIN x
  WHERE x.mine IS NULL AND x.g = ANY ((SELECT array_agg(k.n::integer) FROM k)::integer[])
  ON CONFLICT DO NOTHING RETURNING job, due, key, request, slot),
won AS (
  INSERT INTO belfry_run (space, job, due, key, request, state, exclusive, session, nonce, fence, term, replica, started)
  SELECT me.space, h.job, h.due, h.key, h.request, 2, h.slot = '', $1, $3, nextval('belfry_number'), CASE WHEN h.job = ANY ($11::text[]) THEN $12::bigint END, me.replica, c.now FROM me, c, held h
  ON CONFLICT DO NOTHING RETURNING fence),
moved AS (
  UPDATE belfry_pass p SET moved = greatest(p.moved, c.now) FROM me, c, g
  WHERE p.space = me.space AND p.due = g.due AND p.job = g.job AND p.session = $1)
SELECT EXISTS (SELECT FROM me), (SELECT count(*) FROM held), (SELECT array_agg(fence) FROM won),
  (SELECT array_agg(n) FROM x WHERE mine IS NULL),
  EXISTS (SELECT FROM x WHERE mine) OR EXISTS (SELECT FROM g WHERE NOT fresh)`

// insert claims runs of a plain batch. All of them are answered, or the rest is to be judged one by one.
func (t *tx) insert(ses idempotency.Session, batch []idempotency.Claim, order []int, led led, nonce int64) (answers []idempotency.Answer, all bool, err error) {
	var job []string
	var due []time.Time
	var hash [][]byte
	number, key, request, slots := make([]int32, len(order)), make([][]byte, len(order)), make([][]byte, len(order)), make([][]byte, len(order))
	groups := make(map[group]int32)
	for n, i := range order {
		x := &batch[i]
		g := group{x.ID.Job, x.Hash, x.ID.Due.Unix()}
		if groups[g] == 0 {
			job, due, hash = append(job, x.ID.Job), append(due, x.ID.Due), append(hash, []byte(x.Hash))
			groups[g] = int32(len(job))
		}
		number[n], key[n], request[n], slots[n] = groups[g], []byte(x.ID.Key), []byte(x.ID.Request), slot(x.ID, x.Exclusive)
	}
	var live, other bool
	var held int
	var fences, absent []int64
	if _, err := t.get([]any{&live, &held, &fences, &absent, &other}, insertClaims,
		ses.ID, ses.Namespace, nonce, job, due, hash, number, key, request, slots, led.jobs, led.term); err != nil {
		return nil, false, err
	}
	switch {
	case !live:
		return nil, false, idempotency.ErrSessionDead
	case held > len(fences):
		return nil, false, errAgain // it holds the key of a run that has come and gone since the snapshot
	case other || len(absent) > len(fences):
		return nil, false, nil
	}
	answers = make([]idempotency.Answer, len(batch))
	for i := range answers {
		answers[i].Verdict = idempotency.Taken
	}
	for i, n := range absent {
		answers[order[n-1]] = idempotency.Answer{Verdict: idempotency.Won, Fence: fences[i]}
	}
	return answers, true, nil
}
