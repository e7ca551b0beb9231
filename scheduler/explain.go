package scheduler

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// Explanation says what became of an occurrence, and why.
type Explanation struct {
	ID        idempotency.ID   // with the job's name for an empty key, where the job has no keys
	Run       *idempotency.Run // nil: there is no row
	Sentences []string         // for people, in the order to read them; the first one says it in short. Not for programs: they change
}

// Explain says what became of one occurrence: whether the schedule names it, when it was decided, who claimed it, how it ended and
// why, or what it waits for; who could run it now; and what people asked for. An empty key is the job's name, or, for a job with
// keys, the due of all of them. An ID without Request is the scheduled run. It reads the store several times, so that what moves meanwhile may be
// told half as it was. An unknown job is an error that wraps ErrUnknown; that an occurrence is not there is none.
func (c *Client) Explain(ctx context.Context, id idempotency.ID) (Explanation, error) {
	o, e, err := c.look(ctx, id.Job)
	if err != nil {
		return Explanation{}, err
	}
	if id.Key == "" && !e.Keyed {
		id.Key = e.Job
	}
	if err := checkOccurrence(id); err != nil {
		return Explanation{}, fmt.Errorf("scheduler: explain %s: %w: %w", named(id, e.Keyed), idempotency.ErrRejected, err)
	}
	id.Due = id.Due.UTC()
	x := &explainer{client: c, overview: o, entry: e, id: id}
	if x.schedule, err = jobs.ParseSchedule(e.Schedule); err == nil {
		x.readable = true
	}
	if err := x.read(ctx); err != nil {
		return Explanation{}, fmt.Errorf("scheduler: explain %s: %w", named(id, e.Keyed), err)
	}
	x.tell()
	return Explanation{ID: id, Run: x.run, Sentences: x.sentences}, nil
}

func checkOccurrence(id idempotency.ID) error {
	if id.Due.IsZero() {
		return errors.New("no due is named; say which occurrence")
	}
	if id.Key == "" {
		id.Key = id.Job // of all keys
	}
	return id.Validate()
}

// explainer is one explanation in the making: what was read, and what is said about it.
type explainer struct {
	client   *Client
	overview idempotency.Overview
	entry    idempotency.Entry
	schedule jobs.Schedule
	readable bool // the schedule is one whose dues we can tell
	id       idempotency.ID

	run      *idempotency.Run
	byHand   []string            // requests of the other runs of that job, key and due
	holder   *idempotency.Run    // another run of the key, which is at work, or was when this one was skipped for it
	queued   *idempotency.Run    // a further one, which waited when this one was skipped
	ranges   []idempotency.Range // that cover the due, the shortest first: that of this due alone says more than a stretch
	due      *idempotency.Due    // of a job with keys
	older    bool                // there is an older record of the job
	commands []idempotency.Command
	leader   *idempotency.Leader // of a job of the leader, where the store keeps it
	redone   time.Time           // when a person last made older runs of the job wait; zero: never

	sentences []string
}

// read reads what the sentences are made of.
func (x *explainer) read(ctx context.Context) (err error) {
	c, id := x.client, x.id
	f := idempotency.Filter{Namespace: c.namespace, Job: id.Job, Key: id.Key, From: id.Due, To: id.Due.Add(time.Second)}
	if id.Key != "" {
		for r, err := range c.history.List(ctx, f) {
			if err != nil {
				return err
			}
			switch r.ID.Request {
			case id.Request:
				x.run = &r
			case "":
			default:
				x.byHand = append(x.byHand, r.ID.Request)
			}
		}
	}
	if x.ranges, err = c.ranges(ctx, id.Job, id.Due); err != nil {
		return err
	}
	x.ranges = slices.DeleteFunc(x.ranges, func(r idempotency.Range) bool { return r.From.After(id.Due) })
	slices.SortStableFunc(x.ranges, func(a, b idempotency.Range) int { return cmp.Compare(a.To.Sub(a.From), b.To.Sub(b.From)) })
	for d, err := range c.history.Dues(ctx, c.namespace, id.Job, f.From, f.To) {
		if err != nil {
			return err
		}
		x.due = &d
	}
	if x.run == nil {
		if x.older, err = c.recordedBefore(ctx, x.entry, id.Due); err != nil {
			return err
		}
	}
	if err := x.readLeader(ctx); err != nil {
		return err
	}
	if err := x.readCommands(ctx); err != nil || x.run == nil {
		return err
	}
	return x.readHolder(ctx)
}

