package sim

import (
	"context"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// journal is a memory store that writes its calls down, and so can be put back to what it was: one that is told the same at the
// same instants is the same. What a server forgets that did not sync, and what a backup lacks, is the same to it.
type journal struct {
	*idempotency.Memory // what answers now
	now                 func() time.Time
	partitions          int
	changes             []change
}

type change struct {
	at time.Time
	do func(*idempotency.Memory)
}

// as is the store as it was at an instant, and how many of the changes had been made.
func (j *journal) as(back time.Time) (*idempotency.Memory, int) {
	var then time.Time // zero: the past has been told
	m := idempotency.NewMemory(func() time.Time {
		if then.IsZero() {
			return j.now()
		}
		return then
	})
	made := 0
	for _, c := range j.changes {
		if c.at.After(back) {
			break
		}
		made, then = made+1, c.at
		c.do(m)
	}
	then = time.Time{}
	return m, made
}

// put puts the store back to what it was at an instant, and tells whether it still has drawn all numbers that it had drawn.
func (j *journal) put(back time.Time) (kept bool) {
	next := func(back time.Time) int64 {
		m, _ := j.as(back)
		s, _, err := m.OpenSession(context.Background(), idempotency.Opening{
			Namespace: Namespace, Replica: "auditor", Boot: "auditor", Partitions: j.partitions,
			Lease: time.Second, Horizon: time.Minute, Retention: time.Hour, Tolerance: time.Millisecond,
		})
		if err != nil {
			panic(err)
		}
		return s.ID
	}
	kept = next(j.now()) == next(back)
	m, made := j.as(back)
	j.Memory, j.changes = m, j.changes[:made]
	return kept
}

func write[T any](j *journal, do func(*idempotency.Memory) (T, error)) (T, error) {
	j.changes = append(j.changes, change{j.now(), func(m *idempotency.Memory) { _, _ = do(m) }})
	return do(j.Memory)
}

// Each call that changes something is written down, and made as its namesake of idempotency.Store, Control or Leaders; what only reads is Memory's own.

// OpenSession writes the call down.
func (j *journal) OpenSession(ctx context.Context, o idempotency.Opening) (s idempotency.Session, r idempotency.Renewal, err error) {
	r, err = write(j, func(m *idempotency.Memory) (r idempotency.Renewal, err error) {
		s, r, err = m.OpenSession(ctx, o)
		return r, err
	})
	return s, r, err
}

// RenewSession writes the call down.
func (j *journal) RenewSession(ctx context.Context, s idempotency.Session) (idempotency.Renewal, error) {
	return write(j, func(m *idempotency.Memory) (idempotency.Renewal, error) { return m.RenewSession(ctx, s) })
}

// CloseSession writes the call down.
func (j *journal) CloseSession(ctx context.Context, s idempotency.Session) error {
	_, err := write(j, func(m *idempotency.Memory) (int, error) { return 0, m.CloseSession(ctx, s) })
	return err
}

// MarkDead writes the call down.
func (j *journal) MarkDead(ctx context.Context, s idempotency.Session, dead []int64) error {
	_, err := write(j, func(m *idempotency.Memory) (int, error) { return 0, m.MarkDead(ctx, s, dead) })
	return err
}

// Declare writes the call down.
func (j *journal) Declare(ctx context.Context, s idempotency.Session, nonce int64, d []idempotency.Declaration) ([]idempotency.Entry, error) {
	return write(j, func(m *idempotency.Memory) ([]idempotency.Entry, error) { return m.Declare(ctx, s, nonce, d) })
}

// Decide writes the call down.
func (j *journal) Decide(ctx context.Context, s idempotency.Session, nonce int64, d []idempotency.Decision) ([]idempotency.Decided, error) {
	return write(j, func(m *idempotency.Memory) ([]idempotency.Decided, error) { return m.Decide(ctx, s, nonce, d) })
}

// Claim writes the call down.
func (j *journal) Claim(ctx context.Context, s idempotency.Session, nonce int64, c []idempotency.Claim) ([]idempotency.Answer, error) {
	return write(j, func(m *idempotency.Memory) ([]idempotency.Answer, error) { return m.Claim(ctx, s, nonce, c) })
}

// Finish writes the call down.
func (j *journal) Finish(ctx context.Context, namespace string, f []idempotency.Finish) ([]idempotency.FinishAnswer, error) {
	return write(j, func(m *idempotency.Memory) ([]idempotency.FinishAnswer, error) { return m.Finish(ctx, namespace, f) })
}

// SavePass writes the call down.
func (j *journal) SavePass(ctx context.Context, s idempotency.Session, p []idempotency.Pass) ([]idempotency.Verdict, error) {
	return write(j, func(m *idempotency.Memory) ([]idempotency.Verdict, error) { return m.SavePass(ctx, s, p) })
}

// CloseDue writes the call down.
func (j *journal) CloseDue(ctx context.Context, s idempotency.Session, job string, due time.Time, missed *idempotency.Range) (bool, error) {
	return write(j, func(m *idempotency.Memory) (bool, error) { return m.CloseDue(ctx, s, job, due, missed) })
}

// Lead writes the call down.
func (j *journal) Lead(ctx context.Context, s idempotency.Session, term int64) (idempotency.Leader, error) {
	return write(j, func(m *idempotency.Memory) (idempotency.Leader, error) { return m.Lead(ctx, s, term) })
}

// Resign writes the call down.
func (j *journal) Resign(ctx context.Context, s idempotency.Session, term int64, why string) error {
	_, err := write(j, func(m *idempotency.Memory) (int, error) { return 0, m.Resign(ctx, s, term, why) })
	return err
}

// Prune writes the call down.
func (j *journal) Prune(ctx context.Context, s idempotency.Session, limit int) (int, error) {
	return write(j, func(m *idempotency.Memory) (int, error) { return m.Prune(ctx, s, limit) })
}

// Retire writes the call down.
func (j *journal) Retire(ctx context.Context, s idempotency.Session, after time.Duration) ([]idempotency.Orphan, error) {
	return write(j, func(m *idempotency.Memory) ([]idempotency.Orphan, error) { return m.Retire(ctx, s, after) })
}

// Submit writes the call down.
func (j *journal) Submit(ctx context.Context, namespace string, c idempotency.Command) (idempotency.Command, error) {
	return write(j, func(m *idempotency.Memory) (idempotency.Command, error) { return m.Submit(ctx, namespace, c) })
}

// front is what the replicas of a world with a journal call: it says which store this is, and keeps what it said last.
type front struct {
	*tap
	identity string
	said     idempotency.Renewal
}

var _ idempotency.Leaders = (*front)(nil)

func (f *front) says(r idempotency.Renewal) idempotency.Renewal {
	r.Store = f.identity
	f.said = r
	return r
}

// OpenSession says which store it is of.
func (f *front) OpenSession(ctx context.Context, o idempotency.Opening) (idempotency.Session, idempotency.Renewal, error) {
	s, r, err := f.tap.OpenSession(ctx, o)
	return s, f.says(r), err
}

// RenewSession says which store it is of.
func (f *front) RenewSession(ctx context.Context, s idempotency.Session) (idempotency.Renewal, error) {
	r, err := f.tap.RenewSession(ctx, s)
	return f.says(r), err
}

// original is the identity of a world's first store.
const original = "model"

// PutBack lets the store of a world with a journal forget what it was told in the last d, and tells whether it still has drawn
// all numbers that it had drawn. The oracle has no notion of a store that goes back in time: it judges no more.
func (w *World) PutBack(d time.Duration) (kept bool) {
	w.note("", "store is put back by", d)
	w.Unjudged()
	kept = w.journal.put(w.StoreNow().Add(-d))
	w.memory = w.journal.Memory
	return kept
}

// Complete records in a world with a journal that a run is done, as a handler does that commits this together with its effect. The
// oracle has no notion of that: it judges no more.
func (w *World) Complete(o jobs.Occurrence) {
	w.Unjudged()
	f := idempotency.Finish{
		ID:    idempotency.ID{Job: o.Job, Key: o.Key, Due: o.Due, Request: o.Request},
		Fence: o.Fence, Outcome: idempotency.Done, Attempt: o.Attempt,
	}
	a, err := w.journal.Finish(context.Background(), Namespace, []idempotency.Finish{f})
	if err != nil || a[0] != idempotency.Finished {
		w.fail("a handler completes %v: %v, %v", o, a, err)
	}
}

// Replace puts an empty store in the place of that of a world with a journal.
func (w *World) Replace() {
	w.PutBack(w.now + time.Second)
	w.front.identity = "another model"
}
