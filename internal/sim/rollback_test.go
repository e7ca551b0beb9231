package sim_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/sim"
	"github.com/belfry-go/belfry/jobs"
)

// journal is a store that writes its calls down, and so can be put back to what it was at any time: a memory store that is
// told the same at the same instants is the same.
type journal struct {
	idempotency.Store // what answers now
	now               func() time.Time
	entries           []entry
}

type entry struct {
	at time.Time
	do func(idempotency.Store)
}

// put puts the store back to what it was at an instant.
func (j *journal) put(back time.Time) {
	replaying := time.Time{}
	m := idempotency.NewMemory(func() time.Time {
		if replaying.IsZero() {
			return j.now()
		}
		return replaying
	})
	for _, e := range j.entries {
		if !e.at.After(back) {
			replaying = e.at
			e.do(m)
		}
	}
	replaying = time.Time{}
	j.Store = m
}

func write[T any](j *journal, do func(idempotency.Store) (T, error)) (T, error) {
	j.entries = append(j.entries, entry{j.now(), func(s idempotency.Store) { _, _ = do(s) }})
	return do(j.Store)
}

func (j *journal) OpenSession(ctx context.Context, o idempotency.Opening) (s idempotency.Session, r idempotency.Renewal, err error) {
	r, err = write(j, func(st idempotency.Store) (r idempotency.Renewal, err error) {
		s, r, err = st.OpenSession(ctx, o)
		return r, err
	})
	return s, r, err
}

func (j *journal) RenewSession(ctx context.Context, s idempotency.Session) (idempotency.Renewal, error) {
	return write(j, func(st idempotency.Store) (idempotency.Renewal, error) { return st.RenewSession(ctx, s) })
}

func (j *journal) CloseSession(ctx context.Context, s idempotency.Session) error {
	_, err := write(j, func(st idempotency.Store) (int, error) { return 0, st.CloseSession(ctx, s) })
	return err
}

func (j *journal) MarkDead(ctx context.Context, s idempotency.Session, dead []int64) error {
	_, err := write(j, func(st idempotency.Store) (int, error) { return 0, st.MarkDead(ctx, s, dead) })
	return err
}

func (j *journal) Declare(ctx context.Context, s idempotency.Session, nonce int64, d []idempotency.Declaration) ([]idempotency.Entry, error) {
	return write(j, func(st idempotency.Store) ([]idempotency.Entry, error) { return st.Declare(ctx, s, nonce, d) })
}

func (j *journal) Decide(ctx context.Context, s idempotency.Session, nonce int64, d []idempotency.Decision) ([]idempotency.Decided, error) {
	return write(j, func(st idempotency.Store) ([]idempotency.Decided, error) { return st.Decide(ctx, s, nonce, d) })
}

func (j *journal) Claim(ctx context.Context, s idempotency.Session, nonce int64, c []idempotency.Claim) ([]idempotency.Answer, error) {
	return write(j, func(st idempotency.Store) ([]idempotency.Answer, error) { return st.Claim(ctx, s, nonce, c) })
}

func (j *journal) Finish(ctx context.Context, namespace string, f []idempotency.Finish) ([]idempotency.FinishAnswer, error) {
	return write(j, func(st idempotency.Store) ([]idempotency.FinishAnswer, error) { return st.Finish(ctx, namespace, f) })
}

func (j *journal) SavePass(ctx context.Context, s idempotency.Session, p []idempotency.Pass) ([]idempotency.Verdict, error) {
	return write(j, func(st idempotency.Store) ([]idempotency.Verdict, error) { return st.SavePass(ctx, s, p) })
}

func (j *journal) CloseDue(ctx context.Context, s idempotency.Session, job string, due time.Time, missed *idempotency.Range) (bool, error) {
	return write(j, func(st idempotency.Store) (bool, error) { return st.CloseDue(ctx, s, job, due, missed) })
}

// F37: a store that is put back to what it was ten seconds ago would give out again what was done. Each replica notices it
// by its own renewal, or by what the others say, and claims nothing any more; so does one that joins then.
func TestStoreIsPutBack(t *testing.T) {
	t.Parallel()
	const broken, noticed = 30 * time.Second, 33 * time.Second
	var j *journal
	var s *scene
	s = newScene(t, sim.Config{Timing: sim.Normal(), Replicas: 4,
		Jobs: []sim.Job{
			{Name: "plain", Plans: every(2 * time.Second)},
			{Name: "keyed", Plans: every(5 * time.Second), Source: sim.NewSource(20), Work: func(*sim.Replica, jobs.Occurrence) sim.Work { return sim.Work{Takes: 100 * ms} }},
		},
		Store: func(m idempotency.Store) idempotency.Store {
			j = &journal{Store: m, now: func() time.Time { return s.StoreNow() }}
			return j
		}})
	s.At(50*ms, func() { s.Replica(3).Kill() }) // it comes later
	before := 0
	s.At(broken, func() {
		before = len(s.lines("store: claims"))
		s.Unjudged()
		j.put(s.StoreNow().Add(-10 * time.Second))
	})
	s.At(noticed, func() { s.Replica(3).Start() })
	settled := 0
	s.At(noticed+3*time.Second, func() { settled = len(s.lines("store: ")) })
	s.play(3 * time.Minute)
	if before < 60 {
		t.Errorf("%d claims before the store was put back: it was not at work", before)
	}
	for i := range 4 {
		if n := len(s.lines(s.Replica(i).Name+" ", "announces", "unfit", "the store was rolled back")); n != 1 {
			t.Errorf("%s said %d times that the store was rolled back, want once", s.Replica(i).Name, n)
		}
	}
	var calls []string
	for _, l := range s.lines("store: ")[settled:] {
		if strings.Contains(l, "claims") || strings.Contains(l, "decides") || strings.Contains(l, "opens session") {
			calls = append(calls, l)
		}
	}
	if len(calls) > 0 {
		t.Errorf("after all had noticed there were %d calls, the first of them: %q", len(calls), calls[0])
	}
}
