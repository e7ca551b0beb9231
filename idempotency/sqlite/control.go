package sqlite

import (
	"context"
	"database/sql"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// Submit applies a person's command, once; see idempotency.Control.
func (s *Store) Submit(ctx context.Context, namespace string, c idempotency.Command) (record idempotency.Command, err error) {
	if err := idempotency.CheckCommand(namespace, c); err != nil {
		return idempotency.Command{}, err
	}
	c = rule.Asked(c)
	err = s.write(ctx, false, func(t *tx) error {
		x := submission{call: &call{tx: t}}
		record, err = x.submit(namespace, c)
		return err
	})
	if err != nil {
		return idempotency.Command{}, err
	}
	return record, nil
}

// submission is a command in its transaction. Its call is of no session.
type submission struct{ *call }

func (x submission) submit(namespace string, c idempotency.Command) (idempotency.Command, error) {
	none := idempotency.Command{}
	space := rule.Space{Now: x.now}
	var pruned sql.NullInt64
	found, err := x.get([]any{&x.by.space, &space.Horizon, &pruned}, `SELECT id, horizon, pruned FROM belfry_space WHERE name = ?`, namespace)
	if err != nil {
		return none, err
	}
	if !found {
		return none, rule.Unknown(c, namespace)
	}
	space.Pruned = at(pruned)
	first, err := x.recorded(c.Request)
	if err != nil {
		return none, err
	}
	if first != nil {
		return rule.Repeated(c, *first)
	}
	e, err := x.entry(c.ID.Job)
	if err != nil {
		return none, err
	}
	if e == nil {
		return none, rule.Unknown(c, namespace)
	}
	plan, err := rule.NewPlan(c, *e, space)
	if err != nil {
		return none, err
	}
	return x.apply(plan)
}

// recorded is the record of the request, nil where there is none.
func (x submission) recorded(request string) (c *idempotency.Command, err error) {
	err = x.query(func(r *sql.Rows) error {
		record, err := scanCommand(r)
		c = &record
		return err
	}, `SELECT `+commandColumns+` FROM belfry_command WHERE space = ? AND request = ?`, x.by.space, request)
	return c, err
}

// apply judges the command by the rows that it is about, and writes what comes of it.
func (x submission) apply(plan *rule.Plan) (idempotency.Command, error) {
	rows, dues, err := x.facts(plan)
	if err != nil {
		return idempotency.Command{}, err
	}
	changes, err := plan.Judge(rows, dues)
	if err != nil {
		return idempotency.Command{}, err
	}
	c := changes.Record
	for _, write := range []func() error{
		func() error { return x.pause(c.ID.Job, changes) },
		func() error { return x.changeRuns(plan.Command.Payload, changes) },
		func() error { return x.changeDues(c.ID.Job, changes) },
		func() error { return x.keep(c) },
	} {
		if err := write(); err != nil {
			return idempotency.Command{}, err
		}
	}
	return c, nil
}

func (x submission) facts(plan *rule.Plan) (rows []*idempotency.Run, dues []rule.DueState, err error) {
	for _, id := range plan.Runs {
		found, err := x.runs(`r.space = ? AND r.due = ? AND r.job = ? AND r.key = ? AND r.request = ?`,
			x.by.space, id.Due.Unix(), id.Job, []byte(id.Key), []byte(id.Request))
		if err != nil {
			return nil, nil, err
		}
		var r *idempotency.Run
		if len(found) > 0 {
			r = &found[0]
		}
		rows = append(rows, r)
	}
	for _, due := range plan.Dues {
		state := rule.DueAbsent
		if _, err := x.get([]any{&state}, `SELECT iif(opened IS NULL, ?, ?) FROM belfry_due WHERE space = ? AND due = ? AND job = ?`,
			rule.DueSkipped, rule.DueOpened, x.by.space, due.Unix(), plan.Command.ID.Job); err != nil {
			return nil, nil, err
		}
		dues = append(dues, state)
	}
	return rows, dues, nil
}

func (x submission) pause(job string, c rule.Changes) error {
	if !c.Pause {
		return nil
	}
	_, err := x.exec(`UPDATE belfry_entry SET paused_from = ?, paused_until = ? WHERE space = ? AND job = ? AND key = x''`,
		micro(c.PausedFrom), micro(c.PausedUntil), x.by.space, job)
	return err
}

func (x submission) changeRuns(payload []byte, c rule.Changes) error {
	for _, id := range c.Insert {
		if err := x.insertIdle(id, c.Waits(), 0); err != nil {
			return err
		}
		if payload == nil {
			continue
		}
		if _, err := x.exec(`UPDATE belfry_run SET payload = ? WHERE space = ? AND due = ? AND job = ? AND key = ? AND request = ?`,
			payload, x.by.space, id.Due.Unix(), id.Job, []byte(id.Key), []byte(id.Request)); err != nil {
			return err
		}
	}
	for _, id := range c.Again {
		if err := x.waitAgain(id, c.Waits()); err != nil {
			return err
		}
	}
	switch {
	case c.Skip != nil:
		return x.insertIdle(*c.Skip, c.Skips(), 0)
	case c.End != nil:
		return x.end(x.by.space, *c.End, c.Skips().Outcome, c.Skips().Reason)
	case c.Mark != nil:
		_, err := x.exec(`UPDATE belfry_run SET cancel = ? WHERE space = ? AND due = ? AND job = ? AND key = ? AND request = ?`,
			idempotency.Canceled, x.by.space, c.Mark.Due.Unix(), c.Mark.Job, []byte(c.Mark.Key), []byte(c.Mark.Request))
		return err
	}
	return nil
}

// waitAgain makes a run wait that has ended. It keeps the fence, so that later ones are higher.
func (x submission) waitAgain(id idempotency.ID, f idempotency.Finish) error {
	_, err := x.exec(`UPDATE belfry_run SET state = 1, outcome = 0, reason = ?, text = NULL, attempt = 0, crashes = 0, wake = ?, finished = NULL
WHERE space = ? AND due = ? AND job = ? AND key = ? AND request = ?`,
		blob(f.Reason), micro(f.Wake), x.by.space, id.Due.Unix(), id.Job, []byte(id.Key), []byte(id.Request))
	return err
}

func (x submission) changeDues(job string, c rule.Changes) error {
	for _, due := range c.Open {
		if _, err := x.exec(`INSERT INTO belfry_due (space, due, job, opened, catch_up, by_hand) VALUES (?, ?, ?, ?, 1, 1)
ON CONFLICT DO UPDATE SET opened = excluded.opened, catch_up = 1, by_hand = 1, closed = NULL`, x.by.space, due.Unix(), job, micro(x.now)); err != nil {
			return err
		}
	}
	if c.SkipDue == nil {
		return nil
	}
	if _, err := x.exec(`INSERT INTO belfry_due (space, due, job, catch_up, closed) VALUES (?, ?, ?, 0, ?)`,
		x.by.space, c.SkipDue.Unix(), job, micro(x.now)); err != nil {
		return err
	}
	return x.record(*c.Range)
}

// keep records the command, and tells the replicas.
func (x submission) keep(c idempotency.Command) error {
	var due, last any
	if !c.ID.Due.IsZero() {
		due = c.ID.Due.Unix()
	}
	if !c.Last.IsZero() {
		last = c.Last.Unix()
	}
	_, err := x.exec(`INSERT INTO belfry_command (space, `+commandColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		x.by.space, c.Request, c.Kind, c.ID.Job, []byte(c.ID.Key), due, last, []byte(c.ID.Request), []byte(c.Actor), []byte(c.Reason), micro(c.At), c.Changed)
	if err == nil && c.Changed > 0 {
		err = x.raiseControls(x.by.space)
	}
	return err
}
