//go:build unix

package rig

import (
	"database/sql"
	"iter"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// rows reads the store's history.
func (f *fleet) rows() []row {
	f.Helper()
	return f.list(idempotency.Filter{Namespace: namespace})
}

// row is that of one run, empty where there is none.
func (f *fleet) row(r run) row {
	f.Helper()
	due := time.Unix(r.due, 0)
	list := f.list(idempotency.Filter{Namespace: namespace, Job: r.job, Key: r.key, From: due, To: due.Add(time.Second)})
	if len(list) == 0 {
		return row{}
	}
	return list[0]
}

func (f *fleet) list(filter idempotency.Filter) []row {
	f.Helper()
	return collect(f, f.store.List(f.ctx, filter), func(r idempotency.Run) row {
		return row{run: run{r.ID.Job, r.ID.Key, r.ID.Due.Unix()}, ended: r.State == idempotency.Ended,
			outcome: outcomes[r.Outcome], reason: r.Reason, text: r.Text, fence: r.Fence, attempt: r.Attempt, crashes: r.Crashes,
			finished: r.Finished.UnixMicro()}
	})
}

func (f *fleet) spans() []span {
	f.Helper()
	return collect(f, f.store.Ranges(f.ctx, namespace, ""), func(r idempotency.Range) span {
		return span{r.Job, r.From.Unix(), r.To.Unix(), r.Count, outcomes[r.Outcome], r.Reason}
	})
}

// collect reads a part of the store's history. A server that was killed a moment ago leaves connections that fail once.
func collect[R, T any](f *fleet, all iter.Seq2[R, error], as func(R) T) []T {
	f.Helper()
	var failed error
	for range 3 + conns {
		var list []T
		failed = nil
		for r, err := range all {
			if failed = err; err == nil {
				list = append(list, as(r))
			}
		}
		if failed == nil {
			return list
		}
	}
	f.Fatal(failed)
	return nil
}

// marks reads the effects that were written together with the completions of runs.
func (f *fleet) marks() (list []mark) {
	f.Helper()
	f.place.ask(f.T, func(db *sql.DB) error {
		rows, err := db.QueryContext(f.ctx, readEffects)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var m mark
			if err := rows.Scan(&m.idem, &m.fence); err != nil {
				return err
			}
			list = append(list, m)
		}
		return rows.Err()
	})
	return list
}

// settle waits until every due up to now has come to its end, stops the fleet and judges all that happened.
func (f *fleet) settle(l law) *judge {
	f.Helper()
	limit := time.Now()
	f.decided(limit)
	f.end()
	f.refresh()
	j := f.judge(limit)
	j.effects = f.marks()
	for _, p := range f.all {
		if !p.meant {
			f.Errorf("%s (process %d) ended by itself: %v\n%s", p.name, p.Pid(), p.Err(), f.tail(p.name))
		}
	}
	l.died, l.paused, l.cut, l.troubled, l.lease = f.died, f.paused, f.cut, f.rough, f.base.Lease
	bad := j.judge(f.book.lines, l)
	for _, text := range bad[:min(len(bad), 20)] {
		f.Error(text)
	}
	if len(bad) > 20 {
		f.Errorf("and %d more", len(bad)-20)
	}
	f.Logf("seed %d: %s; %d processes died, %d stood still, %d were cut from the store, %d sessions were lost with no fault, %d of them for no reason",
		f.seed, j.tally(), len(f.died), len(f.paused), len(f.cut), j.lost, j.unexplained)
	return j
}

func (f *fleet) judge(limit time.Time) *judge {
	f.Helper()
	return newJudge(f.base.Works, f.since.Unix(), limit.Unix(), f.rows(), f.spans())
}

// decided waits until every due up to the limit has come to its end.
func (f *fleet) decided(limit time.Time) {
	f.Helper()
	again := time.NewTicker(250 * time.Millisecond) // it reads all of the history
	defer again.Stop()
	for {
		j := f.judge(limit)
		open := j.open()
		if len(open) == 0 {
			return
		}
		select {
		case <-again.C:
		case <-f.ctx.Done():
			f.dump()
			f.Fatalf("%d runs do not come to their end, among them %v: %+v", len(open), open[0], j.rows[open[0]])
		}
	}
}
