package idempotency

import (
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"
)

// List yields runs as they stood at one instant; see History. The caller may
// call the store while it reads.
func (m *Memory) List(ctx context.Context, f Filter) iter.Seq2[Run, error] {
	return sequence(ctx, f.Namespace, func() []Run { return m.list(f) })
}

// Ranges yields ranges as they stood at one instant; see History.
func (m *Memory) Ranges(ctx context.Context, namespace, job string) iter.Seq2[Range, error] {
	return sequence(ctx, namespace, func() []Range {
		m.mu.Lock()
		defer m.mu.Unlock()

		var list []Range
		if sp := m.spaces[namespace]; sp != nil {
			for _, r := range sp.ranges {
				if job == "" || r.Job == job {
					list = append(list, *r)
				}
			}
		}
		return list
	})
}

// Dues yields dues as they stood at one instant; see History.
func (m *Memory) Dues(ctx context.Context, namespace, job string, from, to time.Time) iter.Seq2[Due, error] {
	return sequence(ctx, namespace, func() []Due {
		m.mu.Lock()
		defer m.mu.Unlock()

		var list []Due
		if sp := m.spaces[namespace]; sp != nil {
			for _, d := range sp.keyed {
				if d.job == job && !d.opened.IsZero() && !d.due.Before(from) && (to.IsZero() || d.due.Before(to)) {
					list = append(list, Due{Job: d.job, Due: d.due, Opened: d.opened, Closed: d.closed, Keys: d.keys})
				}
			}
		}
		slices.SortFunc(list, func(a, b Due) int { return a.Due.Compare(b.Due) })
		return list
	})
}

// Commands yields records as they stood at one instant; see History.
func (m *Memory) Commands(ctx context.Context, namespace, job string) iter.Seq2[Command, error] {
	return sequence(ctx, namespace, func() []Command {
		m.mu.Lock()
		defer m.mu.Unlock()

		var list []Command
		if sp := m.spaces[namespace]; sp != nil {
			for _, c := range slices.Backward(sp.commands) {
				if job == "" || c.ID.Job == job {
					list = append(list, *c)
				}
			}
		}
		return list
	})
}

// Overview returns what is scheduled, open and alive; see History.
func (m *Memory) Overview(ctx context.Context, namespace string) (Overview, error) {
	if err := ctx.Err(); err != nil {
		return Overview{}, err
	}
	if err := CheckNamespace(namespace); err != nil {
		return Overview{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()

	o := Overview{Now: instant(m.now())}
	sp := m.spaces[namespace]
	if sp == nil {
		return o, nil
	}
	c := &call{space: sp, m: m, now: o.Now}
	o.Partitions = sp.partitions
	for _, job := range slices.Sorted(maps.Keys(sp.entries)) {
		o.Entries = append(o.Entries, c.entry(job))
	}
	for _, d := range sp.open {
		x := OpenDue{Job: d.job, Due: d.due, Opened: d.opened, CatchUp: d.catchUp, ByHand: d.byHand, Finished: sp.finished(d)}
		for _, p := range d.passes {
			x.Passes = append(x.Passes, p.copy())
		}
		o.Open = append(o.Open, x)
	}
	for _, s := range sp.sessions {
		if s.live(o.Now) {
			o.Sessions = append(o.Sessions, s.status())
		}
	}
	slices.SortStableFunc(o.Sessions, func(a, b SessionStatus) int { return strings.Compare(a.Replica, b.Replica) })
	return o, nil
}

func (s *session) status() SessionStatus {
	x := SessionStatus{ID: s.id, Replica: s.Replica, Boot: s.Boot, Expires: s.expires, Announced: make(map[string]string, len(s.defs))}
	for job, d := range s.defs {
		x.Announced[job] = d.Hash
	}
	return x
}

func (m *Memory) list(f Filter) []Run {
	m.mu.Lock()
	defer m.mu.Unlock()

	sp := m.spaces[f.Namespace]
	if sp == nil {
		return nil
	}
	var list []*row
	for i := range sp.dues {
		d := sp.dues[i]
		if f.Newest {
			d = sp.dues[len(sp.dues)-1-i]
		}
		if f.Limit > 0 && len(list) >= f.Limit {
			break
		}
		list = append(list, f.choose(d)...)
	}
	if f.Limit > 0 {
		list = list[:min(len(list), f.Limit)]
	}
	return runs(list)
}

// choose returns those of a due's rows that the filter chooses, in its order.
func (f *Filter) choose(d *dueRows) []*row {
	due := time.Unix(d.due, 0)
	if due.Before(f.From) || !f.To.IsZero() && !due.Before(f.To) {
		return nil
	}
	var list []*row
	for _, r := range d.inOrder() {
		if f.chooses(r) {
			list = append(list, r)
		}
	}
	if f.Newest {
		slices.Reverse(list)
	}
	return list
}

func (f *Filter) chooses(r *row) bool {
	return (f.Job == "" || r.ID.Job == f.Job) && (f.Key == "" || r.ID.Key == f.Key) &&
		(f.State == 0 || r.State == f.State) && (f.Outcome == 0 || r.Outcome == f.Outcome)
}

// sequence yields what list returns until the context ends.
func sequence[T any](ctx context.Context, namespace string, list func() []T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		err := ctx.Err()
		if err == nil {
			err = CheckNamespace(namespace)
		}
		if err != nil {
			yield(none, err)
			return
		}
		for _, x := range list() {
			if err := ctx.Err(); err != nil {
				yield(none, err)
				return
			}
			if !yield(x, nil) {
				return
			}
		}
	}
}
