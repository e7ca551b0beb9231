package storetest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// Upkeep is one empty store for one subtest of RunUpkeep. Its Store has the method DropNamespace.
type Upkeep struct {
	Harness

	// Repartition is the driver's function of that name, on the same data.
	Repartition func(ctx context.Context, namespace string, partitions int) error
}

// RunUpkeep tests what an operator does to a store while its replicas are stopped, for drivers that can: another number of
// partitions, and dropping a namespace. The subtests run in parallel.
func RunUpkeep(t *testing.T, open func(t *testing.T) Upkeep) {
	for _, l := range []struct {
		name string
		test func(b *bundle, u Upkeep)
	}{
		{"RefusedWhileInUse", refusedWhileInUse},
		{"RefusedBadPartitions", refusedBadPartitions},
		{"LapsedSessionIsNoUse", lapsedSessionIsNoUse},
		{"SplitPartitionsStayFinished", splitPartitionsStayFinished},
		{"MergedPartitionsFinishTogether", mergedPartitionsFinishTogether},
		{"RunsOutliveRepartition", runsOutliveRepartition},
		{"DropLeavesNothing", dropLeavesNothing},
		{"DropLeavesOthers", dropLeavesOthers},
	} {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			var u Upkeep
			hold(t, func(t *testing.T) Harness {
				u = open(t)
				return u.Harness
			}, law{l.name, func(b *bundle) { l.test(b, u) }})
		})
	}
}

func (b *bundle) drop(ns string) error {
	b.Helper()
	d, ok := b.Store.(interface {
		DropNamespace(ctx context.Context, namespace string) error
	})
	if !ok {
		b.Fatal("the store has no DropNamespace")
	}
	return d.DropNamespace(b.Context(), ns)
}

func (b *bundle) repartition(u Upkeep, p int) {
	b.Helper()
	if err := u.Repartition(b.Context(), namespace, p); err != nil {
		b.Fatalf("repartition to %d: %v", p, err)
	}
}

// with opens a session that expects so many partitions.
func (b *bundle) with(p int) *replica {
	b.Helper()
	return b.ready("again", "h1", func(o *idempotency.Opening) { o.Partitions = p })
}

// union is the finished bits of the only open due, of a replica with that many partitions.
func (r *replica) union(p int) []byte {
	r.Helper()
	everywhere := make([]byte, (p+7)/8)
	for i := range p {
		everywhere[i/8] |= 1 << (i % 8)
	}
	open := r.lag(idempotency.LagQuery{Ranks: [][]byte{everywhere}}).Open
	if len(open) != 1 {
		r.Fatalf("%d open dues, want one", len(open))
	}
	return open[0].Finished
}

// Two layouts at once would give a key two owners, and rows that are gone would be written anew.
func refusedWhileInUse(b *bundle, u Upkeep) {
	a, z := b.ready("a", "h1"), b.ready("z", "h1")
	a.close()
	for name, err := range map[string]error{
		"repartition": u.Repartition(b.Context(), namespace, 2*partitions),
		"drop":        b.drop(namespace),
	} {
		if !errors.Is(err, idempotency.ErrRefused) || !strings.Contains(err.Error(), `"z"`) {
			b.Errorf("%s of a namespace in use: %v, want a refusal that names replica z", name, err)
		}
	}
	z.opens(b.ago(time.Minute)) // as if nothing had been asked
	z.close()
	b.repartition(u, 2*partitions)
	if err := b.drop(namespace); err != nil {
		b.Errorf("drop when all have stopped: %v", err)
	}
}

func refusedBadPartitions(b *bundle, u Upkeep) {
	b.ready("a", "h1").close()
	for _, p := range []int{-1, 0, 3, 1 << 17} {
		if err := u.Repartition(b.Context(), namespace, p); err == nil {
			b.Errorf("%d partitions were taken", p)
		}
	}
	if err := u.Repartition(b.Context(), "nobody", partitions); err == nil || !strings.Contains(err.Error(), "nobody") {
		b.Errorf("of a namespace that is not there: %v", err)
	}
	if err := b.drop("nobody"); err != nil {
		b.Errorf("drop of a namespace that is not there: %v", err)
	}
	if err := b.drop("no body"); err == nil {
		b.Error("a namespace that is no name was dropped")
	}
	b.with(partitions)
}

// A replica that crashed is in the way until its lease has ended, and not longer.
func lapsedSessionIsNoUse(b *bundle, u Upkeep) {
	r := b.ready("a", "h1", b.brief)
	r.lapse()
	b.repartition(u, 2*partitions)
	if _, err := r.store.RenewSession(b.Context(), r.session); !errors.Is(err, idempotency.ErrSessionDead) {
		b.Errorf("the lapsed session renews: %v", err)
	}
	b.with(2 * partitions)
}

