package ordeal

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/storetest"
)

// replica is one session of a test that knows what should happen; a call that fails ends the test.
type replica struct {
	t       *testing.T
	store   storetest.Store
	session idempotency.Session
	told    idempotency.Renewal
	nonce   int64
}

// open opens a session, and declares the job.
func open(t *testing.T, s storetest.Store, name string) *replica {
	t.Helper()
	session, told, err := s.OpenSession(t.Context(), opening(name))
	if err != nil {
		t.Fatalf("open session: %v", err)
	}
	r := &replica{t: t, store: s, session: session, told: told}
	if _, err := s.Declare(t.Context(), session, 1, []idempotency.Declaration{declaration(told.Now)}); err != nil {
		t.Fatalf("declare: %v", err)
	}
	return r
}

// claims makes claims of so many keys, named from the prefix.
func claims(due time.Time, prefix string, n int) []idempotency.Claim {
	c := make([]idempotency.Claim, n)
	for i := range c {
		c[i] = idempotency.Claim{ID: idempotency.ID{Job: job, Key: fmt.Sprintf("%s%04d", prefix, i), Due: due}, Hash: hash, Exclusive: true}
	}
	return c
}

// finishes makes finishes of what the claims won.
func finishes(c []idempotency.Claim, answers []idempotency.Answer) []idempotency.Finish {
	f := make([]idempotency.Finish, len(c))
	for i := range c {
		f[i] = idempotency.Finish{ID: c[i].ID, Fence: answers[i].Fence, Outcome: idempotency.Done, Attempt: 1}
	}
	return f
}

// wins claims, and wants all of it.
func (r *replica) wins(c []idempotency.Claim) []idempotency.Answer {
	r.t.Helper()
	r.nonce++
	answers, err := r.store.Claim(r.t.Context(), r.session, r.nonce, c)
	if err != nil {
		r.t.Fatalf("claim: %v", err)
	}
	for i, a := range answers {
		if a.Verdict != idempotency.Won {
			r.t.Fatalf("claim of %v: %+v, want won", c[i].ID, a)
		}
	}
	return answers
}

// ends finishes, and wants that to be news.
func (r *replica) ends(f []idempotency.Finish) {
	r.t.Helper()
	answers, err := r.store.Finish(r.t.Context(), namespace, f)
	if err != nil {
		r.t.Fatalf("finish: %v", err)
	}
	for i, a := range answers {
		if a != idempotency.Finished {
			r.t.Fatalf("finish of %v: answer %d, want finished", f[i].ID, a)
		}
	}
}

// works does once what a store is for.
func (r *replica) works(due time.Time, prefix string) {
	r.t.Helper()
	c := claims(due, prefix, 3)
	r.ends(finishes(c, r.wins(c)))
}

// list returns all rows of the namespace by key.
func list(t *testing.T, s storetest.Store) map[string]idempotency.Run {
	t.Helper()
	rows := make(map[string]idempotency.Run)
	for x, err := range s.List(t.Context(), idempotency.Filter{Namespace: namespace}) {
		if err != nil {
			t.Fatalf("list: %v", err)
		}
		rows[x.ID.Key] = x
	}
	return rows
}

// reckon demands of what was won and finished that it is there, done, once, under its fence, and that there is nothing else.
func reckon(t *testing.T, rows map[string]idempotency.Run, fences map[string]int64) (lost, double int) {
	t.Helper()
	for key, fence := range fences {
		x, found := rows[key]
		switch {
		case !found, x.State != idempotency.Ended, x.Outcome != idempotency.Done:
			lost++
		case x.Fence != fence, x.Crashes != 0:
			double++
		default:
			continue
		}
		t.Errorf("the row of %s is %+v, and fence %d was won and finished", key, x, fence)
	}
	for key, x := range rows {
		if _, known := fences[key]; !known {
			double++
			t.Errorf("nobody has won the row %+v", x)
		}
	}
	return lost, double
}

// call is one of the store's calls, whole and harmless.
type call struct {
	name string
	make func(ctx context.Context) error
}

// calls are all calls of a store.
func (r *replica) calls(due time.Time) []call {
	s, c := r.store, claims(due, "call", 1)
	return []call{
		{"OpenSession", func(ctx context.Context) error { _, _, err := s.OpenSession(ctx, opening("call")); return err }},
		{"RenewSession", func(ctx context.Context) error { _, err := s.RenewSession(ctx, r.session); return err }},
		{"CloseSession", func(ctx context.Context) error {
			return s.CloseSession(ctx, idempotency.Session{Namespace: namespace, ID: 1 << 40})
		}},
		{"MarkDead", func(ctx context.Context) error { return s.MarkDead(ctx, r.session, []int64{1 << 40}) }},
		{"Declare", func(ctx context.Context) error {
			_, err := s.Declare(ctx, r.session, 2, []idempotency.Declaration{declaration(r.told.Now)})
			return err
		}},
		{"Decide", func(ctx context.Context) error {
			_, err := s.Decide(ctx, r.session, 2, []idempotency.Decision{{
				Seen: idempotency.Entry{Definition: declaration(due).Definition}, Definition: declaration(due).Definition, Opened: due,
			}})
			return err
		}},
		{"Lagging", func(ctx context.Context) error { _, err := s.Lagging(ctx, r.session, everything(10)); return err }},
		{"Claim", func(ctx context.Context) error { _, err := s.Claim(ctx, r.session, 1<<40, c); return err }},
		{"Finish", func(ctx context.Context) error {
			_, err := s.Finish(ctx, namespace, []idempotency.Finish{{ID: c[0].ID, Fence: 1, Outcome: idempotency.Done}})
			return err
		}},
		{"Mine", func(ctx context.Context) error { _, err := s.Mine(ctx, r.session); return err }},
		{"Prune", func(ctx context.Context) error { _, err := s.Prune(ctx, r.session, 10); return err }},
		{"SavePass", func(ctx context.Context) error {
			_, err := s.SavePass(ctx, r.session, []idempotency.Pass{{Job: job, Due: due, Mine: []byte{1}, Finished: []byte{0}}})
			return err
		}},
		{"CloseDue", func(ctx context.Context) error { _, err := s.CloseDue(ctx, r.session, job, due, nil); return err }},
		{"List", func(ctx context.Context) error {
			for _, err := range s.List(ctx, idempotency.Filter{Namespace: namespace}) {
				if err != nil {
					return err
				}
			}
			return nil
		}},
		{"Ranges", func(ctx context.Context) error {
			for _, err := range s.Ranges(ctx, namespace, job) {
				if err != nil {
					return err
				}
			}
			return nil
		}},
	}
}
