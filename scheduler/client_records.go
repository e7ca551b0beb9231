package scheduler

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// record is a stretch of instants of which the store tells what became of their dues.
type record struct {
	from, to time.Time
	stays    bool // retention does not remove it yet, so that what is younger may be gone
}

// records yields the records of a job's dues in [from, to), by their beginnings: its ranges, and the runs of its own key, or
// with keys its opened dues.
func (c *Client) records(ctx context.Context, e idempotency.Entry, from, to time.Time) iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		ranges, err := c.ranges(ctx, e.Job, from)
		if err != nil {
			yield(record{}, err)
			return
		}
		ahead := func(before time.Time) bool { // yields the ranges that begin before
			for len(ranges) > 0 && ranges[0].From.Before(before) {
				r := ranges[0]
				if ranges = ranges[1:]; !yield(record{from: r.From, to: r.To}, nil) {
					return false
				}
			}
			return true
		}
		for r, err := range c.single(ctx, e, from, to) {
			if !ahead(r.from) || !yield(r, err) || err != nil {
				return
			}
		}
		ahead(to)
	}
}

// single yields the records of one due each.
func (c *Client) single(ctx context.Context, e idempotency.Entry, from, to time.Time) iter.Seq2[record, error] {
	return func(yield func(record, error) bool) {
		if e.Keyed {
			for d, err := range c.history.Dues(ctx, c.namespace, e.Job, from, to) {
				if !yield(record{d.Due, d.Due, d.Closed.IsZero()}, err) {
					return
				}
			}
			return
		}
		for r, err := range c.history.List(ctx, idempotency.Filter{Namespace: c.namespace, Job: e.Job, From: from, To: to}) {
			if err == nil && r.ID.Request != "" { // by hand, at an instant of its own
				continue
			}
			if !yield(record{r.ID.Due, r.ID.Due, r.State != idempotency.Ended}, err) {
				return
			}
		}
	}
}

// ranges are those of a job that do not end before an instant, by their beginnings.
func (c *Client) ranges(ctx context.Context, job string, from time.Time) ([]idempotency.Range, error) {
	var list []idempotency.Range
	for r, err := range c.history.Ranges(ctx, c.namespace, job) {
		if err != nil {
			return nil, err
		}
		if !r.To.Before(from) {
			list = append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b idempotency.Range) int { return a.From.Compare(b.From) })
	return list, nil
}

// recordedBefore says that the store keeps a record of a due before an instant that retention could have removed by its age.
func (c *Client) recordedBefore(ctx context.Context, e idempotency.Entry, before time.Time) (bool, error) {
	if before.IsZero() { // which a filter takes for no bound
		return false, nil
	}
	for r, err := range c.history.Ranges(ctx, c.namespace, e.Job) {
		if err != nil || r.From.Before(before) {
			return err == nil, err
		}
		break // the others begin later
	}
	if e.Keyed {
		for d, err := range c.history.Dues(ctx, c.namespace, e.Job, time.Unix(0, 0).UTC(), before) {
			if err != nil || !d.Closed.IsZero() {
				return err == nil, err
			}
		}
		return false, nil
	}
	f := idempotency.Filter{Namespace: c.namespace, Job: e.Job, State: idempotency.Ended, To: before, Newest: true}
	for r, err := range c.history.List(ctx, f) {
		if err != nil || r.ID.Request == "" {
			return err == nil, err
		}
	}
	return false, nil
}
