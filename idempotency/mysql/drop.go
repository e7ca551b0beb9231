package mysql

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/belfry-go/belfry/idempotency"
)

// dropRows is how many rows of a table go in one transaction, so that millions neither fill the undo log nor meet a
// deadline.
const dropRows = 5000

// DropNamespace removes a namespace with all its rows, for good. It is gone for everybody at once, whatever the number of
// its rows; then its runs are removed in many transactions, each with a deadline of its own. If it is interrupted there,
// the next call, of any namespace, removes the rest. Its user needs more than that of replicas: see docs/stores.md.
//
// It is refused, with an error that wraps idempotency.ErrRefused and names the replica, while a session of the namespace
// is live. Where there is no such namespace it only removes what was left.
func (s *Store) DropNamespace(ctx context.Context, namespace string) error {
	if err := idempotency.CheckNamespace(namespace); err != nil {
		return fmt.Errorf("mysql: drop namespace: %w", err)
	}
	err := s.write(ctx, func(t *tx) error {
		space, _, err := t.vacant(namespace)
		if err != nil || space == 0 {
			return err
		}
		for _, text := range []string{
			`DELETE FROM belfry_definition WHERE session IN (SELECT id FROM belfry_session WHERE space = ?)`,
			`DELETE FROM belfry_decision WHERE session IN (SELECT id FROM belfry_session WHERE space = ?)`,
			`DELETE FROM belfry_lease WHERE session IN (SELECT id FROM belfry_session WHERE space = ?)`,
			`DELETE FROM belfry_session WHERE space = ?`,
			`DELETE FROM belfry_leader WHERE space = ?`,
			`DELETE FROM belfry_seen WHERE space = ?`,
			`DELETE FROM belfry_command WHERE space = ?`,
			`DELETE FROM belfry_control WHERE space = ?`,
			`DELETE FROM belfry_entry WHERE space = ?`,
			`DELETE FROM belfry_pass WHERE space = ?`,
			`DELETE FROM belfry_due WHERE space = ?`,
			`DELETE FROM belfry_running WHERE space = ?`,
			`UPDATE belfry_space SET name = CONCAT('~', id) WHERE id = ?`, // which nobody can be called
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
	var gone []int64
	err := s.read(ctx, func(t *tx) error {
		gone = nil
		return t.query(func(r *sql.Rows) error {
			var space int64
			err := r.Scan(&space)
			gone = append(gone, space)
			return err
		}, `SELECT id FROM belfry_space WHERE name LIKE '~%'`)
	})
	for _, space := range gone {
		for _, text := range []string{
			`DELETE FROM belfry_waiting WHERE space = ? LIMIT ?`, `DELETE FROM belfry_range WHERE space = ? LIMIT ?`, `DELETE FROM belfry_run WHERE space = ? LIMIT ?`,
		} {
			for n := int64(1); n > 0 && err == nil; {
				err = s.write(ctx, func(t *tx) (err error) {
					n, err = t.exec(text, space, dropRows)
					return err
				})
			}
		}
		if err == nil {
			err = s.write(ctx, func(t *tx) error {
				_, err := t.exec(`DELETE FROM belfry_space WHERE id = ?`, space)
				return err
			})
		}
	}
	return err
}
