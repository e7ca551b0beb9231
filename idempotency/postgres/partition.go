package postgres

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// Repartition gives a namespace another number of partitions, a power of two. What is known of open dues is kept: a
// partition that splits was finished with all its parts, and of partitions that merge the whole is finished where all
// were. Nothing else depends on the number. It opens the store as Open does, but never makes a schema.
//
// It is refused, with an error that wraps idempotency.ErrRefused and names the replica, while a session of the namespace
// is live. To set the number that the namespace has does nothing.
func Repartition(ctx context.Context, p *pgxpool.Pool, namespace string, partitions int, o *Options) error {
	with, err := o.filled()
	if err := errors.Join(err, idempotency.CheckNamespace(namespace), rule.CheckPartitions(partitions)); err != nil {
		return fmt.Errorf("postgres: repartition: %w", err)
	}
	with.NoMigrate = true
	s, err := Open(ctx, p, &with)
	if err != nil {
		return err
	}
	err = s.write(ctx, s.calls, func(t *tx) error {
		space, from, err := t.vacant(namespace)
		switch {
		case err != nil:
			return err
		case space == 0:
			return fmt.Errorf("the store has no namespace %q; check the name", namespace)
		case from == partitions:
			return nil
		}
		if err := t.refit(space, from, partitions); err != nil {
			return err
		}
		_, err = t.exec(`UPDATE belfry_space SET partitions = $1 WHERE id = $2`, partitions, space)
		return err
	})
	return errors.Join(err, s.Close())
}

// vacant finds a namespace, 0 if there is none, demands that nobody uses it, and keeps others from beginning to until the
// transaction ends. Its lapsed sessions are marked dead, so that no clock that steps back revives one with what it knew
// before.
func (t *tx) vacant(namespace string) (space int32, partitions int, err error) {
	found, err := t.get([]any{&space, &partitions}, `SELECT id, partitions FROM belfry_space WHERE name = $1 FOR UPDATE`, namespace)
	if err != nil || !found {
		return 0, 0, err
	}
	// Renewals under way come first, and are seen.
	if _, err := t.exec(`SELECT id FROM belfry_session WHERE space = $1 AND marked IS NULL ORDER BY id FOR UPDATE`, space); err != nil {
		return 0, 0, err
	}
	var live []rule.Holder
	err = t.query(func(r pgx.Rows) error {
		var h rule.Holder
		var replica []byte
		err := r.Scan(&replica, &h.Until)
		h.Replica = string(replica)
		live = append(live, h)
		return err
	}, `SELECT replica, expires FROM belfry_session WHERE space = $1 AND marked IS NULL AND expires > {clock}`, space)
	if err == nil {
		err = rule.InUse(namespace, live)
	}
	if err == nil {
		_, err = t.exec(`UPDATE belfry_session SET marked = {clock} WHERE space = $1 AND marked IS NULL`, space)
	}
	return space, partitions, err
}

func (t *tx) refit(space int32, from, to int) error {
	var passes []idempotency.Pass
	err := t.query(func(r pgx.Rows) error {
		var p idempotency.Pass
		err := r.Scan(&p.Due, &p.Job, &p.Session, &p.Finished, &p.Keys)
		passes = append(passes, p)
		return err
	}, `SELECT due, job, session, finished, keys FROM belfry_pass WHERE space = $1`, space)
	if err != nil {
		return err
	}
	keep, drop := rule.RefitPasses(passes, from, to)
	for _, p := range keep {
		_, err := t.exec(`UPDATE belfry_pass SET mine = $1, finished = $2, keys = $3 WHERE space = $4 AND due = $5 AND job = $6 AND session = $7`,
			p.Mine, p.Finished, p.Keys, space, p.Due, p.Job, p.Session)
		if err != nil {
			return err
		}
	}
	for _, p := range drop {
		_, err := t.exec(`DELETE FROM belfry_pass WHERE space = $1 AND due = $2 AND job = $3 AND session = $4`, space, p.Due, p.Job, p.Session)
		if err != nil {
			return err
		}
	}
	return nil
}
