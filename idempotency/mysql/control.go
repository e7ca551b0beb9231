package mysql

import (
	"context"
	"database/sql"
	"iter"
	"math"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// Submit applies a person's command, once; see idempotency.Control. It holds the job's entry alone, so that commands about
// a job, its decisions and its claims are one before the other.
func (s *Store) Submit(ctx context.Context, namespace string, c idempotency.Command) (record idempotency.Command, err error) {
	if err := idempotency.CheckCommand(namespace, c); err != nil {
		return idempotency.Command{}, err
	}
	c = rule.Asked(c)
	err = s.write(ctx, func(t *tx) error {
		record, err = t.submit(namespace, c)
		return err
	})
	if err != nil {
		return idempotency.Command{}, err
	}
	return record, nil
}

func (t *tx) submit(namespace string, c idempotency.Command) (idempotency.Command, error) {
	var space int64
	found, err := t.get([]any{&space}, `SELECT id FROM belfry_space WHERE name = ?`+shared, namespace)
	if err == nil && !found {
		err = rule.Unknown(c, namespace)
	}
	if err != nil {
		return c, err
	}
	x := submission{call: &call{tx: t, by: session{space: space}}, command: c}
	known, err := x.lockEntry()
	if err != nil {
		return c, err
	}
	record, before, err := t.command(space, c.Request)
	switch {
	case err != nil:
		return c, err
	case before:
		return rule.Repeated(c, record)
	case !known:
		return c, rule.Unknown(c, namespace)
	}
	if err := x.judge(); err != nil {
		return c, err
	}
	return x.changed.Record, x.write()
}

// submission is a command that is new.
type submission struct {
	*call
	command idempotency.Command
	entry   idempotency.Entry
	at      rule.Space
	runs    changes
	changed rule.Changes
}

// lockEntry locks the job's entry, and then reads the clock: nothing that this comes after is later.
func (x *submission) lockEntry() (found bool, err error) {
	err = x.query(func(r *sql.Rows) (err error) {
		found = true
		x.entry, err = scanEntry(r)
		return err
	}, `SELECT `+entryColumns+` FROM belfry_entry e FORCE INDEX (PRIMARY) WHERE e.space = ? AND e.job = ? AND e.run_key = ''`+alone, x.by.space, x.command.ID.Job)
	if err != nil {
		return false, err
	}
	return found, x.readSpace(noLock)
}

// readSpace reads what commands are judged by of the namespace as a whole. Its clock stays as it was read first.
func (x *submission) readSpace(lock string) error {
	var now, horizon int64
	var pruned sql.NullInt64
	_, err := x.get([]any{&now, &pruned, &horizon}, `SELECT ?, k.pruned, coalesce((SELECT s.horizon FROM belfry_session s WHERE s.space = k.space ORDER BY s.id DESC LIMIT 1), 0)
FROM belfry_control k WHERE k.space = ?`+lock, x.clock, x.by.space)
	if x.now.IsZero() {
		x.now = time.UnixMicro(now).UTC()
	}
	x.at = rule.Space{Now: x.now, Pruned: at(pruned), Horizon: time.Duration(horizon)}
	return err
}

// judge reads what the command is about, under locks, and judges it. What retention removed is read last: it notes that
// after it has removed rows, and so this sees either the row or the note.
func (x *submission) judge() error {
	for {
		seen := x.at.Pruned
		plan, err := rule.NewPlan(x.command, x.entry, x.at)
		if err != nil {
			return err
		}
		x.runs = x.changes(0)
		rows, err := x.readRuns(plan.Runs)
		if err != nil {
			return err
		}
		dues, err := x.readDues(plan.Dues)
		if err != nil {
			return err
		}
		if err := x.readSpace(alone); err != nil {
			return err
		}
		if x.at.Pruned.Equal(seen) {
			x.changed, err = plan.Judge(rows, dues)
			return err
		}
	}
}

func (x *submission) readRuns(ids []idempotency.ID) ([]*idempotency.Run, error) {
	refs := make([]ref, len(ids))
	for i, id := range ids {
		refs[i] = refOf(id)
	}
	err := x.runs.findRows(refs, alone)
	rows := make([]*idempotency.Run, len(ids))
	for i, k := range refs {
		if r := x.runs.rows[k]; r != nil {
			rows[i] = &idempotency.Run{ID: ids[i], State: r.State, Outcome: r.outcome, Reason: r.reason, Cancel: r.Cancel}
		}
	}
	return rows, err
}

func (x *submission) readDues(list []time.Time) ([]rule.DueState, error) {
	dues := make([]dueOf, len(list))
	for i, due := range list {
		dues[i] = dueOf{due.Unix(), x.command.ID.Job}
	}
	found := make(map[dueOf]rule.DueState)
	err := x.queryRows(func(r *sql.Rows) error {
		var d dueOf
		var opened int64
		err := r.Scan(&d.due, &d.job, &opened)
		if found[d] = rule.DueOpened; opened == 0 {
			found[d] = rule.DueSkipped
		}
		return err
	}, dueRows(dues), `SELECT due, job, opened FROM belfry_due FORCE INDEX (PRIMARY) WHERE space = ? AND (due, job) IN (?)`+alone, x.by.space)
	states := make([]rule.DueState, len(dues))
	for i, d := range dues {
		states[i] = found[d]
	}
	return states, err
}

// write writes what was judged, and the record.
func (x *submission) write() error {
	c := x.changed
	if c.Pause {
		if _, err := x.exec(`UPDATE belfry_entry SET paused_from = ?, paused_until = ? WHERE space = ? AND run_key = '' AND job = ?`,
			micro(c.PausedFrom), micro(c.PausedUntil), x.by.space, x.command.ID.Job); err != nil {
			return err
		}
	}
	if err := x.writeDues(); err != nil {
		return err
	}
	x.changeRuns()
	if err := x.runs.write(); err != nil {
		return err
	}
	if c.Range != nil {
		if err := x.call.record(*c.Range); err != nil {
			return err
		}
	}
	if err := x.writeRecord(); err != nil {
		return err
	}
	return x.bump(min(c.Record.Changed, 1))
}

// writeDues opens dues, also those that a person had skipped, and skips those that were never opened.
func (x *submission) writeDues() error {
	var dues rows
	for _, due := range x.changed.Open {
		dues.add(x.by.space, due.Unix(), x.command.ID.Job, x.now.UnixMicro(), true, true, 0)
	}
	if due := x.changed.SkipDue; due != nil {
		dues.add(x.by.space, due.Unix(), x.command.ID.Job, 0, false, false, x.now.UnixMicro())
	}
	_, err := x.insert(&dues, `INSERT INTO belfry_due (space, due, job, opened, catch_up, by_hand, closed)`,
		` ON DUPLICATE KEY UPDATE opened = VALUES(opened), catch_up = VALUES(catch_up), by_hand = VALUES(by_hand), closed = VALUES(closed)`)
	return err
}

func (x *submission) changeRuns() {
	c, waits := x.changed, idempotency.Finish{Outcome: idempotency.Wait, Wake: x.now, Reason: rule.ByHand}
	for _, id := range c.Insert {
		x.runs.record(id, &waits).Payload = x.command.Payload
	}
	for _, id := range c.Again {
		r := x.runs.rows[refOf(id)]
		r.State, r.Wake = idempotency.Waiting, x.now
		r.fate = fate{state: r.State, reason: rule.ByHand, anew: true}
		x.runs.touch(r)
	}
	if c.Skip != nil {
		x.runs.record(*c.Skip, &idempotency.Finish{Outcome: idempotency.Skipped, Reason: rule.ByHand})
	}
	if c.End != nil {
		x.runs.end(x.runs.rows[refOf(*c.End)], idempotency.Skipped, rule.ByHand)
	}
	if c.Mark != nil {
		r := x.runs.rows[refOf(*c.Mark)]
		r.Cancel = idempotency.Canceled
		x.runs.touch(r)
	}
}

const commandColumns = `name, at, kind, job, run_key, due, last, request, actor, reason, changed`

func (x *submission) writeRecord() error {
	c := x.changed.Record
	var due, last any
	if !c.ID.Due.IsZero() {
		due = c.ID.Due.Unix()
	}
	if !c.Last.IsZero() {
		last = c.Last.Unix()
	}
	var r rows
	r.add(x.by.space, c.Request, c.At.UnixMicro(), int(c.Kind), c.ID.Job, c.ID.Key, due, last, c.ID.Request, c.Actor, c.Reason, c.Changed)
	_, err := x.insert(&r, `INSERT INTO belfry_command (space, `+commandColumns+`)`, ``)
	return err
}

// scanCommand reads commandColumns.
func scanCommand(r *sql.Rows) (c idempotency.Command, err error) {
	var made int64
	var due, last sql.NullInt64
	err = r.Scan(&c.Request, &made, &c.Kind, &c.ID.Job, &c.ID.Key, &due, &last, &c.ID.Request, &c.Actor, &c.Reason, &c.Changed)
	c.At = time.UnixMicro(made).UTC()
	if due.Valid {
		c.ID.Due = time.Unix(due.Int64, 0).UTC()
	}
	if last.Valid {
		c.Last = time.Unix(last.Int64, 0).UTC()
	}
	return c, err
}

// command finds the record of a request.
func (t *tx) command(space int64, request string) (c idempotency.Command, found bool, err error) {
	err = t.query(func(r *sql.Rows) (err error) {
		found = true
		c, err = scanCommand(r)
		return err
	}, `SELECT `+commandColumns+` FROM belfry_command WHERE space = ? AND name = ?`, space, request)
	return c, found, err
}

// Commands yields the records of commands; see idempotency.History. It reads as List does.
func (s *Store) Commands(ctx context.Context, namespace, job string) iter.Seq2[idempotency.Command, error] {
	return rule.Pages(namespace, func() func() ([]idempotency.Command, bool, error) {
		made, request := int64(math.MaxInt64), ""
		return func() (list []idempotency.Command, more bool, err error) {
			err = s.read(ctx, func(t *tx) error {
				list = nil
				space, err := t.spaceOf(namespace)
				if err != nil || space == 0 {
					return err
				}
				return t.query(func(r *sql.Rows) error {
					c, err := scanCommand(r)
					list = append(list, c)
					return err
				}, `SELECT `+commandColumns+` FROM belfry_command FORCE INDEX (at) WHERE space = ? AND (at < ? OR at = ? AND name < ?)
  AND (? = '' OR job = ?) ORDER BY at DESC, name DESC LIMIT ?`, space, made, made, request, job, job, rule.Page)
			})
			if n := len(list); n > 0 {
				made, request = list[n-1].At.UnixMicro(), list[n-1].Request
			}
			return list, len(list) == rule.Page, err
		}
	})
}
