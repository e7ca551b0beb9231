package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// Repartition gives a namespace of the store in the file at path another number of partitions, a power of two. What is
// known of open dues is kept: a partition that splits was finished with all its parts, and of partitions that merge the
// whole is finished where all were. Nothing else depends on the number. It opens the file as Open does, but never makes
// a store.
//
// It is refused, with an error that wraps idempotency.ErrRefused and names the replica, while a session of the
// namespace is live. To set the number that the namespace has does nothing.
func Repartition(ctx context.Context, path, namespace string, partitions int, o *Options) error {
	if err := errors.Join(idempotency.CheckNamespace(namespace), rule.CheckPartitions(partitions)); err != nil {
		return fmt.Errorf("sqlite: repartition: %w", err)
	}
	with := may(o)
	with.NoMigrate = true
	s, err := Open(ctx, path, with)
	if err != nil {
		return err
	}
	err = s.write(ctx, true, func(t *tx) error {
		space, from, err := t.vacant(namespace)
		switch {
		case err != nil:
			return err
		case space == 0:
			return fmt.Errorf("it has no namespace %q; check the name", namespace)
		case from == partitions:
			return nil
		}
		if err := t.refit(space, from, partitions); err != nil {
			return err
		}
		_, err = t.exec(`UPDATE belfry_space SET partitions = ? WHERE id = ?`, partitions, space)
		return err
	})
	return errors.Join(err, s.Close())
}

// vacant finds a namespace, 0 if there is none, and demands that nobody uses it. Its lapsed sessions are marked dead,
// so that no clock that steps back revives one with what it knew before.
func (t *tx) vacant(namespace string) (space int64, partitions int, err error) {
	found, err := t.get([]any{&space, &partitions}, `SELECT id, partitions FROM belfry_space WHERE name = ?`, namespace)
	if err != nil || !found {
		return 0, 0, err
	}
	var live []rule.Holder
	err = t.query(func(r *sql.Rows) error {
		var h rule.Holder
		var until sql.NullInt64
		err := r.Scan(&h.Replica, &until)
		h.Until = at(until)
		live = append(live, h)
		return err
	}, `SELECT replica, expires FROM belfry_session WHERE space = ? AND marked IS NULL AND expires > ?`, space, micro(t.now))
	if err == nil {
		err = rule.InUse(namespace, live)
	}
	if err == nil {
		_, err = t.exec(`UPDATE belfry_session SET marked = ? WHERE space = ? AND marked IS NULL`, micro(t.now), space)
	}
	return space, partitions, err
}

func (t *tx) refit(space int64, from, to int) error {
	var passes []idempotency.Pass
	err := t.query(func(r *sql.Rows) error {
		var p idempotency.Pass
		var due int64
		err := r.Scan(&due, &p.Job, &p.Session, &p.Finished, &p.Keys)
		p.Due = time.Unix(due, 0)
		passes = append(passes, p)
		return err
	}, `SELECT due, job, session, finished, keys FROM belfry_pass WHERE space = ?`, space)
	if err != nil {
		return err
	}
	keep, drop := rule.RefitPasses(passes, from, to)
	for _, p := range keep {
		_, err := t.exec(`UPDATE belfry_pass SET mine = ?, finished = ?, keys = ? WHERE space = ? AND due = ? AND job = ? AND session = ?`,
			p.Mine, p.Finished, p.Keys, space, p.Due.Unix(), p.Job, p.Session)
		if err != nil {
			return err
		}
	}
	for _, p := range drop {
		_, err := t.exec(`DELETE FROM belfry_pass WHERE space = ? AND due = ? AND job = ? AND session = ?`, space, p.Due.Unix(), p.Job, p.Session)
		if err != nil {
			return err
		}
	}
	return nil
}
