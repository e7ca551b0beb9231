package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// Submit applies a person's command, once; see idempotency.Control. It waits for decisions about the job in flight, not for claims.
func (s *Store) Submit(ctx context.Context, namespace string, c idempotency.Command) (record idempotency.Command, err error) {
	if err := idempotency.CheckCommand(namespace, c); err != nil {
		return idempotency.Command{}, err
	}
	c = rule.Asked(c)
	err = s.write(ctx, s.calls, func(t *tx) (err error) {
		record, err = t.submit(namespace, c)
		return err
	})
	if err != nil {
		return idempotency.Command{}, err
	}
	return record, nil
}

func (t *tx) submit(namespace string, asked idempotency.Command) (record idempotency.Command, err error) {
	x := submission{call: &call{tx: t}}
	known, err := x.lockSpace(namespace, asked.Kind)
	if err != nil {
		return record, err
	}
	if !known {
		return record, rule.Unknown(asked, namespace)
	}
	// From here on no other command about the job comes between, so that a repetition sees what the first one did.
	e, found, err := x.lockEntry(asked.ID.Job)
	if err != nil {
		return record, err
	}
	record, again, err := x.recorded(asked.Request)
	switch {
	case err != nil:
		return record, err
	case again:
		return rule.Repeated(asked, record)
	case !found:
		return record, rule.Unknown(asked, namespace)
	}
	if err := x.readSpace(); err != nil {
		return record, err
	}
	plan, err := rule.NewPlan(asked, e, x.Space)
	if err != nil {
		return record, err
	}
	err = x.run(func(*call) error {
		record, err = x.apply(plan)
		return err
	})
	return record, err
}

// submission is a command that is being applied.
type submission struct {
	*call
	rule.Space
}

// lockSpace finds the namespace and keeps it from being dropped, and for who asks what was removed, from being pruned.
func (x *submission) lockSpace(namespace string, kind idempotency.CommandKind) (found bool, err error) {
	lock := ` FOR KEY SHARE`
	if kind == idempotency.Backfill {
		lock = ` FOR SHARE`
	}
	var pruned *time.Time
	found, err = x.get([]any{&x.space, &pruned}, `SELECT id, pruned FROM belfry_space WHERE name = $1`+lock, namespace)
	x.Pruned = at(pruned)
	return found, err
}

// lockEntry finds the job's entry and keeps it from being decided, and retired.
func (x *submission) lockEntry(job string) (e idempotency.Entry, found bool, err error) {
	err = x.query(func(r pgx.Rows) (err error) {
		found = true
		e, err = scanEntry(r)
		return err
	}, `SELECT `+entryColumns+` FROM belfry_entry e WHERE e.space = $1 AND e.job = $2 AND e.key = '' FOR NO KEY UPDATE`, x.space, job)
	return e, found, err
}

// readSpace reads the rest that commands are judged by. The instant is that of the locks, and not of when they were asked for.
func (x *submission) readSpace() error {
	var horizon int64
	_, err := x.get([]any{&x.now, &horizon}, `SELECT {clock}, coalesce((SELECT horizon FROM belfry_control WHERE space = $1), 0)`, x.space)
	x.now = x.now.UTC()
	x.Now, x.Horizon = x.now, duration(horizon)
	return err
}

func (x *submission) apply(p *rule.Plan) (record idempotency.Command, err error) {
	rows, err := x.rows(p.Runs)
	if err != nil {
		return record, err
	}
	dues, err := x.dues(p.Command.ID.Job, p.Dues)
	if err != nil {
		return record, err
	}
	changes, err := p.Judge(rows, dues)
	if err != nil {
		return record, err
	}
	x.raises = changes.Record.Changed > 0
	for _, write := range []func(rule.Changes, idempotency.Command) error{x.pause, x.writeDues, x.insertNew, x.changeRuns} {
		if err := write(changes, p.Command); err != nil {
			return record, err
		}
	}
	if changes.Range != nil {
		if err := x.record([]idempotency.Range{*changes.Range}); err != nil {
			return record, err
		}
	}
	return changes.Record, x.recordCommand(changes.Record)
}

// rows reads the rows of runs, and keeps them as they are.
func (x *submission) rows(list []idempotency.ID) ([]*idempotency.Run, error) {
	if len(list) == 0 {
		return nil, nil
	}
	k := keysOf(list)
	found := make(map[identity]*idempotency.Run)
	err := x.query(func(r pgx.Rows) error {
		run, err := scanRun(r)
		found[identityOf(run.ID)] = &run
		return err
	}, `SELECT `+runColumns+` FROM unnest($2::text[], $3::timestamptz[], $4::bytea[], $5::bytea[]) u(job, due, key, request)
CROSS JOIN LATERAL (SELECT * FROM belfry_run r WHERE r.space = $1 AND r.due = u.due AND r.job = u.job AND r.key = u.key AND r.request = u.request
  FOR NO KEY UPDATE) r`, x.space, k.job, k.due, k.key, k.request)
	rows := make([]*idempotency.Run, len(list))
	for i, id := range list {
		rows[i] = found[identityOf(id)]
	}
	return rows, err
}

