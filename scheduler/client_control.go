package scheduler

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/belfry-go/belfry/idempotency"
)

// Trigger asks for a run now, of a job that is paused too. A payload has at most 64 KiB; a nil one is the job's own. For a job with keys an empty key asks for
// all of them, with the job's payload. The record's ID names the run, or the due; its Request is the command's.
func (c *Client) Trigger(ctx context.Context, job, key string, payload []byte, by By) (idempotency.Command, error) {
	a := ask{kind: idempotency.Trigger, id: idempotency.ID{Job: job, Key: key}, by: by}
	a.prepare = func(_ idempotency.Overview, _ idempotency.Entry, cmd *idempotency.Command) error {
		cmd.Payload = payload
		return nil
	}
	return c.ask(ctx, a)
}

// Pause makes dues from now on be recorded as skipped (paused), until Resume. Runs that have begun or wait go on.
// The record's Changed is 0 where the job was paused already.
func (c *Client) Pause(ctx context.Context, job string, by By) (idempotency.Command, error) {
	return c.ask(ctx, ask{kind: idempotency.Pause, id: idempotency.ID{Job: job}, by: by})
}

// Resume ends a pause. The record's Changed is 0 where there was none.
func (c *Client) Resume(ctx context.Context, job string, by By) (idempotency.Command, error) {
	return c.ask(ctx, ask{kind: idempotency.Resume, id: idempotency.ID{Job: job}, by: by})
}

// SkipNext makes the job's next due, or one key's run of it, be recorded as skipped (by hand). The record's ID.Due is that due.
// Its Changed is 0 where that was skipped so already: it does not skip the one after. Rejected are efficiency jobs, and schedules
// that are a program's own (jobs.Custom), whose dues nobody else can tell.
func (c *Client) SkipNext(ctx context.Context, job, key string, by By) (idempotency.Command, error) {
	a := ask{kind: idempotency.Skip, id: idempotency.ID{Job: job, Key: key}, by: by, moves: true}
	a.prepare = func(o idempotency.Overview, e idempotency.Entry, cmd *idempotency.Command) error {
		s, err := scheduleOf(e)
		if err != nil {
			return fmt.Errorf("%w; pause the job for that time instead", err)
		}
		if efficient(e) {
			return errors.New("it is an efficiency job, of which the store decides no dues; pause it instead")
		}
		due, ok := s.Next(e.Opened)
		if !ok {
			return fmt.Errorf("its schedule %q has no due after %s; there is nothing to skip", e.Schedule, instant(e.Opened))
		}
		cmd.ID.Due = due
		return nil
	}
	return c.ask(ctx, a)
}

// maxBackfill bounds the dues of one backfill.
const maxBackfill = idempotency.MaxBatch

// Backfill makes the job's dues in [from, to) run that were missed, skipped or never decided, by the schedule in force now; 1,000 at most.
// What is done, failed, waits or is at work stays as it is: the record's Changed counts the others. Of a job with keys an empty
// key runs the dues that were never opened, for all keys. Rejected are more dues than that, those that are not decided yet,
// efficiency jobs, and schedules that are a program's own (jobs.Custom). A repetition with the same Request has to come to the same
// first due and last, or is rejected.
func (c *Client) Backfill(ctx context.Context, job, key string, from, to time.Time, by By) (idempotency.Command, error) {
	a := ask{kind: idempotency.Backfill, id: idempotency.ID{Job: job, Key: key}, by: by}
	a.prepare = func(_ idempotency.Overview, e idempotency.Entry, cmd *idempotency.Command) (err error) {
		cmd.Dues, err = backfilled(ctx, e, from, to)
		return err
	}
	return c.ask(ctx, a)
}

// BackfillDues returns the dues that Backfill would ask for, oldest first, and changes nothing. It rejects what Backfill would, as
// far as can be told beforehand: it does not know what retention has removed, nor the horizon.
func (c *Client) BackfillDues(ctx context.Context, job, key string, from, to time.Time) ([]time.Time, error) {
	_, e, err := c.look(ctx, job)
	if err != nil {
		return nil, err
	}
	a := ask{kind: idempotency.Backfill, id: idempotency.ID{Job: job, Key: key}, keyed: e.Keyed}
	if _, err = a.key(e); err == nil {
		var dues []time.Time
		if dues, err = backfilled(ctx, e, from, to); err == nil {
			return dues, nil
		}
	}
	if ctx.Err() == nil {
		err = fmt.Errorf("%w: %w", idempotency.ErrRejected, err)
	}
	return nil, a.failed(err)
}

// Cancel ends a run that waits or is at work. One that waits is skipped (by hand); one at work has its handler's context ended
// with the cause jobs.ErrCanceled, and is failed (canceled) unless the handler returns nil. An empty key is the job's name.
func (c *Client) Cancel(ctx context.Context, id idempotency.ID, by By) (idempotency.Command, error) {
	return c.ask(ctx, ask{kind: idempotency.Cancel, id: id, by: by})
}