// What was settled in a partition is so in each of its parts.
func splitPartitionsStayFinished(b *bundle, u Upkeep) {
	a, z := b.ready("a", "h1"), b.ready("z", "h1")
	due := b.ago(time.Minute)
	a.opens(due)
	a.save(idempotency.Pass{Job: keyed, Due: due, Mine: bitmap(0, 1, 2), Finished: bitmap(0, 2), Keys: 2})
	z.save(idempotency.Pass{Job: keyed, Due: due, Mine: bitmap(5), Finished: bitmap(5), Keys: 1})
	a.close()
	z.close()
	b.repartition(u, 2*partitions)
	b.repartition(u, 2*partitions) // to what it is already
	r := b.with(2 * partitions)
	part := bitmap(0, 2, 5)[0]
	want(b.T, "finished", string(r.union(2*partitions)), string([]byte{part, part}))
	want(b.T, "closed", r.closes(due, nil), false)
	r.save(idempotency.Pass{Job: keyed, Due: due, Finished: []byte{^part, 0}})
	want(b.T, "closed with half of the rest", r.closes(due, nil), false)
	r.save(idempotency.Pass{Job: keyed, Due: due, Finished: []byte{0, ^part}})
	want(b.T, "closed with all", r.closes(due, nil), true)
}

// Of partitions that merge the whole is settled where all were, whoever did it.
func mergedPartitionsFinishTogether(b *bundle, u Upkeep) {
	a, z := b.ready("a", "h1"), b.ready("z", "h1")
	due := b.ago(time.Minute)
	a.opens(due)
	a.save(idempotency.Pass{Job: keyed, Due: due, Mine: bitmap(0, 1, 2), Finished: bitmap(0, 1, 2)})
	z.save(idempotency.Pass{Job: keyed, Due: due, Mine: bitmap(4, 5), Finished: bitmap(4, 7)})
	a.close()
	z.close()
	b.repartition(u, 4)
	r := b.with(4)
	want(b.T, "finished", string(r.union(4)), string(bitmap(0)))
	r.save(idempotency.Pass{Job: keyed, Due: due, Finished: bitmap(1, 2, 3)})
	want(b.T, "closed with all", r.closes(due, nil), true)
}

// Nothing else depends on the number: what was done stays done, what runs is taken up.
func runsOutliveRepartition(b *bundle, u Upkeep) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	won := r.wins(r.insert("done", due))
	b.finishes(idempotency.Finished, done(key("done", due), won.Fence))
	orphan := r.wins(r.insert("orphan", due))
	r.close()
	b.repartition(u, 1)
	again := b.with(1)
	again.gets(idempotency.Taken, again.insert("done", due))
	if up := again.wins(again.takeUp(key("orphan", due), orphan.Fence)); up.Fence <= orphan.Fence {
		b.Errorf("the take-up's fence is %d, not above %d", up.Fence, orphan.Fence)
	}
}

func dropLeavesNothing(b *bundle, u Upkeep) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	r.save(idempotency.Pass{Job: keyed, Due: due, Finished: bitmap(1, 2)})
	before := r.wins(r.insert("k", due))
	d := r.decision(plain)
	d.Ranges = []idempotency.Range{{Job: plain, From: due, To: due, Count: 1, Outcome: idempotency.Skipped, Reason: "paused"}}
	want(b.T, "decided", r.decide(d).Won, true)
	if _, ok := b.Store.(idempotency.Leaders); ok {
		r.leads(0, "nobody led before")
	}
	r.close()
	if err := b.drop(namespace); err != nil {
		b.Fatalf("drop: %v", err)
	}
	if n := len(b.list(idempotency.Filter{Namespace: namespace})) + len(b.ranges("")); n > 0 {
		b.Errorf("%d rows are left", n)
	}
	_, err := r.store.RenewSession(b.Context(), r.session)
	if !errors.Is(err, idempotency.ErrSessionDead) {
		b.Errorf("a session of before renews: %v", err)
	}
	b.finishes(idempotency.Fenced, done(key("k", due), before.Fence))
	b.nobodyLeads()
	again := b.with(2 * partitions) // a new namespace
	again.opens(due)
	if f := again.union(2 * partitions); string(f) != string(make([]byte, 2)) {
		b.Errorf("finished is %08b at the start", f)
	}
	if after := again.wins(again.insert("k", due)); after.Fence <= before.Fence {
		b.Errorf("the fence went back from %d to %d", before.Fence, after.Fence)
	}
}

func dropLeavesOthers(b *bundle, u Upkeep) {
	b.ready("a", "h1").close()
	other := b.ready("z", "h1", func(o *idempotency.Opening) { o.Namespace = "other" })
	due := b.ago(time.Minute)
	other.opens(due)
	won := other.wins(other.insert("k", due))
	if err := b.drop(namespace); err != nil {
		b.Fatalf("drop: %v", err)
	}
	b.ready("a", "h1").close()
	b.repartition(u, 2*partitions)
	want(b.T, "the other's open dues", len(other.lag(all()).Open), 1)
	other.gets(idempotency.Taken, other.insert("k", due))
	answers, err := b.Store.Finish(b.Context(), "other", []idempotency.Finish{done(key("k", due), won.Fence)})
	if err != nil || answers[0] != idempotency.Finished {
		b.Errorf("finish in the other: %v %v", answers, err)
	}
}
