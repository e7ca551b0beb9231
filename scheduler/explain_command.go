package scheduler

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/belfry-go/belfry/idempotency"
)

// maxCommands bounds how many commands of a job are looked at, the newest.
const maxCommands = 10_000

// readCommands reads what people asked for that bears on the occurrence, oldest first.
func (x *explainer) readCommands(ctx context.Context) error {
	var list []idempotency.Command
	for c, err := range x.client.history.Commands(ctx, x.client.namespace, x.id.Job) {
		if err != nil {
			return err
		}
		if list = append(list, c); len(list) == maxCommands {
			break
		}
	}
	slices.Reverse(list)
	x.commands = x.pauses(list)
	for _, c := range list {
		if x.concerns(c) {
			x.commands = append(x.commands, c)
		}
	}
	slices.SortStableFunc(x.commands, func(a, b idempotency.Command) int { return a.At.Compare(b.At) })
	return nil
}

// pauses are the commands that began and ended the pause which the due lies in, and the one that has paused the job now.
func (x *explainer) pauses(list []idempotency.Command) (of []idempotency.Command) {
	var began *idempotency.Command
	for _, c := range list {
		switch {
		case c.Changed == 0:
		case c.Kind == idempotency.Pause:
			began = &c
		case c.Kind == idempotency.Resume && began != nil:
			if !x.id.Due.Before(began.At) && x.id.Due.Before(c.At) {
				of = append(of, *began, c)
			}
			began = nil
		}
	}
	if began != nil && paused(x.entry) {
		of = append(of, *began)
	}
	return of
}

// concerns says whether a command is about the occurrence, or its due for all keys.
func (x *explainer) concerns(c idempotency.Command) bool {
	id, all := x.id, x.entry.Keyed && c.ID.Key == ""
	if !all && c.ID.Key != id.Key && (c.ID.Key != "" || id.Key != id.Job) {
		return false
	}
	switch c.Kind {
	case idempotency.Trigger:
		return c.ID.Due.Equal(id.Due) && (c.Request == id.Request || all && id.Request == "")
	case idempotency.Skip:
		return c.ID.Due.Equal(id.Due) && id.Request == ""
	case idempotency.Cancel, idempotency.Retry:
		return c.ID.Due.Equal(id.Due) && c.ID.Request == id.Request
	case idempotency.Backfill:
		return id.Request == "" && c.Changed > 0 && !id.Due.Before(c.ID.Due) && !id.Due.After(c.Last) && x.movedSince(c)
	}
	return false
}

// movedSince says whether the run, or its due, was still to end when a command came.
func (x *explainer) movedSince(c idempotency.Command) bool {
	switch r := x.run; {
	case c.At.Before(x.id.Due):
		return false
	case r != nil:
		return r.State != idempotency.Ended || !r.Finished.Before(c.At)
	}
	return x.due != nil && x.due.Opened.Equal(c.At)
}

var verbs = map[idempotency.CommandKind]string{
	idempotency.Pause: "paused the job", idempotency.Resume: "resumed the job",
	idempotency.Trigger: "triggered it", idempotency.Skip: "asked for it to be skipped",
	idempotency.Backfill: "asked for a backfill of the dues",
	idempotency.Cancel:   "asked for it to end", idempotency.Retry: "asked for it to be tried again",
}

func (x *explainer) tellCommand(c idempotency.Command) {
	changed, reason, verb := "", ".", verbs[c.Kind]
	if c.Kind == idempotency.Backfill {
		verb += fmt.Sprintf(" from %s to %s", instant(c.ID.Due), instant(c.Last))
	}
	if c.Changed == 0 {
		changed = ", which changed nothing"
	}
	if line := firstLine(c.Reason); line != "" {
		reason = ": " + line
	}
	x.say("At %s %q %s%s%s", instant(c.At), c.Actor, verb, changed, reason)
}

// quoted writes names for people.
func quoted(names []string) string {
	q := make([]string, len(names))
	for i, n := range names {
		q[i] = fmt.Sprintf("%q", n)
	}
	return strings.Join(q, ", ")
}
