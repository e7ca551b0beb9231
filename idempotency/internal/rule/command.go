package rule

import (
	"fmt"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// ByHand is the reason of what a person asked for.
const ByHand = "by hand"

// Asked is a valid command with of its ID only what its kind uses, and the range of its dues: what stores record and compare.
func Asked(c idempotency.Command) idempotency.Command {
	id := idempotency.ID{Job: c.ID.Job}
	c.Last = time.Time{}
	switch c.Kind {
	case idempotency.Trigger:
		id.Key = c.ID.Key
	case idempotency.Backfill:
		id.Key, id.Due = c.ID.Key, Instant(c.Dues[0])
		c.Last = Instant(c.Dues[len(c.Dues)-1])
	case idempotency.Skip:
		id.Key, id.Due = c.ID.Key, Instant(c.ID.Due)
	case idempotency.Cancel, idempotency.Retry:
		id = c.ID
		id.Due = Instant(id.Due)
	}
	c.ID = id
	return c
}

// Repeated answers a command whose request was recorded before.
func Repeated(asked, record idempotency.Command) (idempotency.Command, error) {
	if d := difference(record, asked); d != "" {
		return idempotency.Command{}, rejected(asked, "request %q was made at %v by %q with another %s; take a new request",
			record.Request, record.At, record.Actor, d)
	}
	return record, nil
}

// difference is the first thing that a record has otherwise than what was asked for; empty where there is none.
func difference(record, asked idempotency.Command) string {
	due := record.ID.Due.UTC().Format(time.RFC3339)
	switch was, is := record.ID, asked.ID; {
	case record.Kind != asked.Kind:
		return "kind, " + record.Kind.String()
	case was.Job != is.Job:
		return fmt.Sprintf("job, %q", was.Job)
	case was.Key != is.Key:
		return fmt.Sprintf("key, %q", was.Key)
	case record.Kind == idempotency.Backfill && (!was.Due.Equal(is.Due) || !record.Last.Equal(asked.Last)):
		return fmt.Sprintf("range, %s to %s", due, record.Last.UTC().Format(time.RFC3339))
	case record.Kind != idempotency.Trigger && !was.Due.Equal(is.Due): // that of a Trigger is the store's word, not the caller's
		return "due, " + due
	case was.Request != is.Request:
		return fmt.Sprintf("run, that of request %q", was.Request)
	case record.Actor != asked.Actor:
		return "actor"
	}
	return ""
}

// Unknown refuses a command about a job that has no entry.
func Unknown(c idempotency.Command, namespace string) error {
	return rejected(c, "no replica has announced it in namespace %q; name a job that one has", namespace)
}

// Space is of a namespace what commands are judged by.
type Space struct {
	Now     time.Time     // the store's
	Pruned  time.Time     // the latest due whose record Prune has removed
	Horizon time.Duration // of the session that was opened last
}

// Plan is a command that is about to be applied. First the driver reads, under locks, the entry, which makes the plan, then the
// rows that the plan names; Judge answers, and the driver writes what that says and then the record.
type Plan struct {
	Command idempotency.Command // with At, and of a Trigger ID.Due

	// What is still to be read: rows of runs, or dues of the job; never both.
	Runs []idempotency.ID
	Dues []time.Time

	entry idempotency.Entry
	space Space
}

// DueState is what of a due of a job with keys a command is judged by.
type DueState int

// The states of a due. A due that was skipped by hand has a row, with the zero instant of its opening.
const (
	DueAbsent DueState = iota
	DueSkipped
	DueOpened // it is open, or was
)

// Changes are what the driver writes for a command. What waits does so with the store's now as wake time and the reason "by hand".
type Changes struct {
	Pause                   bool // the entry's window becomes:
	PausedFrom, PausedUntil time.Time

	Insert  []idempotency.ID // new rows, which wait, with the command's payload; of no session, and without a fence
	Again   []idempotency.ID // rows that have ended wait again: no text, attempts, crashes or end, all else as it was
	Skip    *idempotency.ID  // a new row, ended as skipped (by hand)
	End     *idempotency.ID  // a row that waits ends so, all else as it was
	Mark    *idempotency.ID  // a row that runs is told to end: its Cancel becomes idempotency.Canceled
	Open    []time.Time      // dues are opened now, to catch up, whether there is a row or not
	SkipDue *time.Time       // a new due, closed now, which was never opened
	Range   *idempotency.Range

	// Record is what to record and to answer. Where its Changed is not 0 the namespace's Controls rise.
	Record idempotency.Command
}

// Waits is what becomes of Insert and Again.
func (x *Changes) Waits() idempotency.Finish {
	return idempotency.Finish{Outcome: idempotency.Wait, Wake: x.Record.At, Reason: ByHand}
}

// Skips is what becomes of Skip and End.
func (x *Changes) Skips() idempotency.Finish {
	return idempotency.Finish{Outcome: idempotency.Skipped, Reason: ByHand}
}

// NewPlan begins a command about a job that has this entry; c comes from Asked.
func NewPlan(c idempotency.Command, e idempotency.Entry, s Space) (*Plan, error) {
	if !e.Retired.IsZero() {
		return nil, rejected(c, "it was retired at %v; start a replica that has it", e.Retired)
	}
	ofRun := c.Kind == idempotency.Cancel || c.Kind == idempotency.Retry // which may be of when the job had keys
	if !e.Keyed && !ofRun && c.ID.Key != "" && c.ID.Key != RunKey(e) {
		return nil, rejected(c, "it has no keys, so that there is no key %q; leave the key empty", c.ID.Key)
	}
	c.At = s.Now
	p := &Plan{Command: c, entry: e, space: s}
	dues := c.Dues
	switch c.Kind {
	case idempotency.Pause, idempotency.Resume:
		return p, nil
	case idempotency.Trigger:
		if p.all() && c.Payload != nil {
			return nil, rejected(c, "a payload is for one run; name a key, or leave the payload out")
		}
		p.Command.ID.Due = s.Now.Truncate(time.Second)
		dues = []time.Time{p.Command.ID.Due}
	case idempotency.Backfill:
		if err := p.checkBackfill(); err != nil {
			return nil, err
		}
	default:
		dues = []time.Time{c.ID.Due}
	}
	if c.Kind == idempotency.Skip {
		if err := p.checkSkip(); err != nil {
			return nil, err
		}
	}
	p.name(dues)
	return p, nil
}

// all reports whether the command is about all keys of its job.
func (p *Plan) all() bool {
	k := p.Command.Kind
	return p.entry.Keyed && p.Command.ID.Key == "" && k != idempotency.Cancel && k != idempotency.Retry
}

// name says what is to be read.
func (p *Plan) name(dues []time.Time) {
	c := p.Command
	id := idempotency.ID{Job: c.ID.Job, Key: c.ID.Key, Request: c.ID.Request}
	if !p.entry.Keyed && id.Key == "" {
		id.Key = RunKey(p.entry)
	}
	if c.Kind == idempotency.Trigger {
		id.Request = c.Request
	}
	for _, due := range dues {
		if id.Due = Instant(due); p.all() {
			p.Dues = append(p.Dues, id.Due)
			continue
		}
		p.Runs = append(p.Runs, id)
	}
}

func (p *Plan) checkSkip() error {
	switch c, opened := p.Command, p.entry.Opened; {
	case opened.IsZero():
		return rejected(c, "the store does not decide the dues of an efficiency job; pause it instead")
	case !c.ID.Due.After(opened):
		return rejected(c, "due %v is decided already, as are all up to %v; name a later one, or cancel its run", c.ID.Due, opened)
	}
	return nil
}

func (p *Plan) checkBackfill() error {
	c, opened := p.Command, p.entry.Opened
	if opened.IsZero() {
		return rejected(c, "the store has no record of the dues of an efficiency job; trigger it instead")
	}
	for _, due := range c.Dues {
		switch {
		case due.After(opened):
			return rejected(c, "due %v is not decided yet; name dues up to %v", due, opened)
		case !due.After(p.space.Pruned):
			return rejected(c, "the records up to %v were removed, so that nobody knows whether due %v has run; name later dues", p.space.Pruned, due)
		}
	}
	return nil
}

// Judge says what the command changes. Rows are those of Runs, nil where there is none, and dues those of Dues, both in
// the order of the plan.
func (p *Plan) Judge(rows []*idempotency.Run, dues []DueState) (x Changes, err error) {
	switch p.Command.Kind {
	case idempotency.Pause:
		p.pause(&x)
	case idempotency.Resume:
		p.resume(&x)
	case idempotency.Trigger, idempotency.Backfill:
		err = p.start(&x, rows, dues)
	case idempotency.Skip:
		err = p.skip(&x, rows, dues)
	case idempotency.Cancel:
		err = p.cancel(&x, rows[0])
	case idempotency.Retry:
		err = p.retry(&x, rows[0])
	}
	if err != nil {
		return Changes{}, err
	}
	x.Record = p.Command
	x.Record.Dues, x.Record.Payload = nil, nil
	x.Record.Changed = x.count()
	return x, nil
}

func (x *Changes) count() int {
	n := len(x.Insert) + len(x.Again) + len(x.Open)
	if x.Pause || x.Skip != nil || x.SkipDue != nil || x.End != nil || x.Mark != nil {
		n++
	}
	return n
}

func (p *Plan) pause(x *Changes) {
	e := p.entry
	if !e.PausedFrom.IsZero() && e.PausedUntil.IsZero() {
		return
	}
	x.Pause, x.PausedFrom = true, p.space.Now
	if !e.Opened.IsZero() && e.PausedUntil.After(e.Opened) {
		x.PausedFrom = e.PausedFrom
	}
}

func (p *Plan) resume(x *Changes) {
	if e := p.entry; !e.PausedFrom.IsZero() && e.PausedUntil.IsZero() {
		x.Pause, x.PausedFrom, x.PausedUntil = true, e.PausedFrom, p.space.Now
	}
}

// start makes runs wait, or opens dues, where nothing is that forbids it.
func (p *Plan) start(x *Changes, rows []*idempotency.Run, dues []DueState) error {
	oldest := p.space.Now.Add(-p.space.Horizon)
	for i, state := range dues {
		if state == DueOpened {
			continue
		}
		if due := p.Dues[i]; p.Command.Kind == idempotency.Backfill && due.Before(oldest) {
			return rejected(p.Command, "due %v is older than the horizon, %v, so that no key of it could be claimed; name dues from %v on, or one key", due, p.space.Horizon, oldest)
		}
		x.Open = append(x.Open, p.Dues[i])
	}
	for i, r := range rows {
		switch {
		case r == nil:
			x.Insert = append(x.Insert, p.Runs[i])
		case p.Command.Kind == idempotency.Backfill && r.State == idempotency.Ended && (r.Outcome == idempotency.Missed || r.Outcome == idempotency.Skipped):
			x.Again = append(x.Again, p.Runs[i])
		}
	}
	return nil
}

func (p *Plan) skip(x *Changes, rows []*idempotency.Run, dues []DueState) error {
	due := p.Command.ID.Due
	if len(dues) > 0 {
		switch dues[0] {
		case DueOpened:
			return rejected(p.Command, "due %v was opened already; cancel its runs", due)
		case DueAbsent:
			x.SkipDue = &due
			x.Range = &idempotency.Range{Job: p.Command.ID.Job, From: due, To: due, Count: 1, Outcome: idempotency.Skipped, Reason: ByHand}
		}
		return nil
	}
	switch r := rows[0]; {
	case r == nil:
		x.Skip = &p.Runs[0]
	case r.State != idempotency.Ended || r.Outcome != idempotency.Skipped || r.Reason != ByHand:
		return rejected(p.Command, "due %v has a run already, which is %v; cancel that", due, r.State)
	}
	return nil
}

func (p *Plan) cancel(x *Changes, r *idempotency.Run) error {
	switch c := p.Command; {
	case r == nil:
		return rejected(c, "there is no run of key %q, due %v; list its runs", c.ID.Key, c.ID.Due)
	case r.State == idempotency.Ended:
		return rejected(c, "the run of due %v has ended, %v; there is nothing to cancel", c.ID.Due, r.Outcome)
	case r.State == idempotency.Waiting:
		x.End = &p.Runs[0]
	case r.Cancel != idempotency.Canceled:
		x.Mark = &p.Runs[0]
	}
	return nil
}

func (p *Plan) retry(x *Changes, r *idempotency.Run) error {
	switch c := p.Command; {
	case r == nil:
		return rejected(c, "there is no run of key %q, due %v; list its runs", c.ID.Key, c.ID.Due)
	case r.State != idempotency.Ended || r.Outcome != idempotency.Failed:
		return rejected(c, "the run of due %v has not failed: it is %v %v; only a failed run can be retried", c.ID.Due, r.State, r.Outcome)
	}
	x.Again = append(x.Again, p.Runs[0])
	return nil
}

// rejected is why a command is not applied.
func rejected(c idempotency.Command, format string, a ...any) error {
	for i, x := range a {
		if t, ok := x.(time.Time); ok {
			a[i] = t.UTC().Format(time.RFC3339) // as people write it
		}
	}
	return fmt.Errorf("%w: %v of job %q: %s", idempotency.ErrRejected, c.Kind, c.ID.Job, fmt.Sprintf(format, a...))
}
