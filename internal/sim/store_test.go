package sim_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/sim"
	"github.com/belfry-go/belfry/internal/sim/oracle"
)

// Stores with a bug each. The oracle must find every one of them: else it
// would not find it in the product either.

type store = idempotency.Store

// fenceless forgets to compare the fence of a finish.
type fenceless struct{ store }

func (s fenceless) Finish(ctx context.Context, ns string, f []idempotency.Finish) ([]idempotency.FinishAnswer, error) {
	f = slices.Clone(f)
	for run, err := range s.store.(idempotency.History).List(ctx, idempotency.Filter{Namespace: ns}) {
		if err != nil {
			return nil, err
		}
		for i := range f {
			if f[i].ID.Job == run.ID.Job && f[i].ID.Key == run.ID.Key && f[i].ID.Due.Equal(run.ID.Due) && run.State == idempotency.Running {
				f[i].Fence = run.Fence
			}
		}
	}
	return s.store.Finish(ctx, ns, f)
}

// endless has no horizon.
type endless struct{ store }

func (s endless) OpenSession(ctx context.Context, o idempotency.Opening) (idempotency.Session, idempotency.Renewal, error) {
	o.Horizon, o.Retention = 1000*time.Hour, 1001*time.Hour
	return s.store.OpenSession(ctx, o)
}

// undead answers the claims of a dead session as won.
type undead struct {
	store
	fence *int64
}

func (s undead) Claim(ctx context.Context, x idempotency.Session, nonce int64, c []idempotency.Claim) ([]idempotency.Answer, error) {
	a, err := s.store.Claim(ctx, x, nonce, c)
	if !errors.Is(err, idempotency.ErrSessionDead) {
		return a, err
	}
	for range c {
		*s.fence++
		a = append(a, idempotency.Answer{Verdict: idempotency.Won, Fence: *s.fence})
	}
	return a, nil
}

// hasty counts partitions as finished when a pass over them begins.
type hasty struct{ store }

func (s hasty) SavePass(ctx context.Context, x idempotency.Session, p []idempotency.Pass) ([]idempotency.Verdict, error) {
	p = slices.Clone(p)
	for i := range p {
		p[i].Finished = p[i].Mine
	}
	return s.store.SavePass(ctx, x, p)
}

// lazy marks no session dead.
type lazy struct{ store }

func (lazy) MarkDead(context.Context, idempotency.Session, []int64) error { return nil }

// lenient renews lapsed sessions.
type lenient struct{ store }

func (s lenient) RenewSession(ctx context.Context, x idempotency.Session) (idempotency.Renewal, error) {
	r, err := s.store.RenewSession(ctx, x)
	if errors.Is(err, idempotency.ErrSessionDead) {
		return idempotency.Renewal{}, nil
	}
	return r, err
}

// unsynced answers every fiftieth batch of finishes and forgets it.
type unsynced struct {
	store
	n *int
}

func (s unsynced) Finish(ctx context.Context, ns string, f []idempotency.Finish) ([]idempotency.FinishAnswer, error) {
	if *s.n++; *s.n%50 != 0 {
		return s.store.Finish(ctx, ns, f)
	}
	return slices.Repeat([]idempotency.FinishAnswer{idempotency.Finished}, len(f)), nil
}

// generous lets two claimers win.
type generous struct {
	store
	fence *int64
}

func (s generous) Claim(ctx context.Context, x idempotency.Session, nonce int64, c []idempotency.Claim) ([]idempotency.Answer, error) {
	a, err := s.store.Claim(ctx, x, nonce, c)
	for i := range a {
		if a[i].Verdict == idempotency.Taken && !c[i].TakeUp {
			*s.fence++
			a[i] = idempotency.Answer{Verdict: idempotency.Won, Fence: *s.fence}
		}
	}
	return a, err
}

// forgiving counts no crashes.
type forgiving struct{ store }

func (s forgiving) Claim(ctx context.Context, x idempotency.Session, nonce int64, c []idempotency.Claim) ([]idempotency.Answer, error) {
	a, err := s.store.Claim(ctx, x, nonce, c)
	for i := range a {
		a[i].Crashes = 0
	}
	return a, err
}

