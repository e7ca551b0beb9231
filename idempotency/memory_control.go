package idempotency

import (
	"context"
	"errors"
	"iter"
	"time"
)

var errNotYet = errors.New("not built yet")

func (m *Memory) Retire(ctx context.Context, ses Session, after time.Duration) ([]Orphan, error) {
	return nil, nil
}

func (m *Memory) Dues(ctx context.Context, namespace, job string, from, to time.Time) iter.Seq2[Due, error] {
	return func(yield func(Due, error) bool) { yield(Due{}, errNotYet) }
}

func (m *Memory) Overview(ctx context.Context, namespace string) (Overview, error) {
	return Overview{}, errNotYet
}

func (m *Memory) Commands(ctx context.Context, namespace, job string) iter.Seq2[Command, error] {
	return func(yield func(Command, error) bool) { yield(Command{}, errNotYet) }
}

func (m *Memory) Submit(ctx context.Context, namespace string, c Command) (Command, error) {
	return c, errNotYet
}