// say adds a sentence.
func (x *explainer) say(format string, a ...any) {
	x.sentences = append(x.sentences, fmt.Sprintf(format, a...))
}

// tell says all there is to say.
func (x *explainer) tell() {
	short, details := x.found()
	short += x.besides()
	if x.id.Key == "" {
		x.say("Job %q, all keys, due %s: %s.", x.id.Job, instant(x.id.Due), short)
	} else {
		s := named(x.id, x.entry.Keyed)
		x.say("%s: %s.", strings.ToUpper(s[:1])+s[1:], short)
	}
	if x.id.Request == "" {
		x.tellSchedule()
	}
	details()
	if x.run != nil && x.scheduled() {
		x.tellBeside(x.ranges)
	}
	for _, c := range x.commands {
		x.tellCommand(c)
	}
	x.tellEntry()
	if !x.settled() {
		x.tellCode()
		x.tellWho()
	}
}

// settled says that it does not matter who could run it now.
func (x *explainer) settled() bool {
	switch r := x.run; {
	case r != nil:
		return r.Outcome == idempotency.Done || r.Outcome == idempotency.Skipped
	case x.due != nil:
		return false
	case x.inRange():
		return x.ranges[0].Outcome == idempotency.Skipped
	}
	return x.readable && !x.names()
}

// inRange says whether a range speaks for the due, and not only for others around that instant.
func (x *explainer) inRange() bool {
	return len(x.ranges) > 0 && (!x.readable || x.names() || x.ranges[0].From.Equal(x.ranges[0].To))
}

// found is what there is of the occurrence in short, and who tells more of it.
func (x *explainer) found() (short string, details func()) {
	switch now := x.overview.Now; {
	case x.run != nil:
		return x.runFound()
	case x.id.Request != "":
		return "there is no such run", x.tellNoRequest
	case x.due != nil:
		return x.dueFound()
	case x.inRange():
		r := x.ranges[0]
		return fmt.Sprintf("%s (%s)", ending(r.Outcome), r.Reason), x.tellRanges
	case x.readable && !x.names():
		return "the job has no such due", x.tellAround
	case efficient(x.entry):
		return "the store has no record of it, since it is an efficiency job", func() {
			x.say("The logs and hooks of the replicas have one. In the store are only its runs by hand.")
		}
	case x.id.Due.After(now):
		return "it is still to come, in " + span(x.id.Due.Sub(now)), func() { x.tellDecided() }
	case x.id.Due.After(x.entry.Opened):
		return "nobody has decided it yet, " + span(now.Sub(x.id.Due)) + " after it was due", func() { x.tellDecided() }
	default:
		return "there is no record of it", x.tellGap
	}
}

// names says whether the schedule in force names the due.
func (x *explainer) names() bool {
	due, ok := x.schedule.Next(second(x.id.Due))
	return ok && due.Equal(x.id.Due)
}

func (x *explainer) tellSchedule() {
	text := x.entry.Schedule
	switch recorded := x.run != nil || x.due != nil || x.inRange(); {
	case !x.readable:
		x.say("Its schedule %.80q cannot be read outside the program that has it, so that nobody else can tell whether it names that instant.", text)
	case x.names() && x.schedule.Location() != time.UTC:
		x.say("Its schedule %q names that instant: it is %s there.", text, x.id.Due.In(x.schedule.Location()).Format("Mon 2006-01-02 15:04:05 -07:00 MST"))
	case x.names():
		x.say("Its schedule %q names that instant.", text)
	case recorded:
		x.say("The schedule in force now, %q, does not name that instant; there is a record of it, so that an earlier one did, or a person asked for it.", text)
	default:
		x.say("Its schedule %q does not name that instant: %s.", text, x.around())
	}
}

// around names the dues before and after.
func (x *explainer) around() string {
	before, had := x.schedule.Prev(x.id.Due)
	after, has := x.schedule.Next(x.id.Due)
	var s []string
	if had {
		s = append(s, "the due before is "+instant(before))
	}
	if has {
		s = append(s, "the one after "+instant(after))
	}
	if len(s) == 0 {
		return "it has no due at all"
	}
	return strings.Join(s, ", ")
}

