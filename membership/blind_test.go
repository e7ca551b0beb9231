package membership

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// betweenDues waits for the middle of a second, when no judged handler runs.
func betweenDues() {
	now := time.Now()
	rest(now.Truncate(time.Second).Add(1500 * time.Millisecond).Sub(now))
}

// TestBlindReplica shuts one replica's way to the store, while gossip goes on (F13): it says that it is not ready,
// leaves the ring, and the others run what is its own, at most grace + 2 s late.
func TestBlindReplica(t *testing.T) {
	t.Parallel()
	bubble(t, seedsOr(t, 2), func(f *fleet) {
		const late = time.Second + 2*time.Second
		blind := f.ring(names(3)).Owner("plain") // a due comes before it has noticed
		var cut, heal time.Time
		s := f.work(3, func(s *shift) {
			betweenDues()
			cut = time.Now()
			s.stores[blind].Cut(true)
			took := f.agree(10*time.Second, f.all, without(names(3), []string{blind}))
			rest(30*time.Second - took)
			if err := s.crew[blind].Ready(); err == nil {
				f.Errorf("seed %d: %s sees no store and says that it is ready", f.seed, blind)
			} else {
				f.Logf("seed %d: it was left out after %s; it says: %v", f.seed, took, err)
			}
			betweenDues()
			heal = time.Now()
			s.stores[blind].Cut(false)
			f.Logf("seed %d: it owned again %s after the heal", f.seed, f.agree(merged, f.all, names(3)))
		})
		var worst time.Duration
		for _, c := range s.calls {
			if c.at.Before(cut) {
				continue
			}
			worst = max(worst, c.at.Sub(c.due))
			if c.replica == blind && c.at.Before(heal) {
				f.Errorf("seed %d: %s sees no store and ran what was due at %s", f.seed, blind, c.due)
			}
		}
		if worst > late {
			f.Errorf("seed %d: a run was %s late; %s is allowed", f.seed, worst, late)
		}
		f.Logf("seed %d: no run was more than %s late", f.seed, worst)
	})
}

// TestCutFromAll takes gossip and store from the replica that runs a long job (F14): it starts nothing, its handler's
// context ends at 0.7 of the lease, and another replica does the run.
func TestCutFromAll(t *testing.T) {
	t.Parallel()
	bubble(t, seedsOr(t, 2), func(f *fleet) {
		const lease, lasts, every = 2 * time.Second, 4 * time.Second, 20 * time.Second
		var mu sync.Mutex
		var cut, heal, ended time.Time
		done := map[int64]int{} // by due
		long := jobs.Job{Name: "long", Schedule: jobs.Every(every), Run: func(ctx context.Context, o jobs.Occurrence) error {
			select {
			case <-time.After(lasts):
				mu.Lock()
				defer mu.Unlock()
				done[o.Due.Unix()]++
				return nil
			case <-ctx.Done():
				mu.Lock()
				defer mu.Unlock()
				ended = time.Now()
				return ctx.Err()
			}
		}}
		alone := f.ring(names(4)).Owner(long.Name)
		others := without(names(4), []string{alone})
		s := f.work(4, func(s *shift) {
			due := time.Now().Truncate(every).Add(every)
			rest(time.Until(due) + 1500*time.Millisecond)
			cut = time.Now()
			at := slices.IndexFunc(f.all, func(c *Cluster) bool { return c.Self() == alone })
			rest := slices.Delete(slices.Clone(f.all), at, at+1)
			f.net.Split(addrs(f.all[at:at+1]), addrs(rest))
			s.stores[alone].Cut(true)
			f.agree(10*time.Second, rest, others)
			time.Sleep(time.Minute)
			betweenDues()
			heal = time.Now()
			f.net.Heal()
			s.stores[alone].Cut(false)
			f.agree(merged, f.all, names(4))
			mu.Lock()
			defer mu.Unlock()
			if n := done[due.Unix()]; n != 1 {
				f.Errorf("seed %d: the run that was cut off was done %d times", f.seed, n)
			}
		}, long)
		for _, c := range s.calls {
			if c.replica == alone && c.at.After(cut) && c.at.Before(heal) {
				f.Errorf("seed %d: %s is cut off and ran what was due at %s", f.seed, alone, c.due)
			}
		}
		if after := ended.Sub(cut); ended.IsZero() || after > lease*7/10 {
			f.Errorf("seed %d: the handler's context ended %s after the cut; %s is allowed", f.seed, after, lease*7/10)
		}
		f.Logf("seed %d: the handler's context ended %s after the cut", f.seed, ended.Sub(cut))
	})
}
