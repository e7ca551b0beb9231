package sqlite

import (
	"context"
	"fmt"

	"github.com/belfry-go/belfry/idempotency"
)

// DropNamespace removes a namespace with all its rows, for good and at once. It is refused, with an error that wraps
// idempotency.ErrRefused and names the replica, while a session of the namespace is live. Where there is no such
// namespace it does nothing.
func (s *Store) DropNamespace(ctx context.Context, namespace string) error {
	if err := idempotency.CheckNamespace(namespace); err != nil {
		return fmt.Errorf("sqlite: drop namespace: %w", err)
	}
	return s.write(ctx, false, func(t *tx) error {
		space, _, err := t.vacant(namespace)
		if err != nil || space == 0 {
			return err
		}
		for _, text := range []string{
			`DELETE FROM belfry_definition WHERE session IN (SELECT id FROM belfry_session WHERE space = ?)`,
			`DELETE FROM belfry_decision WHERE session IN (SELECT id FROM belfry_session WHERE space = ?)`,
			`DELETE FROM belfry_session WHERE space = ?`,
			`DELETE FROM belfry_seen WHERE space = ?`,
			`DELETE FROM belfry_entry WHERE space = ?`,
			`DELETE FROM belfry_pass WHERE space = ?`,
			`DELETE FROM belfry_due WHERE space = ?`,
			`DELETE FROM belfry_range WHERE space = ?`,
			`DELETE FROM belfry_run WHERE space = ?`,
			`DELETE FROM belfry_command WHERE space = ?`,
			`DELETE FROM belfry_leader WHERE space = ?`,
			`DELETE FROM belfry_space WHERE id = ?`,
		} {
			if _, err := t.exec(text, space); err != nil {
				return err
			}
		}
		return nil
	})
}
