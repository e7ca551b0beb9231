package membership

import (
	"math/rand/v2"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/simnet"
)

const (
	// oneRing is when a hundred members have one ring after any single change.
	oneRing = 25 * time.Second
)

// boot adds n serving members that all start at once, with the first as their seed.
func (f *fleet) boot(n int, p Profile) {
	f.Helper()
	var wg sync.WaitGroup
	defer wg.Wait()
	var seeds []string
	for i := range n {
		c := f.join(Config{Name: letter(i), Profile: p, Seeds: seeds})
		wg.Go(func() { f.announce(c, Serving) })
		if seeds == nil {
			seeds = []string{c.Addr()}
		}
	}
	f.agree(formed, f.all, names(n))
}

// disband closes all at once, as when a whole deployment is stopped. One after the other takes long in a large one.
func (f *fleet) disband() {
	var wg sync.WaitGroup
	for _, c := range f.all {
		wg.Go(func() { f.close(c) })
	}
	wg.Wait()
}

// TestHundred makes each single change to a cluster of a hundred, and waits until all have one ring.
func TestHundred(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		profile Profile
	}{{"Fast", Fast}, {"LAN", LAN}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, seedsOr(t, 1), func(f *fleet) {
				begun := time.Now()
				f.boot(hundred, c.profile)
				f.Logf("seed %d: %s: a hundred have joined and agree after %s", f.seed, c.name, time.Since(begun))
				f.changeEach(c.name, c.profile)
				f.disband()
			})
		})
	}
}

// changeEach makes the changes one after the other; the last members take part in them.
func (f *fleet) changeEach(name string, p Profile) {
	f.Helper()
	all := names(hundred)
	last := len(all) - 1
	joiner := func(name string) *Cluster { return f.join(Config{Name: name, Profile: p, Seeds: addrs(f.all[:1])}) }
	for _, c := range []struct {
		name     string
		fastOnly bool // unless by flag: with LAN it costs much and shows nothing new
		do       func() (want []string)
	}{
		{"a join", false, func() []string {
			f.announce(joiner("new"), Serving)
			return append(names(hundred), "new")
		}},
		{"a graceful leave", false, func() []string {
			f.leave(f.all[hundred])
			return all
		}},
		{"draining", false, func() []string {
			f.announce(f.all[last], Draining)
			return all[:last]
		}},
		{"serving again", false, func() []string {
			f.announce(f.all[last], Serving)
			return all
		}},
		{"unfit", true, func() []string {
			f.announce(f.all[last], Unfit)
			return all[:last]
		}},
		{"fit again", true, func() []string {
			f.announce(f.all[last], Serving)
			return all
		}},
		{"a restart under the same name", true, func() []string {
			f.crash(f.all[last])
			f.announce(joiner(letter(last)), Serving)
			return all
		}},
		{"a crash", false, func() []string {
			f.crash(f.all[last])
			return all[:last]
		}},
	} {
		if c.fastOnly && p != Fast && *moreSeeds == 0 {
			continue
		}
		rest(2 * time.Second)
		begun := time.Now()
		f.agreeRing(oneRing, f.all, c.do())
		f.Logf("seed %d: %s: %s: one ring after %s", f.seed, name, c.name, time.Since(begun))
		if took := time.Since(begun); took > oneRing {
			f.Errorf("seed %d: %s took %s", f.seed, c.name, took)
		}
	}
}

// told is when all have seen what one of them announced.
const told = time.Second

// TestToldAll lets a member announce something while another joins and announces itself, over and over: who is told
// late was missed by gossip, and waits for a push/pull, tens of seconds. One in a case may be: none of 20,000 was.
func TestToldAll(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		profile Profile
		n       int
		loss    float64
		rounds  int
		most    time.Duration
	}{
		{"Fast 5", Fast, 5, 0, 40, told},
		{"Fast 20", Fast, 20, 0.05, 5, told},
		{"LAN 5", LAN, 5, 0, 60, told},
		{"LAN 5, loss 20%", LAN, 5, 0.2, 60, told},
		{"LAN 20, loss 5%", LAN, 20, 0.05, 15, told},
		{"WAN 5", WAN, 5, 0, 40, 2 * told}, // its gossip ticks each half second
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, seedsOr(t, 1), func(f *fleet) {
				f.serve(c.n, c.profile)
				time.Sleep(10 * time.Second)
				f.net.Impair(simnet.Impairment{Loss: c.loss})
				var worst time.Duration
				late := 0
				for i := range c.rounds {
					took, last := f.tellAll(i, c.profile)
					if worst = max(worst, took); took > c.most {
						late++
						f.Logf("seed %d: round %d: after %s, last was %s", f.seed, i, took, last)
					}
					time.Sleep(2 * time.Second)
				}
				f.Logf("seed %d: %s: %d times all were told, after %s at most", f.seed, c.name, c.rounds, worst)
				if late > 1 {
					f.Errorf("seed %d: %d of %d were told after more than %s; repeat with -run '%s'", f.seed, late, c.rounds, c.most, f.Name())
				}
			})
		})
	}
}

// tellAll lets one member announce round, and another join up to 0.2 s before or after, and returns how long it takes
// from the join until everybody knows both, and who knew what last. The joiner leaves again.
func (f *fleet) tellAll(round int, p Profile) (took time.Duration, last string) {
	const span = 200 * time.Millisecond
	v := strconv.Itoa(round)
	tell := func(c *Cluster) {
		if err := c.Announce(f.Context(), "serving", "layout", "", map[string]string{"round": v}); err != nil {
			f.Error(err)
		}
	}
	old := f.all[rand.IntN(len(f.all))]
	seed := f.all[rand.IntN(len(f.all))].Addr()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		<-time.After(rand.N(2 * span))
		tell(old)
	})
	rest(span)
	joiner := f.join(Config{Name: "new", Profile: p, Seeds: []string{seed}})
	wg.Go(func() { tell(joiner) })
	begun := time.Now()
	waits := func(c *Cluster) bool {
		facts := c.Facts()
		for _, of := range []*Cluster{old, joiner} {
			if c != of && facts[of.Self()]["round"] != v {
				last = c.Self() + " of " + of.Self()
				return true
			}
		}
		return false
	}
	f.within(2*time.Minute, "all know the news", func() bool { return !slices.ContainsFunc(f.all, waits) })
	took = time.Since(begun)
	f.leave(joiner)
	return took, last
}
