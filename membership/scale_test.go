package membership

import (
	"slices"
	"sync"
	"testing"
	"time"
)

const (
	hundred = 100
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

// TestHundred makes each single change to a cluster of a hundred, and waits until all have one ring.
func TestHundred(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		profile Profile
	}{{"Fast", Fast}, {"LAN", LAN}} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, seeds(1), func(f *fleet) {
				begun := time.Now()
				f.boot(hundred, c.profile)
				f.Logf("seed %d: %s: a hundred have joined and agree after %s", f.seed, c.name, time.Since(begun))
				f.changeEach(c.name, c.profile)
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
	remove := func(c *Cluster) {
		f.all = slices.DeleteFunc(f.all, func(o *Cluster) bool { return o == c })
	}
	for _, c := range []struct {
		name string
		do   func() (want []string)
	}{
		{"a join", func() []string {
			f.announce(joiner("new"), Serving)
			return append(names(hundred), "new")
		}},
		{"a graceful leave", func() []string {
			c := f.all[hundred]
			remove(c)
			f.close(c)
			return all
		}},
		{"draining", func() []string {
			f.announce(f.all[last], Draining)
			return all[:last]
		}},
		{"serving again", func() []string {
			f.announce(f.all[last], Serving)
			return all
		}},
		{"unfit", func() []string {
			f.announce(f.all[last], Unfit)
			return all[:last]
		}},
		{"fit again", func() []string {
			f.announce(f.all[last], Serving)
			return all
		}},
		{"a restart under the same name", func() []string {
			f.crash(f.all[last])
			f.announce(joiner(letter(last)), Serving)
			return all
		}},
		{"a crash", func() []string {
			f.crash(f.all[last])
			return all[:last]
		}},
	} {
		time.Sleep(5 * time.Second)
		begun := time.Now()
		f.agreeRing(oneRing, f.all, c.do())
		f.Logf("seed %d: %s: %s: one ring after %s", f.seed, name, c.name, time.Since(begun))
		if took := time.Since(begun); took > oneRing {
			f.Errorf("seed %d: %s took %s", f.seed, c.name, took)
		}
	}
}
