package ring

import (
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

// Every size up to 30 under one of the schemes.
func TestBalance(t *testing.T) {
	t.Parallel()
	for i, scheme := range schemes {
		for n := 1 + i; n <= 30; n += len(schemes) {
			r := mustNew(t, named(scheme, n), nil)
			most := 0
			for _, name := range r.Members() {
				most = max(most, len(r.Owned(name)))
			}
			if ratio := float64(most*n) / float64(r.Partitions()); ratio > 1.13 {
				t.Errorf("%s, %d members: max/mean %.3f, above 1.13", scheme, n, ratio)
			}
		}
	}
}

// moves is what one change from r to the ring of names costs, as a multiple of
// the ideal: the mean share of the larger of the two.
func moves(t *testing.T, r *Ring, names []string) float64 {
	t.Helper()
	to := mustNew(t, names, nil)
	n := max(len(names), len(r.members))
	return float64(len(Plan(r, to))*n) / float64(r.Partitions())
}

// A join or leave of one member of n moves at most 1.3 times the ideal share,
// whichever member it is.
func TestMovement(t *testing.T) {
	t.Parallel()
	const single, most = 1.3, 10
	for _, scheme := range schemes {
		for _, n := range []int{2, 3, 10, 20, 30} {
			names := named(scheme, n)
			r := mustNew(t, names, nil)
			sum, count := 0.0, 0
			for i := 0; i < n; i += max(1, n/most) {
				// What i moves when it leaves r is what it moves when it joins rest.
				rest := slices.Delete(slices.Clone(names), i, i+1)
				m := moves(t, r, rest)
				sum, count = sum+m, count+1
				if m > single {
					t.Errorf("%s: a leave of %s from %d moves %.2f x ideal, above %v", scheme, names[i], n, m, single)
				}
			}
			got := sum / float64(count)
			t.Logf("%s, %d members: a join or leave moves %.2f x ideal on average", scheme, n, got)
		}
	}
}

// Rank 1 hedges for the owner, so it should be who owns the partition once the
// owner has left.
func TestRankOneInherits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n    int
		want float64
	}{{2, 1}, {3, 0.97}, {10, 0.95}, {30, 0.92}} {
		for _, scheme := range schemes {
			names := named(scheme, c.n)
			r := mustNew(t, names, nil)
			hit, total := 0, 0
			for i, name := range names[:min(c.n, 4)] {
				left := mustNew(t, slices.Delete(slices.Clone(names), i, i+1), nil)
				for _, p := range r.Owned(name) {
					total++
					if rankOne(r, p) == left.at(p) {
						hit++
					}
				}
			}
			got := float64(hit) / float64(total)
			t.Logf("%s, %d members: rank 1 inherits %.1f %% of its owner's partitions", scheme, c.n, 100*got)
			if got < c.want {
				t.Errorf("%s, %d members: rank 1 inherits %.3f of its owner's partitions, below %v", scheme, c.n, got, c.want)
			}
		}
	}
}

// rankOne is the first successor at partition p.
func rankOne(r *Ring, p int) string {
	var second string
	rank := 0
	r.walk(p, make([]int, len(r.members)), func(m int) bool {
		second = r.members[m]
		rank++
		return rank < 2
	})
	return second
}

// Readers go on while rings are built and swapped under them. A ring is
// published through an atomic pointer, and New touches nothing of the old one:
// each answer is wholly that of the ring a reader holds.
func TestRebuildBlocksNoReader(t *testing.T) {
	t.Parallel()
	const builds = 10
	sets := [2][]string{named("node-%d", 20), named("node-%d", 21)}
	keys := named("customer-%d", 256)
	owners := map[string][]string{} // by fingerprint
	for _, names := range sets {
		r := mustNew(t, names, nil)
		for _, key := range keys {
			owners[r.Fingerprint()] = append(owners[r.Fingerprint()], r.Owner(key))
		}
	}
	var current atomic.Pointer[Ring]
	current.Store(mustNew(t, sets[0], nil))
	var lookups atomic.Int64
	var stop atomic.Bool
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			for i := 0; !stop.Load(); i++ {
				r, k := current.Load(), i%len(keys)
				if got, want := r.Owner(keys[k]), owners[r.Fingerprint()][k]; got != want {
					t.Errorf("owner of %s is %q in the midst of a rebuild, want %q", keys[k], got, want)
					return
				}
				lookups.Add(1)
			}
		})
	}
	during := int64(0)
	for i := range builds {
		before := lookups.Load()
		next := mustNew(t, sets[(i+1)%2], nil)
		during += lookups.Load() - before
		current.Store(next)
	}
	stop.Store(true)
	wg.Wait()
	t.Logf("%d look-ups while %d rings were built", during, builds)
	if during < builds {
		t.Errorf("%d look-ups while %d rings were built: a build holds readers up", during, builds)
	}
}
