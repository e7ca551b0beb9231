package idempotency

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// byHand is the reason of what a person asked for.
const byHand = "by hand"

// Submit applies a person's command, once; see Control.
func (m *Memory) Submit(ctx context.Context, namespace string, c Command) (Command, error) {
	if err := ctx.Err(); err != nil {
		return Command{}, err
	}
	if err := CheckCommand(namespace, c); err != nil {
		return Command{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	sp := m.spaces[namespace]
	if sp == nil {
		return Command{}, c.rejected("no replica has announced it in namespace %q; name a job that one has", namespace)
	}
	c.ID, c.Last = c.asked()
	if first := sp.requests[c.Request]; first != nil {
		return first.repeated(c)
	}
	e := sp.entries[c.ID.Job]
	switch {
	case e == nil:
		return Command{}, c.rejected("no replica has announced it in namespace %q; name a job that one has", namespace)
	case !e.Retired.IsZero():
		return Command{}, c.rejected("it was retired at %v; start a replica that has it", e.Retired)
	}
	x := submission{space: sp, Command: c, e: e}
	x.At, x.Changed = instant(m.now()), 0
	if err := x.apply(); err != nil {
		return Command{}, err
	}
	if x.Changed > 0 {
		sp.controls++
	}
	x.Dues, x.Payload = nil, nil
	record := x.Command
	i, _ := slices.BinarySearchFunc(sp.commands, &record, func(a, b *Command) int {
		return cmp.Or(a.At.Compare(b.At), strings.Compare(a.Request, b.Request))
	})
	sp.commands = slices.Insert(sp.commands, i, &record)
	sp.requests[record.Request] = &record
	return record, nil
}

// rejected is why a command is not applied.
func (c *Command) rejected(format string, a ...any) error {
	for i, x := range a {
		if t, ok := x.(time.Time); ok {
			a[i] = t.UTC().Format(time.RFC3339) // as people write it
		}
	}
	return fmt.Errorf("%w: %v of job %q: %s", ErrRejected, c.Kind, c.ID.Job, fmt.Sprintf(format, a...))
}

// asked is what of the ID the command's kind uses, and the last due of a range.
func (c *Command) asked() (id ID, last time.Time) {
	id.Job = c.ID.Job
	switch c.Kind {
	case Trigger:
		id.Key = c.ID.Key
	case Backfill:
		id.Key, id.Due = c.ID.Key, instant(c.Dues[0])
		last = instant(c.Dues[len(c.Dues)-1])
	case Skip:
		id.Key, id.Due = c.ID.Key, instant(c.ID.Due)
	case Cancel, Retry:
		id = c.ID
		id.Due = instant(id.Due)
	}
	return id, last
}

// repeated answers a command whose request was seen before.
func (c *Command) repeated(again Command) (Command, error) {
	if d := c.difference(again); d != "" {
		return Command{}, again.rejected("request %q was made at %v by %q with another %s; take a new request", c.Request, c.At, c.Actor, d)
	}
	return *c, nil
}

// difference is the first thing that a recorded command has otherwise than a repetition; empty where there is none.
func (c *Command) difference(again Command) string {
	due := c.ID.Due.UTC().Format(time.RFC3339)
	switch was, is := c.ID, again.ID; {
	case c.Kind != again.Kind:
		return "kind, " + c.Kind.String()
	case was.Job != is.Job:
		return fmt.Sprintf("job, %q", was.Job)
	case was.Key != is.Key:
		return fmt.Sprintf("key, %q", was.Key)
	case c.Kind == Backfill && (!was.Due.Equal(is.Due) || !c.Last.Equal(again.Last)):
		return fmt.Sprintf("range, %s to %s", due, c.Last.UTC().Format(time.RFC3339))
	case c.Kind != Trigger && !was.Due.Equal(is.Due): // that of a Trigger is the store's word, not the caller's
		return "due, " + due
	case was.Request != is.Request:
		return fmt.Sprintf("run, that of request %q", was.Request)
	case c.Actor != again.Actor:
		return "actor"
	}
	return ""
}

// submission is a command that is new, about a job that is there.
type submission struct {
	*space
	Command
	e *entry
}

func (x *submission) apply() error {
	ofRun := x.Kind == Cancel || x.Kind == Retry // which may be of when the job had keys
	if key := x.e.runKey(); !x.e.Keyed && !ofRun && x.ID.Key != "" && x.ID.Key != key {
		return x.rejected("it has no keys, so that there is no key %q; leave the key empty", x.ID.Key)
	}
	switch x.Kind {
	case Pause:
		x.pause()
	case Resume:
		x.resume()
	case Trigger:
		return x.trigger()
	case Skip:
		return x.skip()
	case Backfill:
		return x.backfill()
	case Cancel:
		return x.cancel()
	case Retry:
		return x.retry()
	}
	return nil
}

func (x *submission) pause() {
	e := x.e
	if !e.PausedFrom.IsZero() && e.PausedUntil.IsZero() {
		return
	}
	if e.Opened.IsZero() || !e.PausedUntil.After(e.Opened) {
		e.PausedFrom = x.At
	}
	e.PausedUntil = time.Time{}
	x.Changed = 1
}

func (x *submission) resume() {
	if e := x.e; !e.PausedFrom.IsZero() && e.PausedUntil.IsZero() {
		e.PausedUntil = x.At
		x.Changed = 1
	}
}

// all reports whether the command is about all keys of the job.
func (x *submission) all() bool { return x.e.Keyed && x.ID.Key == "" }

// of is the run of a due that the command is about.
func (x *submission) of(due time.Time) ID {
	id := ID{Job: x.ID.Job, Key: x.ID.Key, Due: instant(due)}
	if !x.e.Keyed && id.Key == "" {
		id.Key = x.e.runKey()
	}
	return id
}

func (x *submission) trigger() error {
	x.ID.Due = x.At.Truncate(time.Second)
	if x.all() {
		if x.Payload != nil {
			return x.rejected("a payload is for one run; name a key, or leave the payload out")
		}
		x.openDue(x.ID.Due)
		return nil
	}
	id := x.of(x.ID.Due)
	id.Request = x.Request
	if x.row(id) == nil {
		r := x.insert(id, holder{})
		r.Payload = slices.Clone(x.Payload)
		x.wait(r)
	}
	return nil
}

// openDue opens a due for all keys.
func (x *submission) openDue(due time.Time) {
	if d := x.openKeyed(x.ID.Job, due, x.At, true); d != nil {
		d.byHand = true
		x.Changed++
	}
}

// wait makes a row wait that never ran, or has ended.
func (x *submission) wait(r *row) {
	r.Outcome, r.Finished, r.Crashes = 0, time.Time{}, 0
	x.space.apply(r, Finish{Outcome: Wait, Wake: x.At, Reason: byHand}, x.At)
	x.Changed++
}

func (x *submission) skip() error {
	due := x.ID.Due
	switch {
	case x.e.Opened.IsZero():
		return x.rejected("the store does not decide the dues of an efficiency job; pause it instead")
	case !due.After(x.e.Opened):
		return x.rejected("due %v is decided already, as are all up to %v; name a later one, or cancel its run", due, x.e.Opened)
	case x.all():
		return x.skipDue()
	}
	id := x.of(due)
	r := x.row(id)
	switch {
	case r == nil:
		x.space.apply(x.insert(id, holder{}), Finish{Outcome: Skipped, Reason: byHand}, x.At)
		x.Changed = 1
	case r.State != Ended || r.Outcome != Skipped || r.Reason != byHand:
		return x.rejected("due %v has a run already, which is %v; cancel that", due, r.State)
	}
	return nil
}

func (x *submission) skipDue() error {
	at := jobDue{x.ID.Job, x.ID.Due.Unix()}
	switch d := x.keyed[at]; {
	case d == nil:
		d = &keyedDue{job: x.ID.Job, due: x.ID.Due, closed: x.At}
		x.keyed[at] = d
		x.closed = addDue(x.closed, d)
		x.record(Range{Job: d.job, From: d.due, To: d.due, Count: 1, Outcome: Skipped, Reason: byHand})
		x.Changed = 1
	case !d.opened.IsZero():
		return x.rejected("due %v was opened at %v already; cancel its runs", d.due, d.opened)
	}
	return nil
}

func (x *submission) backfill() error {
	if x.e.Opened.IsZero() {
		return x.rejected("the store has no record of the dues of an efficiency job; trigger it instead")
	}
	oldest := x.At.Add(-x.horizon)
	for _, due := range x.Dues {
		due = instant(due)
		switch d := x.keyed[jobDue{x.ID.Job, due.Unix()}]; {
		case due.After(x.e.Opened):
			return x.rejected("due %v is not decided yet; name dues up to %v", due, x.e.Opened)
		case !due.After(x.pruned):
			return x.rejected("the records up to %v were removed, so that nobody knows whether due %v has run; name later dues", x.pruned, due)
		case x.all() && (d == nil || d.opened.IsZero()) && due.Before(oldest):
			return x.rejected("due %v is older than the horizon, %v, so that no key of it could be claimed; name dues from %v on, or one key", due, x.horizon, oldest)
		}
	}
	for _, due := range x.Dues {
		x.backfillDue(instant(due))
	}
	return nil
}

func (x *submission) backfillDue(due time.Time) {
	if x.all() {
		x.openDue(due)
		return
	}
	id := x.of(due)
	r := x.row(id)
	switch {
	case r == nil:
		x.wait(x.insert(id, holder{}))
	case r.State == Ended && (r.Outcome == Missed || r.Outcome == Skipped):
		x.wait(r)
	}
}

// run is the row of the command's run, or nil.
func (x *submission) run() *row {
	id := x.of(x.ID.Due)
	id.Request = x.ID.Request
	return x.row(id)
}

func (x *submission) cancel() error {
	r := x.run()
	switch {
	case r == nil:
		return x.rejected("there is no run of key %q, due %v; list its runs", x.ID.Key, x.ID.Due)
	case r.State == Ended:
		return x.rejected("the run of due %v has ended, %v; there is nothing to cancel", x.ID.Due, r.Outcome)
	case r.State == Waiting:
		x.end(r, Skipped, byHand, x.At)
		x.Changed = 1
	case r.Cancel != Canceled:
		r.Cancel = Canceled
		x.Changed = 1
	}
	return nil
}

func (x *submission) retry() error {
	r := x.run()
	switch {
	case r == nil:
		return x.rejected("there is no run of key %q, due %v; list its runs", x.ID.Key, x.ID.Due)
	case r.State != Ended || r.Outcome != Failed:
		return x.rejected("the run of due %v has not failed: it is %v %v; only a failed run can be retried", x.ID.Due, r.State, r.Outcome)
	}
	x.wait(r)
	return nil
}
