package mysql

import (
	"context"
	"database/sql"
	"errors"
	"slices"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// errNotAll ends a transaction that could not finish all of its batch at once.
var errNotAll = errors.New("mysql: not all of the batch was running with its fences")

// Finish ends runs or lets them wait, by their fence; see idempotency.Runs.
//
// Nearly all batches are of runs that run with their fences and are not told to end, so it first asks the server to change exactly those, and
// counts: a row whose state changed counts as changed whatever the client's flags. Where not all did it undoes that,
// and looks at each row.
func (s *Store) Finish(ctx context.Context, namespace string, f []idempotency.Finish) (answers []idempotency.FinishAnswer, err error) {
	if err := idempotency.CheckNamespace(namespace); err != nil {
		return nil, err
	}
	if err := idempotency.CheckBatch("finish", f, idempotency.Finish.Validate); err != nil {
		return nil, err
	}
	for _, try := range []func(*finishing) error{(*finishing).all, (*finishing).each} {
		err = s.write(ctx, func(t *tx) error {
			x, err := t.finishing(namespace, f)
			if err == nil {
				err = try(x)
			}
			answers = x.answers
			return err
		})
		if !errors.Is(err, errNotAll) {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return answers, nil
}

// finishIn ends one run in a transaction of the caller's, by the same law. It is part of it: the run has ended when the
// caller commits. Whoever took the run up meanwhile makes it Fenced, or, where the transaction reads a snapshot and the
// server checks that (MariaDB's innodb_snapshot_isolation), makes it fail with error 1020.
func (s *Store) finishIn(ctx context.Context, q querier, namespace string, f idempotency.Finish) (idempotency.FinishAnswer, error) {
	if err := errors.Join(idempotency.CheckNamespace(namespace), f.Validate()); err != nil {
		return 0, err
	}
	t := &tx{querier: q, ctx: ctx, prefix: s.prefix, clock: sqlText(s.clock()), packet: maxPacket}
	x, err := t.finishing(namespace, []idempotency.Finish{f})
	if err == nil {
		err = x.each()
	}
	if err != nil {
		return 0, explain(err)
	}
	return x.answers[0], nil
}

// finishing is one batch of finishes.
type finishing struct {
	*tx
	space   int64 // 0, which none is, where the namespace is unknown
	batch   []idempotency.Finish
	answers []idempotency.FinishAnswer
}

func (t *tx) finishing(namespace string, f []idempotency.Finish) (*finishing, error) {
	x := &finishing{tx: t, batch: f, answers: make([]idempotency.FinishAnswer, len(f))}
	var now int64
	_, err := t.get([]any{&now, &x.space}, `SELECT ?, id FROM belfry_space WHERE name = ?`+shared, t.clock, namespace)
	t.now = at(sql.NullInt64{Int64: now, Valid: true})
	return x, err
}

// all finishes all of the batch or answers errNotAll.
func (x *finishing) all() error {
	n, err := x.update(x.batch)
	if err != nil {
		return err
	}
	if n != int64(len(x.batch)) {
		return errNotAll
	}
	for i := range x.answers {
		x.answers[i] = idempotency.Finished
	}
	return x.leave(x.batch)
}

// each looks at each row, locked, and finishes those that are running with their fence.
func (x *finishing) each() error {
	refs := make([]ref, len(x.batch))
	for i, f := range x.batch {
		refs[i] = refOf(f.ID)
	}
	type row struct {
		state   idempotency.State
		outcome idempotency.Outcome
		fence   int64
		cancel  mark
	}
	found := make(map[ref]*row)
	err := x.queryRows(func(s *sql.Rows) error {
		var k ref
		r := &row{}
		err := s.Scan(&k.due, &k.job, &k.key, &k.request, &r.state, &r.outcome, &r.fence, &r.cancel)
		found[k] = r
		return err
	}, runsAt(sorted(refs, compareRefs)), `SELECT due, job, run_key, request, state, outcome, fence, cancel
FROM belfry_run FORCE INDEX (PRIMARY) WHERE space = ? AND (?)`+alone, x.space)
	if err != nil {
		return err
	}
	var finished []idempotency.Finish
	for i, f := range x.batch {
		r := found[refOf(f.ID)]
		switch {
		case r == nil || r.fence != f.Fence:
			x.answers[i] = idempotency.Fenced
		case r.state == idempotency.Running:
			x.answers[i] = idempotency.Finished
			f = rule.Heed(f, r.cancel.word())
			r.state, r.outcome, _ = columns(f, x.now)
			finished = append(finished, f)
		default:
			x.answers[i] = rule.Late(f, r.state, r.outcome)
		}
	}
	if _, err := x.update(finished); err != nil {
		return err
	}
	return x.leave(finished)
}

// result is what runs that end alike get.
type result struct {
	state        idempotency.State
	outcome      idempotency.Outcome
	at           int64
	attempt      int
	reason, text string
}

// update changes the rows of those that are running with their fence, one statement for all that end alike, and
// returns how many. What is told to end does not wait: of such runs it changes none.
func (x *finishing) update(batch []idempotency.Finish) (changed int64, err error) {
	groups := make(map[result][]idempotency.Finish)
	var order []result
	for _, f := range batch {
		state, outcome, at := columns(f, x.now)
		k := result{state, outcome, at, f.Attempt, f.Reason, f.Text}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], f)
	}
	for _, k := range order {
		which := `state = 2`
		if k.state == idempotency.Waiting {
			which = `state = 2 AND cancel = 0`
		}
		n, err := x.execRows(runningWith(groups[k]), `UPDATE belfry_run FORCE INDEX (PRIMARY)
SET state = ?, outcome = ?, at = ?, attempt = ?, reason = ?, text = ? WHERE space = ? AND `+which+` AND (?)`,
			int(k.state), int(k.outcome), k.at, k.attempt, blob(k.reason), blob(k.text), x.space)
		if err != nil {
			return 0, err
		}
		changed += n
	}
	return changed, nil
}

// runningWith are conditions for the runs' rows that have the fences.
func runningWith(batch []idempotency.Finish) *rows {
	batch = slices.SortedFunc(slices.Values(batch), func(a, b idempotency.Finish) int { return compareRefs(refOf(a.ID), refOf(b.ID)) })
	return points(len(batch), func(i int) point {
		p := refOf(batch[i].ID).point()
		p.fence = batch[i].Fence
		return p
	})
}

// leave removes the rows that stood beside the runs while they ran, and adds those of the ones that now wait.
func (x *finishing) leave(batch []idempotency.Finish) error {
	var running []place
	var waiting rows
	for _, f := range batch {
		r := refOf(f.ID)
		running = append(running, r.place(isExclusive(f.Fence)))
		if f.Outcome == idempotency.Wait {
			waiting.add(x.space, r.due, r.job, r.key, r.request, f.Wake.UnixMicro())
		}
	}
	if _, err := x.execRows(runningAt(sorted(running, comparePlaces)), deleteRunning, x.space); err != nil {
		return err
	}
	_, err := x.insert(&waiting, insertWaiting, ``)
	return err
}
