package membership

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/simnet"
)

// moreSeeds is how many seeds the costly tests of large clusters and bad networks run; 0: their own few.
var moreSeeds = flag.Int("membership.seeds", 0, "seeds of the costly tests in bubbles; 0: the few of the default run")

func seeds(few int) int {
	if *moreSeeds > 0 {
		return *moreSeeds
	}
	return few
}

// badLink is a link with that loss, and with delays, duplicates and packets that overtake each other.
func badLink(loss float64, least, most time.Duration) simnet.Impairment {
	return simnet.Impairment{Loss: loss, Duplicate: 0.05, DelayMin: least, DelayMax: most}
}

const (
	short, shortMost = 40 * time.Millisecond, 60 * time.Millisecond
	long, longMost   = 50 * time.Millisecond, 500 * time.Millisecond
)

// TestLoss lets ten minutes pass on a bad network (F16). Profile LAN must take nobody for dead at 20 % loss; where
// removals are allowed, they are printed, and all must agree again once the network is good.
func TestLoss(t *testing.T) {
	t.Parallel()
	const allowed = true
	for _, c := range []struct {
		profile Profile
		n       int
		link    simnet.Impairment
		seeds   int
		flaps   bool
	}{
		{LAN, 5, badLink(0.01, short, shortMost), 2, !allowed},
		{LAN, 5, badLink(0.05, short, shortMost), 2, !allowed},
		{LAN, 5, badLink(0.20, short, shortMost), 4, !allowed},
		{LAN, 20, badLink(0.20, short, shortMost), 2, !allowed},
		{LAN, 5, badLink(0.05, long, longMost), 2, allowed},
		{LAN, 5, badLink(0.20, long, longMost), 2, allowed},
		{LAN, 5, badLink(0.40, short, shortMost), 2, allowed},
		{LAN, 20, badLink(0.40, short, shortMost), 1, allowed},
		{LAN, 5, badLink(0.40, long, longMost), 2, allowed},
		{Fast, 5, badLink(0.05, 0, 0), 2, allowed},
		{Fast, 5, badLink(0.20, 0, 0), 2, allowed},
		{Fast, 20, badLink(0.20, 0, 0), 1, allowed},
		{Fast, 5, badLink(0.05, short, shortMost), 2, allowed},
		{Fast, 5, badLink(0.20, short, shortMost), 2, allowed},
		{Fast, 5, badLink(0.05, long, longMost), 2, allowed},
	} {
		name := fmt.Sprintf("%v %d loss %.0f%% delay %s-%s", c.profile, c.n, 100*c.link.Loss, c.link.DelayMin, c.link.DelayMax)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, seeds(c.seeds), func(f *fleet) {
				all := f.serve(c.n, c.profile)
				f.net.Impair(c.link)
				const lasts = 10 * time.Minute
				removed, apart := f.removals(all, lasts)
				f.Logf("seed %d: %s: %d removals, %s with somebody missing somewhere", f.seed, name, removed, apart)
				if removed > 0 && !c.flaps {
					f.Errorf("seed %d: %d false removals in %s; repeat with -run '%s'", f.seed, removed, lasts, f.Name())
				}
				f.net.Impair(simnet.Impairment{})
				f.Logf("seed %d: agreed %s after the network was good", f.seed, f.agree(merged, all, names(c.n)))
			})
		})
	}
}

// removals counts how often one member takes another that lives for dead while d passes, and how long anybody's list
// lacks somebody.
func (f *fleet) removals(cs []*Cluster, d time.Duration) (n int, apart time.Duration) {
	const step = quiet // no two snapshots are nearer to each other
	last := make([]*snapshot, len(cs))
	for i, c := range cs {
		last[i] = c.view.snapshot()
	}
	for range d / step {
		time.Sleep(step)
		missing := false
		for i, c := range cs {
			s := c.view.snapshot()
			if s != last[i] {
				n += gone(last[i], s)
				last[i] = s
			}
			missing = missing || len(s.members) < len(cs)
		}
		if missing {
			apart += step
		}
	}
	return n, apart
}

// gone counts the processes that a later snapshot lacks.
func gone(before, after *snapshot) int {
	n := 0
	for _, m := range before.members {
		if find(after.members, m.Boot).Boot == "" {
			n++
		}
	}
	return n
}
