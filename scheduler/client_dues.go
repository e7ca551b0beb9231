package scheduler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// scheduleOf is the schedule of an entry as its text tells it, which a program's own does not.
func scheduleOf(e idempotency.Entry) (jobs.Schedule, error) {
	s, err := jobs.ParseSchedule(e.Schedule)
	if err != nil {
		return s, fmt.Errorf("its schedule %.80q cannot be read outside the program that has it: %w", e.Schedule, err)
	}
	return s, nil
}

// second is the last whole second before t, so that the dues from t on are those after it.
func second(t time.Time) time.Time { return t.Add(-1).Truncate(time.Second) }

// stride is how many dues are counted between two looks at the context, where a schedule has to be walked.
const stride = 1 << 16

// count is the number of dues in (after, upTo].
func count(ctx context.Context, s jobs.Schedule, after, upTo time.Time) (n int64, err error) {
	for after.Before(upTo) {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		var k int64
		k, after = s.Tally(after, upTo, stride)
		n += k
	}
	return n, nil
}

// backfilled are the dues in [from, to) of a job, all of which must be decided.
func backfilled(ctx context.Context, e idempotency.Entry, from, to time.Time) ([]time.Time, error) {
	if efficient(e) {
		return nil, errors.New("it is an efficiency job, of which the store has no record; trigger it instead")
	}
	s, err := scheduleOf(e)
	if err != nil {
		return nil, fmt.Errorf("%w; trigger the runs one by one", err)
	}
	if !from.Before(to) {
		return nil, fmt.Errorf("the stretch from %s to %s is empty; set from before to", instant(from), instant(to))
	}
	n, err := count(ctx, s, second(from), second(to))
	if err != nil {
		return nil, err
	}
	switch {
	case n == 0:
		return nil, fmt.Errorf("its schedule %q has no due from %s to before %s; belfry next shows which it has", e.Schedule, instant(from), instant(to))
	case n > maxBackfill:
		end := second(from)
		for range maxBackfill + 1 {
			end, _ = s.Next(end)
		}
		return nil, fmt.Errorf("%d dues from %s to before %s; backfill at most %d at once: begin with those before %s",
			n, instant(from), instant(to), maxBackfill, instant(end))
	}
	dues := slices.Collect(s.All(second(from), second(to)))
	if last := dues[len(dues)-1]; last.After(e.Opened) {
		return nil, fmt.Errorf("due %s is not decided yet: those up to %s are; end the stretch by then, since what comes later runs, or is recorded, by itself", instant(last), instant(e.Opened))
	}
	return dues, nil
}