// coarse gives out its fences by the thousand.
type coarse struct{ store }

func (s coarse) Claim(ctx context.Context, x idempotency.Session, nonce int64, c []idempotency.Claim) ([]idempotency.Answer, error) {
	a, err := s.store.Claim(ctx, x, nonce, c)
	for i := range a {
		a[i].Fence = a[i].Fence/1000 + 1
	}
	return a, err
}

// absent loses the newest due of an opening.
type absent struct{ store }

func (s absent) Decide(ctx context.Context, x idempotency.Session, nonce int64, d []idempotency.Decision) ([]idempotency.Decided, error) {
	d = slices.Clone(d)
	for i := range d {
		if n := len(d[i].Run); n > 1 {
			d[i].Run, d[i].Claim = d[i].Run[:n-1], min(d[i].Claim, n-1)
		}
	}
	return s.store.Decide(ctx, x, nonce, d)
}

// shut closes every due at once.
type shut struct{ store }

func (s shut) CloseDue(context.Context, idempotency.Session, string, time.Time, *idempotency.Range) (bool, error) {
	return true, nil
}

// crowd tells each session that it leads.
type crowd struct {
	store
	idempotency.Leaders
}

func (s crowd) Lead(ctx context.Context, x idempotency.Session, term int64) (idempotency.Leader, error) {
	l, err := s.Leaders.Lead(ctx, x, term)
	l.Session, l.Until = x.ID, time.Time{}
	return l, err
}

// termless forgets the term of a claim.
type termless struct {
	store
	idempotency.Leaders
}

func (s termless) Claim(ctx context.Context, x idempotency.Session, nonce int64, c []idempotency.Claim) ([]idempotency.Answer, error) {
	c = slices.Clone(c)
	for i := range c {
		c[i].Term = 0
	}
	return s.store.Claim(ctx, x, nonce, c)
}

// TestBrokenStores lets clusters live on each of them until a law is broken.
func TestBrokenStores(t *testing.T) {
	t.Parallel()
	kinds := func(names string) sim.Fault {
		f, err := sim.ParseFault(names)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	bugs := []struct {
		name   string
		wrap   func(store) store
		faults string // that provoke it
		law    string
	}{
		{"fenceless", func(s store) store { return fenceless{s} }, "blind,freeze,late,long", "I4"},
		{"endless", func(s store) store { return endless{s} }, "jam,failingsource,outage", "horizon or I2"}, // a late first claim, or a due that stays open
		{"undead", func(s store) store { return undead{s, new(int64)} }, "freeze,late,blind", "I4"},
		{"hasty", func(s store) store { return hasty{s} }, "slow", "open"},
		{"lazy", func(s store) store { return lazy{s} }, "kill,long", "I2"},
		{"lenient", func(s store) store { return lenient{s} }, "freeze,late", "I4"},
		{"unsynced", func(s store) store { return unsynced{s, new(int)} }, "slow", "I"},
		{"generous", func(s store) store { return generous{s, new(int64)} }, "view,slow", "I"},
		{"forgiving", func(s store) store { return forgiving{s} }, "kill,poison,long", "I10"},
		{"coarse", func(s store) store { return coarse{s} }, "slow", "I3"},
		{"absent", func(s store) store { return absent{s} }, "down", "I2"},
		{"crowd", func(s store) store { return crowd{s, s.(idempotency.Leaders)} }, "leader", "term"},
		{"termless", func(s store) store { return termless{s, s.(idempotency.Leaders)} }, "leader", "I4"},
		{"shut", func(s store) store { return shut{s} }, "slow", "open"},
	}
	for _, b := range bugs {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(300) {
				_, err := sim.Explore(seed, sim.Options{Only: kinds(b.faults), Store: b.wrap})
				if err == nil {
					continue
				}
				v, ok := errors.AsType[oracle.Violation](err)
				if !ok || !slices.ContainsFunc(strings.Split(b.law, " or "), func(law string) bool { return strings.HasPrefix(v.Law, law) }) {
					t.Errorf("found as %v, want a violation of %s", err, b.law)
				}
				t.Logf("found by seed %d: %v", seed, err)
				return
			}
			t.Error("not found")
		})
	}
}
