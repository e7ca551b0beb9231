package mysql

import (
	"context"
	"errors"
	"iter"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var errNotYet = errors.New("not built yet")

func (s *Store) Retire(ctx context.Context, ses idempotency.Session, after time.Duration) ([]idempotency.Orphan, error) {
	return nil, nil
}

func (s *Store) Commands(ctx context.Context, namespace, job string) iter.Seq2[idempotency.Command, error] {
	return func(yield func(idempotency.Command, error) bool) { yield(idempotency.Command{}, errNotYet) }
}

func (s *Store) Submit(ctx context.Context, namespace string, c idempotency.Command) (idempotency.Command, error) {
	return c, errNotYet
}
