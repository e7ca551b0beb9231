package scheduler

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// Jobs returns all jobs that the store knows, by name; retired ones too.
func (c *Client) Jobs(ctx context.Context) ([]JobStatus, error) {
	o, err := c.overview(ctx)
	if err != nil {
		return nil, err
	}
	list := make([]JobStatus, 0, len(o.Entries))
	for _, e := range o.Entries {
		j := statusOf(o, e)
		j.Last, err = c.newest(ctx, idempotency.Filter{Job: e.Job, To: come(o.Now)})
		if err != nil {
			return nil, err
		}
		list = append(list, j)
	}
	return list, nil
}

// come is what all dues that have come are before. One may be claimed a tolerance early.
func come(now time.Time) time.Time { return now.Add(tolerance).Truncate(time.Second).Add(time.Second) }

func statusOf(o idempotency.Overview, e idempotency.Entry) JobStatus {
	j := JobStatus{
		Name: e.Job, Schedule: e.Schedule, Keyed: e.Keyed, Leader: e.Leader, Efficiency: efficient(e),
		Opened: e.Opened, Retired: e.Retired, Announced: replicas(o, e.Job, ""),
	}
	if paused(e) {
		j.PausedFrom = e.PausedFrom
	}
	if s, err := jobs.ParseSchedule(e.Schedule); err == nil && e.Retired.IsZero() {
		j.Next, _ = s.Next(decided(o, e))
	}
	return j
}

// decided is up to where the dues of a job are history: those of an efficiency job are up to now.
func decided(o idempotency.Overview, e idempotency.Entry) time.Time {
	if efficient(e) {
		return o.Now
	}
	return e.Opened
}

func efficient(e idempotency.Entry) bool { return e.Opened.IsZero() }

func paused(e idempotency.Entry) bool { return !e.PausedFrom.IsZero() && e.PausedUntil.IsZero() }

// replicas are the names of the live replicas that announced a job, with that hash or, where it is empty, any.
func replicas(o idempotency.Overview, job, hash string) []string {
	var names []string
	for _, s := range o.Sessions {
		if h, had := s.Announced[job]; had && (hash == "" || h == hash) {
			names = append(names, s.Replica)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// newest is the newest run that a filter chooses; nil: there is none.
func (c *Client) newest(ctx context.Context, f idempotency.Filter) (*idempotency.Run, error) {
	f.Namespace, f.Newest, f.Limit = c.namespace, true, 1
	for r, err := range c.history.List(ctx, f) {
		if err != nil {
			return nil, fmt.Errorf("scheduler: job %q: read its newest run: %w", f.Job, err)
		}
		return &r, nil
	}
	return nil, nil
}

func (c *Client) overview(ctx context.Context) (idempotency.Overview, error) {
	if c.lacks != nil {
		return idempotency.Overview{}, c.lacks
	}
	o, err := c.history.Overview(ctx, c.namespace)
	if err != nil {
		return o, fmt.Errorf("scheduler: read namespace %q: %w", c.namespace, err)
	}
	return o, nil
}

// look returns the overview and the entry of a job in it.
func (c *Client) look(ctx context.Context, job string) (o idempotency.Overview, e idempotency.Entry, err error) {
	if o, err = c.overview(ctx); err != nil {
		return o, e, err
	}
	for _, e := range o.Entries {
		if e.Job == job {
			return o, e, nil
		}
	}
	return o, e, c.unknown(o, job)
}

// unknown says what there is in place of a job that is not there.
func (c *Client) unknown(o idempotency.Overview, job string) error {
	if len(o.Entries) == 0 {
		return fmt.Errorf("%w %q: no replica has declared a job in namespace %q of this store yet; check the namespace and the store, or start a replica that has the job", ErrUnknown, job, c.namespace)
	}
	names := make([]string, len(o.Entries))
	for i, e := range o.Entries {
		names[i] = e.Job
	}
	return fmt.Errorf("%w %q in namespace %q of this store; the nearest of its %d: %s", ErrUnknown, job, c.namespace, len(names), quoted(nearest(job, names)))
}

// maxNearest bounds how many names an error proposes.
const maxNearest = 3

// nearest are the names that are most like what was written.
func nearest(written string, names []string) []string {
	type near struct {
		name string
		far  int
	}
	list := make([]near, len(names))
	for i, n := range names {
		list[i] = near{n, distance(strings.ToLower(written), strings.ToLower(n))}
		if strings.Contains(n, written) {
			list[i].far = min(list[i].far, 1)
		}
	}
	slices.SortFunc(list, func(a, b near) int { return cmp.Or(cmp.Compare(a.far, b.far), strings.Compare(a.name, b.name)) })
	var best []string
	for _, n := range list[:min(len(list), maxNearest)] {
		best = append(best, n.name)
	}
	return best
}

// distance is how many bytes have to be put in, taken out or changed to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}