// dues reads what there is of dues of the job, and keeps it as it is.
func (x *submission) dues(job string, list []time.Time) ([]rule.DueState, error) {
	if len(list) == 0 {
		return nil, nil
	}
	found := make(map[int64]rule.DueState)
	err := x.query(func(r pgx.Rows) error {
		var due time.Time
		var opened *time.Time
		err := r.Scan(&due, &opened)
		found[due.Unix()] = rule.DueOpened
		if opened == nil {
			found[due.Unix()] = rule.DueSkipped
		}
		return err
	}, `SELECT d.due, d.opened FROM unnest($3::timestamptz[]) u(due)
CROSS JOIN LATERAL (SELECT d.due, d.opened FROM belfry_due d WHERE d.space = $1 AND d.due = u.due AND d.job = $2 FOR NO KEY UPDATE) d`, x.space, job, list)
	states := make([]rule.DueState, len(list))
	for i, due := range list {
		states[i] = found[due.Unix()]
	}
	return states, err
}

func (x *submission) pause(c rule.Changes, asked idempotency.Command) error {
	if !c.Pause {
		return nil
	}
	_, err := x.exec(`UPDATE belfry_entry SET paused_from = $3, paused_until = $4 WHERE space = $1 AND job = $2 AND key = ''`,
		x.space, asked.ID.Job, instant(c.PausedFrom), instant(c.PausedUntil))
	return err
}

// writeDues opens dues, and writes one that is skipped. errAgain where one is there by now.
func (x *submission) writeDues(c rule.Changes, asked idempotency.Command) error {
	if c.SkipDue != nil {
		if err := x.each(1, `INSERT INTO belfry_due (space, job, due, closed, catch_up) VALUES ($1, $2, $3, $4, false) ON CONFLICT DO NOTHING`,
			x.space, asked.ID.Job, *c.SkipDue, x.now); err != nil {
			return err
		}
	}
	if len(c.Open) == 0 {
		return nil
	}
	return x.each(len(c.Open), `INSERT INTO belfry_due AS d (space, job, opened, due, catch_up, by_hand) SELECT $1, $2, $3, u.due, true, true FROM unnest($4::timestamptz[]) u(due)
ON CONFLICT (space, due, job) DO UPDATE SET opened = excluded.opened, closed = NULL, catch_up = true, by_hand = true WHERE d.opened IS NULL`,
		x.space, asked.ID.Job, x.now, c.Open)
}

// insertNew writes runs that have no row.
func (x *submission) insertNew(c rule.Changes, asked idempotency.Command) error {
	var rows []newRun
	for _, id := range c.Insert {
		rows = append(rows, newRun{id: id, exclusive: true, payload: asked.Payload,
			finish: &idempotency.Finish{Outcome: idempotency.Wait, Wake: x.now, Reason: rule.ByHand}})
	}
	if c.Skip != nil {
		rows = append(rows, newRun{id: *c.Skip, exclusive: true, finish: &idempotency.Finish{Outcome: idempotency.Skipped, Reason: rule.ByHand}})
	}
	_, err := x.insertRuns(rows, 0)
	return err
}

// changeRuns changes runs whose rows are locked.
func (x *submission) changeRuns(c rule.Changes, _ idempotency.Command) error {
	if len(c.Again) > 0 {
		k := keysOf(c.Again)
		if err := x.each(len(k.job), `UPDATE belfry_run r SET state = 1, outcome = 0, attempt = 0, crashes = 0, wake = $6, reason = $7, text = NULL, finished = NULL
FROM `+theseRuns+` WHERE r.ctid = x.id AND r.state = 3`, x.space, k.job, k.due, k.key, k.request, x.now, blob(rule.ByHand)); err != nil {
			return err
		}
	}
	if c.End != nil {
		if err := x.end([]idempotency.ID{*c.End}, idempotency.Waiting, idempotency.Skipped, rule.ByHand); err != nil {
			return err
		}
	}
	if c.Mark != nil {
		return x.tell([]idempotency.ID{*c.Mark}, toldCanceled)
	}
	return nil
}

const commandColumns = `name, kind, job, key, request, due, last, actor, reason, at, changed`

// scanCommand reads commandColumns.
func scanCommand(r pgx.Rows) (c idempotency.Command, err error) {
	var key, request, actor, reason []byte
	var due, last *time.Time
	err = r.Scan(&c.Request, &c.Kind, &c.ID.Job, &key, &request, &due, &last, &actor, &reason, &c.At, &c.Changed)
	c.ID.Key, c.ID.Request, c.ID.Due = string(key), string(request), at(due)
	c.Last = at(last)
	c.Actor, c.Reason, c.At = string(actor), string(reason), c.At.UTC()
	return c, err
}

// recorded finds the record of a request.
func (x *submission) recorded(request string) (c idempotency.Command, found bool, err error) {
	err = x.query(func(r pgx.Rows) (err error) {
		found = true
		c, err = scanCommand(r)
		return err
	}, `SELECT `+commandColumns+` FROM belfry_command WHERE space = $1 AND name = $2`, x.space, request)
	return c, found, err
}

// recordCommand writes the record. errAgain where the request has one by now.
func (x *submission) recordCommand(c idempotency.Command) error {
	return x.each(1, `INSERT INTO belfry_command (space, `+commandColumns+`)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT DO NOTHING`,
		x.space, c.Request, int16(c.Kind), c.ID.Job, []byte(c.ID.Key), []byte(c.ID.Request), instant(c.ID.Due), instant(c.Last), []byte(c.Actor), []byte(c.Reason), c.At, int32(c.Changed))
}
