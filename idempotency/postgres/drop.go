package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/belfry-go/belfry/idempotency"
)

// dropRows is how many rows of a table go in one transaction, so that millions neither hold vacuum up nor meet a deadline.
const dropRows = 5000

// DropNamespace removes a namespace with all its rows, for good. It is gone for everybody at once, whatever the number of
// its rows; then its runs are removed in many transactions, each with a deadline of its own. If it is interrupted there,
// the next call, of any namespace, removes the rest. Its role needs more than that of replicas: see docs/stores.md.
//
// It is refused, with an error that wraps idempotency.ErrRefused and names the replica, while a session of the namespace
// is live. Where there is no such namespace it only removes what was left.
func (s *Store) DropNamespace(ctx context.Context, namespace string) error {
	if err := idempotency.CheckNamespace(namespace); err != nil {
		return fmt.Errorf("postgres: drop namespace: %w", err)
	}
	err := s.write(ctx, s.calls, func(t *tx) error {
		space, _, err := t.vacant(namespace)
		if err != nil || space == 0 {
			return err
		}
		for _, text := range []string{
			`DELETE FROM belfry_definition WHERE session IN (SELECT id FROM belfry_session WHERE space = $1)`,
			`DELETE FROM belfry_decision WHERE session IN (SELECT id FROM belfry_session WHERE space = $1)`,
			`DELETE FROM belfry_leader WHERE space = $1`,
			`DELETE FROM belfry_session WHERE space = $1`,
			`DELETE FROM belfry_seen WHERE space = $1`,
			`DELETE FROM belfry_command WHERE space = $1`,
			`DELETE FROM belfry_entry WHERE space = $1`,
			`DELETE FROM belfry_pass WHERE space = $1`,
			`DELETE FROM belfry_due WHERE space = $1`,
			`DELETE FROM belfry_running WHERE space = $1`,
			`DELETE FROM belfry_control WHERE space = $1`,
			`UPDATE belfry_space SET name = '~' || id WHERE id = $1`, // which nobody can be called
		} {
			if _, err := t.exec(text, space); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return s.dropRest(ctx)
}

// dropRest removes the rows of namespaces that are gone already.
func (s *Store) dropRest(ctx context.Context) error {
	var gone []int32
	err := s.read(ctx, func(t *tx) error {
		gone = nil
		return t.query(func(r pgx.Rows) error {
			var space int32
			err := r.Scan(&space)
			gone = append(gone, space)
			return err
		}, `SELECT id FROM belfry_space WHERE name LIKE '~%'`)
	})
	for _, space := range gone {
		for _, text := range []string{
			`DELETE FROM belfry_range WHERE ctid = ANY(ARRAY(SELECT ctid FROM belfry_range WHERE space = $1 LIMIT $2))`,
			`DELETE FROM belfry_run WHERE ctid = ANY(ARRAY(SELECT ctid FROM belfry_run WHERE space = $1 LIMIT $2))`,
		} {
			for n := int64(1); n > 0 && err == nil; {
				err = s.write(ctx, s.calls, func(t *tx) (err error) {
					n, err = t.exec(text, space, dropRows)
					return err
				})
			}
		}
		if err == nil {
			err = s.write(ctx, s.calls, func(t *tx) error {
				_, err := t.exec(`DELETE FROM belfry_space WHERE id = $1`, space)
				return err
			})
		}
	}
	return err
}