// Retry makes a failed run wait to be run again, with all its attempts. An empty key is the job's name.
func (c *Client) Retry(ctx context.Context, id idempotency.ID, by By) (idempotency.Command, error) {
	return c.ask(ctx, ask{kind: idempotency.Retry, id: id, by: by})
}

// ask is a command in the making.
type ask struct {
	kind  idempotency.CommandKind
	id    idempotency.ID
	keyed bool // the job has keys
	by    By

	prepare func(o idempotency.Overview, e idempotency.Entry, cmd *idempotency.Command) error // adds the rest; nil: there is none
	moves   bool                                                                              // what the rest is depends on when it is asked
}

// tries is how often a command whose dues were decided meanwhile is prepared and submitted.
const tries = 3

func (c *Client) ask(ctx context.Context, a ask) (idempotency.Command, error) {
	none := idempotency.Command{}
	o, e, err := c.look(ctx, a.id.Job)
	if err != nil {
		return none, err
	}
	a.keyed = e.Keyed
	cmd := idempotency.Command{Request: a.by.Request, Kind: a.kind, ID: a.id, Actor: a.by.Actor, Reason: a.by.Reason}
	if cmd.Request == "" {
		cmd.Request = uuid.NewString()
	}
	if cmd.ID.Key, err = a.key(e); err != nil {
		return none, a.failed(fmt.Errorf("%w: %w", idempotency.ErrRejected, err))
	}
	again, err := c.again(ctx, a, &cmd)
	if err != nil {
		return none, err
	}
	if again {
		return c.submit(ctx, a, cmd)
	}
	for n := 1; ; n++ {
		if err := a.complete(o, e, &cmd); err != nil {
			if ctx.Err() == nil {
				err = fmt.Errorf("%w: %w", idempotency.ErrRejected, err)
			}
			return none, a.failed(err)
		}
		done, rejected := c.submit(ctx, a, cmd)
		if !a.moves || n == tries || !errors.Is(rejected, idempotency.ErrRejected) {
			return done, rejected
		}
		opened := e.Opened
		if o, e, err = c.look(ctx, a.id.Job); err != nil {
			return none, err
		}
		if e.Opened.Equal(opened) {
			return none, rejected
		}
	}
}

// key is the key as the store wants it.
func (a ask) key(e idempotency.Entry) (string, error) {
	key, ofRun := a.id.Key, a.kind == idempotency.Cancel || a.kind == idempotency.Retry
	switch {
	case a.kind == idempotency.Pause || a.kind == idempotency.Resume:
		return "", nil
	case e.Keyed && key == "" && ofRun:
		return "", errors.New("it has keys; name that of the run")
	case e.Keyed:
		return key, nil
	case key == "":
		return e.Job, nil
	case key != e.Job && !ofRun: // a run may be of when it had keys
		return "", fmt.Errorf("it has no keys, but key %.80q is named; leave it out", key)
	}
	return key, nil
}

// complete adds the rest to a command, and checks it.
func (a ask) complete(o idempotency.Overview, e idempotency.Entry, cmd *idempotency.Command) error {
	if a.by.Actor == "" {
		return errors.New("By.Actor is empty; say who asks")
	}
	if a.prepare != nil {
		if err := a.prepare(o, e, cmd); err != nil {
			return err
		}
	}
	return cmd.Validate()
}

// again makes a command that was recorded before what it was then, and reports whether it was: the next due may have become another.
func (c *Client) again(ctx context.Context, a ask, cmd *idempotency.Command) (bool, error) {
	if !a.moves || a.by.Request == "" {
		return false, nil
	}
	for first, err := range c.history.Commands(ctx, c.namespace, a.id.Job) {
		if err != nil {
			return false, a.failed(err)
		}
		if first.Request == cmd.Request && first.Kind == cmd.Kind {
			cmd.ID.Due = first.ID.Due
			return true, nil
		}
	}
	return false, nil
}

func (c *Client) submit(ctx context.Context, a ask, cmd idempotency.Command) (idempotency.Command, error) {
	done, err := c.control.Submit(ctx, c.namespace, cmd)
	if err != nil {
		return idempotency.Command{}, a.failed(err)
	}
	return done, nil
}

// failed says what was asked for of an error.
func (a ask) failed(err error) error {
	return fmt.Errorf("scheduler: %s %s: %w", a.kind, named(a.id, a.keyed), err)
}

// named is what an ID names, for people. The key that is the job's name is that of a job without keys.
func named(id idempotency.ID, keyed bool) string {
	s := fmt.Sprintf("job %q", id.Job)
	if id.Key != "" && (keyed || id.Key != id.Job) {
		s += fmt.Sprintf(", key %q", id.Key)
	}
	if !id.Due.IsZero() {
		s += ", due " + instant(id.Due)
	}
	if id.Request != "" {
		s += ", request " + id.Request
	}
	return s
}

// instant writes a time for people, to the second.
func instant(t time.Time) string { return t.UTC().Format(time.RFC3339) }
