package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/fleet"
	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
	"github.com/belfry-go/belfry/idempotency"
)

// soakLedger is what the replicas told of their handlers, outside the store; and the account of both, due by due.
type soakLedger struct {
	plan  soakPlan
	edits []time.Time // the first edition's end, and so on
	open  map[soakID]*soakSeen
	next  time.Time // dues before it are accounted for
	quiet time.Time // since when all that is left has ended; zero: it has not
	r     *SoakReport
	late  []time.Duration
}

// soakID names an occurrence.
type soakID struct {
	job, key string
	due      int64
}

// soakSeen is what was seen of an occurrence.
type soakSeen struct {
	starts []int64 // fences
	ends   int
}

func newSoakLedger(p soakPlan, r *SoakReport) *soakLedger {
	return &soakLedger{plan: p, open: map[soakID]*soakSeen{}, next: p.First, r: r}
}

// note takes what a replica told.
func (l *soakLedger) note(kind string, e soakEvent) {
	if e.Due < l.next.Unix() {
		l.r.wrong(&l.r.Double, "%s %s of %d: a handler %s after its end", e.Job, e.Key, e.Due, kind)
		return
	}
	id := soakID{e.Job, e.Key, e.Due}
	seen := l.open[id]
	if seen == nil {
		seen = &soakSeen{}
		l.open[id] = seen
	}
	if kind == fleet.Started {
		seen.starts = append(seen.starts, e.Fence)
		return
	}
	seen.ends++
	const most = 1_000_000
	if len(l.late) < most && len(seen.starts) == 1 {
		l.late = append(l.late, e.Late)
	}
}

// account holds the dues that have had their time to what had to become of them. After the last due it does not wait for that,
// once all have ended and what the replicas told of them was read.
func (l *soakLedger) account(ctx context.Context, store storeurl.Store, namespace string, now time.Time) error {
	end := now.Add(-soakSettle).Truncate(time.Second)
	if now.After(l.plan.Last) {
		end = l.plan.Last.Add(time.Second)
	}
	if !end.After(l.next) {
		return nil
	}
	rows := map[soakID]idempotency.Run{}
	ended := true
	for row, err := range store.List(ctx, idempotency.Filter{Namespace: namespace, From: l.next, To: end}) {
		if err != nil {
			return fmt.Errorf("bench: reading the record: %w", err)
		}
		rows[soakID{row.ID.Job, row.ID.Key, row.ID.Due.Unix()}] = row
		ended = ended && row.State == idempotency.Ended
	}
	if now.After(l.plan.Last) && now.Before(l.plan.Last.Add(soakSettle)) && !l.restful(rows, ended, now) {
		return nil
	}
	for ; l.next.Before(end); l.next = l.next.Add(time.Second) {
		l.due(l.next, rows)
	}
	for id, row := range rows {
		l.r.wrong(&l.r.Wrong, "%s %s of %s: %s, and nothing was due", id.job, id.key, row.ID.Due.Format(time.RFC3339), row.State)
	}
	return nil
}

// restful reports whether all that is due until the end has had its row ended for two looks.
func (l *soakLedger) restful(rows map[soakID]idempotency.Run, ended bool, now time.Time) bool {
	for due := l.next; ended && !due.After(l.plan.Last); due = due.Add(time.Second) {
		for id, must := range l.expected(due) {
			_, there := rows[id]
			ended = ended && (there || !must)
		}
	}
	if !ended {
		l.quiet = time.Time{}
	} else if l.quiet.IsZero() {
		l.quiet = now
	}
	return ended && now.Sub(l.quiet) >= soakAccount
}

// due accounts for one second's occurrences, and takes their rows out of rows.
func (l *soakLedger) due(due time.Time, rows map[soakID]idempotency.Run) {
	for id, must := range l.expected(due) {
		row, there := rows[id]
		if delete(rows, id); there {
			l.judge(row, l.open[id])
			l.r.Occurrences++
		} else if must {
			l.r.Occurrences++
			l.r.wrong(&l.r.Lost, "%s %s of %s: no record", id.job, id.key, due.Format(time.RFC3339))
		}
		delete(l.open, id)
	}
}

// expected are the occurrences of a second, and whether each must be there: one of an edited job need not, round its edits.
func (l *soakLedger) expected(due time.Time) map[soakID]bool {
	at := due.Unix()
	list := map[soakID]bool{{soakLeaderJob, soakLeaderJob, at}: true}
	for i := range soakTicks {
		name := fmt.Sprintf("tick-%d", i)
		list[soakID{name, name, at}] = true
	}
	if due.Truncate(soakEachEvery).Equal(due) {
		for key := range present(due) {
			list[soakID{soakEachJob, key, at}] = true
		}
	}
	edition, near := 0, false
	for _, edit := range l.edits {
		const takes = 20 * time.Second // until all replicas have it, and the sessions of the dead that had the old one have ended
		if due.After(edit) {
			edition++
		}
		near = near || due.Sub(edit).Abs() < takes
	}
	if even := at%2 == 0; even || near || edition%2 == 0 {
		list[soakID{soakEditedJob, soakEditedJob, at}] = even || !near
	}
	return list
}

// judge holds one row to its fate, and to what was seen of its handlers.
func (l *soakLedger) judge(row idempotency.Run, seen *soakSeen) {
	if seen == nil {
		seen = &soakSeen{}
	}
	outcome, reason, attempts := fateOf(row.ID.Key, row.ID.Due).end()
	what := fmt.Sprintf("%s %s of %s: %s %s %q after %d attempts, %d crashes, %d starts, %d ends; want %s %q after %d", row.ID.Job, row.ID.Key,
		row.ID.Due.Format(time.RFC3339), row.State, row.Outcome, row.Reason, row.Attempt, row.Crashes, len(seen.starts), seen.ends, outcome, reason, attempts)
	fences := map[int64]bool{}
	for _, fence := range seen.starts {
		fences[fence] = true
	}
	switch {
	case seen.ends > 1, len(fences) < len(seen.starts):
		l.r.wrong(&l.r.Double, "%s", what)
	case row.State != idempotency.Ended, row.Outcome != outcome, row.Reason != reason, row.Attempt != attempts, len(seen.starts) < attempts:
		l.r.wrong(&l.r.Wrong, "%s", what)
	}
	l.r.count(row, len(seen.starts))
}

// over reports whether all dues are accounted for.
func (l *soakLedger) over(now time.Time) bool {
	if l.next.After(l.plan.Last) {
		l.r.Late = summarise(l.late)
		return now.After(l.plan.Last)
	}
	return false
}
