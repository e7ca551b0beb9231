package postgres

import (
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// finishRuns ends runs or lets them wait: the row of each is changed where it is running with that fence, and what
// holds its key is deleted. One that is told to end does not wait, but ends so: as rule.Heed has it. It answers which. The update repeats its condition because older servers do not test again,
// of a row that it waited for, where that lies.
const finishRuns = `WITH c AS MATERIALIZED (SELECT {clock} AS now),
x AS MATERIALIZED (
  SELECT u.*, r.id FROM (SELECT id AS space FROM belfry_space WHERE name = $1) n
  CROSS JOIN unnest($2::text[], $3::timestamptz[], $4::bytea[], $5::bytea[], $6::bigint[], $7::smallint[], $8::smallint[], $9::integer[], $10::timestamptz[], $11::bytea[], $12::bytea[])
    WITH ORDINALITY u(job, due, key, request, fence, state, outcome, attempt, wake, reason, text, n)
  CROSS JOIN LATERAL (SELECT r.ctid AS id FROM belfry_run r
    WHERE r.space = n.space AND r.due = u.due AND r.job = u.job AND r.key = u.key AND r.request = u.request AND r.state = 2 AND r.fence = u.fence LIMIT 1) r),
ended AS (
  UPDATE belfry_run r SET state = CASE WHEN r.cancel IS NULL THEN x.state ELSE 3 END,
    outcome = CASE WHEN x.state = 1 AND r.cancel IS NOT NULL THEN CASE r.cancel WHEN 1 THEN 2 ELSE 3 END ELSE x.outcome END,
    reason = CASE WHEN x.state = 1 AND r.cancel IS NOT NULL THEN CASE r.cancel WHEN 1 THEN 'canceled'::bytea ELSE 'overtaken' END ELSE x.reason END,
    wake = CASE WHEN r.cancel IS NULL THEN x.wake END, attempt = x.attempt, text = x.text, cancel = NULL,
    finished = CASE WHEN x.state = 3 OR r.cancel IS NOT NULL THEN c.now END
  FROM x, c WHERE r.ctid = x.id AND r.state = 2 AND r.fence = x.fence
  RETURNING x.n, r.space, r.job, r.key, ` + slotOfRun + ` AS slot),
o AS MATERIALIZED (
  SELECT o.id FROM ended e CROSS JOIN LATERAL (SELECT o.ctid AS id FROM belfry_running o
    WHERE o.space = e.space AND o.job = e.job AND o.key = e.key AND o.slot = e.slot LIMIT 1) o),
gone AS (DELETE FROM belfry_running o USING o x WHERE o.ctid = x.id)
SELECT array_agg(n) FROM ended`

// finishRun is finishRuns for one run that does not wait, in a transaction of somebody else's, who may have set the planner up otherwise.
const finishRun = `WITH c AS MATERIALIZED (SELECT {clock} AS now),
ended AS (
  UPDATE belfry_run r SET state = 3, outcome = $7, attempt = $8, wake = NULL, reason = $9, text = $10, cancel = NULL, finished = c.now
  FROM c WHERE r.space = (SELECT id FROM belfry_space WHERE name = $1)
    AND r.job = $2 AND r.due = $3 AND r.key = $4 AND r.request = $5 AND r.state = 2 AND r.fence = $6
  RETURNING r.space, r.job, r.key, ` + slotOfRun + ` AS slot),
gone AS (DELETE FROM belfry_running o USING ended e WHERE o.space = e.space AND o.job = e.job AND o.key = e.key AND o.slot = e.slot)
SELECT EXISTS (SELECT FROM ended)`

// querier is a pgx.Tx, or any connection.
type querier interface {
	QueryRow(ctx context.Context, text string, args ...any) pgx.Row
}

// finishIn ends a run in a transaction that is somebody else's. It reports whether the run was running with
// that fence: else nothing was changed. A transaction whose snapshot is older than what overtook the run gets SQLSTATE 40001.
func (s *Store) finishIn(ctx context.Context, q querier, namespace string, f idempotency.Finish) (finished bool, err error) {
	err = q.QueryRow(ctx, s.texts.of(finishRun), namespace, f.ID.Job, f.ID.Due, []byte(f.ID.Key), []byte(f.ID.Request), f.Fence,
		int16(f.Outcome), int32(f.Attempt), blob(f.Reason), blob(f.Text)).Scan(&finished)
	return finished, err
}

// finishArgs are finishRuns' arguments, in that order of a batch.
func finishArgs(namespace string, batch []idempotency.Finish, order []int) []any {
	var k keys
	n := len(order)
	fence, state, outcome, attempt := make([]int64, n), make([]int16, n), make([]int16, n), make([]int32, n)
	wake, reason, text := make([]*time.Time, n), make([][]byte, n), make([][]byte, n)
	for at, i := range order {
		f := &batch[i]
		k.add(f.ID)
		fence[at], attempt[at], reason[at], text[at] = f.Fence, int32(f.Attempt), blob(f.Reason), blob(f.Text)
		state[at], outcome[at], wake[at] = ending(*f)
	}
	return []any{namespace, k.job, k.due, k.key, k.request, fence, state, outcome, attempt, wake, reason, text}
}

// Finish ends runs or lets them wait, by their fence; see idempotency.Runs.
func (s *Store) Finish(ctx context.Context, namespace string, batch []idempotency.Finish) (answers []idempotency.FinishAnswer, err error) {
	if err := idempotency.CheckNamespace(namespace); err != nil {
		return nil, err
	}
	if err := idempotency.CheckBatch("finish", batch, idempotency.Finish.Validate); err != nil {
		return nil, err
	}
	order := make([]int, len(batch))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, j int) int { return compare(&batch[i].ID, &batch[j].ID) })
	err = s.write(ctx, s.calls, func(t *tx) error {
		answers = make([]idempotency.FinishAnswer, len(batch))
		var finished []int64
		if _, err := t.get([]any{&finished}, finishRuns, finishArgs(namespace, batch, order)...); err != nil {
			return err
		}
		for _, n := range finished {
			answers[order[n-1]] = idempotency.Finished
		}
		if len(finished) == len(batch) {
			return nil
		}
		return t.unfinished(namespace, batch, answers)
	})
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// unfinished answers the finishes that did nothing.
func (t *tx) unfinished(namespace string, batch []idempotency.Finish, answers []idempotency.FinishAnswer) error {
	var k keys
	var fence, positions []int64
	for i, a := range answers {
		if a != idempotency.Finished {
			k.add(batch[i].ID)
			fence, positions = append(fence, batch[i].Fence), append(positions, int64(i))
			answers[i] = idempotency.Fenced
		}
	}
	return t.query(func(r pgx.Rows) error {
		var i int
		var state idempotency.State
		var outcome idempotency.Outcome
		if err := r.Scan(&i, &state, &outcome); err != nil {
			return err
		}
		if state == idempotency.Running {
			return errAgain
		}
		answers[i] = rule.Late(batch[i], state, outcome)
		return nil
	}, `SELECT u.i, r.state, r.outcome FROM unnest($2::text[], $3::timestamptz[], $4::bytea[], $5::bytea[], $6::bigint[], $7::bigint[]) u(job, due, key, request, fence, i)
CROSS JOIN LATERAL (SELECT r.state, r.outcome FROM belfry_run r WHERE r.space = (SELECT id FROM belfry_space WHERE name = $1)
  AND r.due = u.due AND r.job = u.job AND r.key = u.key AND r.request = u.request AND r.fence = u.fence LIMIT 1) r`,
		namespace, k.job, k.due, k.key, k.request, fence, positions)
}

// Mine returns the session's running runs; see idempotency.Runs.
func (s *Store) Mine(ctx context.Context, ses idempotency.Session) (runs []idempotency.Run, err error) {
	err = s.with(ctx, ses, shared, func(c *call) error {
		runs, err = c.runs(`SELECT `+runColumns+` FROM belfry_running o
CROSS JOIN LATERAL (SELECT * FROM belfry_run r WHERE r.space = $1 AND r.due = o.due AND r.job = o.job AND r.key = o.key AND r.request = o.request LIMIT 1) r
WHERE o.space = $1 AND o.session = $2`+byDue, c.space, c.id)
		return err
	})
	if err != nil {
		return nil, err
	}
	return runs, nil
}