// tellDecided says why a due is not decided yet.
func (x *explainer) tellDecided() {
	e, now := x.entry, x.overview.Now
	x.say("Every due of the job up to %s is decided.", instant(e.Opened))
	switch inside := inPause(e, x.id.Due); {
	case inside && !paused(e):
		x.say("The job was paused at that instant: it is to be skipped (paused).")
	case inside && x.id.Due.After(now):
		x.say("The job is paused: it is to be skipped (paused), unless the job is resumed before.")
	case inside:
		x.say("The job is paused: it is to be skipped (paused).")
	}
	if e.Next.After(x.id.Due) && e.Next.After(now) && x.nextDue() {
		x.say("Its start is delayed (Job.Spread): replicas look at it from %s on.", instant(e.Next))
	}
}

// inPause says whether a due lies in the job's last pause.
func inPause(e idempotency.Entry, due time.Time) bool {
	return !e.PausedFrom.IsZero() && !due.Before(e.PausedFrom) && (e.PausedUntil.IsZero() || due.Before(e.PausedUntil))
}

// nextDue says whether the due is the first that is not decided.
func (x *explainer) nextDue() bool {
	due, ok := x.schedule.Next(x.entry.Opened)
	return x.readable && ok && due.Equal(x.id.Due)
}

// tellRanges tells of a due that has no other record than ranges.
func (x *explainer) tellRanges() {
	r := x.ranges[0]
	x.say("%s", reasonFor(r.Reason, true))
	switch {
	case r.Count > 1:
		x.say("One record stands for %d dues from %s to %s.", r.Count, instant(r.From), instant(r.To))
	case !r.From.Equal(r.To):
		x.say("One record stands for all dues from %s to %s, however many they were.", instant(r.From), instant(r.To))
	}
	x.tellBeside(x.ranges[1:])
}

// tellAround says which stretch an instant lies in that is no due now, but may have been one of an earlier schedule.
func (x *explainer) tellAround() {
	for _, r := range x.ranges {
		x.say("It lies in a record of %d %s from %s to %s as %s (%s), and is one of these if an earlier schedule named it.",
			r.Count, plural(int(r.Count), "due", "dues"), instant(r.From), instant(r.To), r.Outcome, r.Reason)
	}
}

// scheduled says whether a run is one of the schedule in force, for whose dues ranges speak: not one by hand.
func (x *explainer) scheduled() bool { return x.id.Request == "" && (!x.readable || x.names()) }

// tellBeside tells of ranges over a due that has a record of its own.
func (x *explainer) tellBeside(ranges []idempotency.Range) {
	for _, r := range ranges {
		switch {
		case cutOff(r):
			x.say("There is also a record of the due as %s (%s): it speaks for the keys of it that nobody claimed.", r.Outcome, r.Reason)
		case r.From.Equal(r.To):
			x.say("There is also a record of the due as %s (%s), from before it had one of its own.", r.Outcome, r.Reason)
		default:
			x.say("There is also a record of %d %s from %s to %s as %s (%s): it speaks for those of them that have no record of their own.",
				r.Count, plural(int(r.Count), "due", "dues"), instant(r.From), instant(r.To), r.Outcome, r.Reason)
		}
	}
}

// tellGap says what it may mean that a decided due left no record.
func (x *explainer) tellGap() {
	x.say("Every due of the job up to %s is decided.", instant(x.entry.Opened))
	if !x.older {
		x.say("The store keeps no older record of the job either: retention has removed it, or the job was not there yet.")
		return
	}
	x.say("There are older records of the job: it is a gap, unless the schedule was another one then; a backfill makes it run.")
}

// besides names the runs by hand of a due of which the run that is asked for is not there.
func (x *explainer) besides() string {
	switch n := len(x.byHand); {
	case n == 0 || x.run != nil:
		return ""
	case n == 1:
		return "; there is one by hand: request " + x.byHand[0]
	default:
		return fmt.Sprintf("; there are %d by hand: requests %s", n, names(x.byHand))
	}
}

func (x *explainer) tellNoRequest() {
	if slices.ContainsFunc(x.commands, func(c idempotency.Command) bool {
		return x.entry.Keyed && c.Kind == idempotency.Trigger && c.ID.Key == "" && c.Request == x.id.Request
	}) {
		x.say("That request was for all keys of the job, and such runs have none: ask without it.")
		return
	}
	x.say("A run by hand is named by the due and the request that the command was answered with; it may have been removed by retention.")
}
