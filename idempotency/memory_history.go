package idempotency

import (
	"context"
	"iter"
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

func (m *Memory) list(f Filter) []Run {
	m.mu.Lock()
	defer m.mu.Unlock()

	sp := m.spaces[f.Namespace]
	if sp == nil {
		return nil
	}
	var list []*row
	for _, d := range sp.dues {
		due := time.Unix(d.due, 0)
		if due.Before(f.From) {
			continue
		}
		if !f.To.IsZero() && !due.Before(f.To) || f.Limit > 0 && len(list) >= f.Limit {
			break
		}
		for _, r := range d.inOrder() {
			if f.chooses(r) {
				list = append(list, r)
			}
		}
	}
	if f.Limit > 0 {
		list = list[:min(len(list), f.Limit)]
	}
	return runs(list)
}

func (f *Filter) chooses(r *row) bool {
	return (f.Job == "" || r.ID.Job == f.Job) && (f.Key == "" || r.ID.Key == f.Key) &&
		(f.Outcome == 0 || r.Outcome == f.Outcome)
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
