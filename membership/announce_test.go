package membership

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// TestDrain shows that a draining member leaves the owners at once, its own list first, and is still a member.
func TestDrain(t *testing.T) {
	t.Parallel()
	bubble(t, 3, func(f *fleet) {
		all := f.serve(5, Fast)
		begun := time.Now()
		f.announce(all[4], Draining)
		f.agree(0, all[4:], names(4))
		f.agree(time.Second, all, names(4))
		f.Logf("draining seen by all after %s", time.Since(begun))
		if m := find(all[0].Members(), all[4].Boot()); m.State != Draining {
			f.Errorf("it is %v", m)
		}
		begun = time.Now()
		f.close(all[4])
		f.within(time.Second, "four members", func() bool { return len(all[0].Members()) == 4 })
		f.Logf("leaving seen after %s", time.Since(begun))
		if err := all[4].Announce(f.Context(), "serving", "", "", nil); err == nil {
			f.Error("a closed cluster took an announcement")
		}
	})
}

// TestUnfit shows that an unfit member is left out and comes back, and that all of them own when nobody is fit.
func TestUnfit(t *testing.T) {
	t.Parallel()
	bubble(t, 2, func(f *fleet) {
		all := f.serve(3, Fast)
		if err := all[1].Announce(f.Context(), "unfit", "layout", "store out of reach", nil); err != nil {
			f.Fatal(err)
		}
		f.agree(time.Second, all, []string{letter(0), letter(2)})
		if m := find(all[2].Members(), all[1].Boot()); m.Reason != "store out of reach" {
			f.Errorf("it says %q", m.Reason)
		}
		f.announce(all[1], Serving)
		f.agree(time.Second, all, names(3))
		for _, c := range all {
			f.announce(c, Unfit)
		}
		f.agree(time.Second, all, names(3))
	})
}

// TestJoining owns nothing before the first announcement, and empty lists are not filled by those who join.
func TestJoining(t *testing.T) {
	t.Parallel()
	bubble(t, 2, func(f *fleet) {
		a := f.join(Config{Name: "a"})
		b := f.join(Config{Name: "b", Seeds: []string{a.Addr()}})
		time.Sleep(time.Second)
		f.agree(0, f.all, nil)
		_, changed := a.Watch()
		f.announce(b, Serving)
		<-changed
		f.agree(time.Second, f.all, []string{"b"})
		if m := find(b.Members(), a.Boot()); m.State != Joining {
			f.Errorf("a is %v", m)
		}
	})
}

// TestLayout mixes two layouts: the one most hold owns, the others say why they do not.
func TestLayout(t *testing.T) {
	t.Parallel()
	bubble(t, 2, func(f *fleet) {
		all := f.serve(5, Fast)
		for i, c := range all[:2] {
			if err := c.Announce(f.Context(), "serving", "new", "", nil); err != nil {
				f.Fatal(err)
			}
			f.agree(time.Second, all, names(5)[i+1:])
		}
		if m := find(all[4].Members(), all[0].Boot()); m.State != Unfit || !strings.Contains(m.Reason, `"new" is not "layout", which 3 of 5`) {
			f.Errorf("it is %v", m)
		}
		if err := all[2].Announce(f.Context(), "serving", "new", "", nil); err != nil {
			f.Fatal(err)
		}
		f.agree(time.Second, all, names(3))
	})
}

// TestFacts reach the others; what does not fit is refused, and a reason is cut.
func TestFacts(t *testing.T) {
	t.Parallel()
	bubble(t, 1, func(f *fleet) {
		all := f.serve(2, Fast)
		facts := map[string]string{"store": "s1", "fence": "42"}
		if err := all[0].Announce(f.Context(), "serving", "layout", strings.Repeat("é", 200), facts); err != nil {
			f.Fatal(err)
		}
		facts["store"] = "changed by the caller"
		f.within(time.Second, "facts", func() bool {
			return maps.Equal(all[1].Facts()[letter(0)], map[string]string{"store": "s1", "fence": "42"})
		})
		all[1].Facts()[letter(0)]["store"] = "changed by a reader"
		if all[1].Facts()[letter(0)]["store"] != "s1" {
			f.Error("a reader changed the snapshot")
		}
		if r := find(all[1].Members(), all[0].Boot()).Reason; len(r) > maxReason || !strings.HasSuffix(r, "é…") {
			f.Errorf("reason of %d bytes: %q", len(r), r)
		}
		for name, err := range map[string]error{
			"state":  all[0].Announce(f.Context(), "joining", "", "", nil),
			"layout": all[0].Announce(f.Context(), "serving", strings.Repeat("l", 65), "", nil),
			"facts":  all[0].Announce(f.Context(), "serving", "", "", map[string]string{"k": strings.Repeat("v", 160)}),
		} {
			if err == nil {
				f.Errorf("bad %s was taken", name)
			}
		}
	})
}

// TestAnnounceDoesNotBlock beyond its context, and takes effect all the same.
func TestAnnounceDoesNotBlock(t *testing.T) {
	t.Parallel()
	bubble(t, 1, func(f *fleet) {
		all := f.serve(2, WAN)
		ctx, cancel := context.WithCancel(f.Context())
		cancel()
		begun := time.Now()
		if err := all[0].Announce(ctx, "draining", "layout", "", nil); !errors.Is(err, context.Canceled) {
			f.Errorf("got %v", err)
		}
		if d := time.Since(begun); d != 0 {
			f.Errorf("it took %s", d)
		}
		f.agree(10*time.Second, all, []string{letter(1)})
	})
}

// TestStores mixes two stores: the one that most use owns, the other says why it does not, and who ran longer wins a tie.
func TestStores(t *testing.T) {
	t.Parallel()
	bubble(t, 2, func(f *fleet) {
		all := f.serve(3, Fast)
		use := func(c *Cluster, store string) {
			f.Helper()
			if err := c.Announce(f.Context(), "serving", "layout", "", map[string]string{factStore: store}); err != nil {
				f.Fatal(err)
			}
		}
		use(all[0], "empty")
		use(all[1], "ours")
		use(all[2], "ours")
		f.agree(time.Second, all, names(3)[1:])
		f.within(time.Second, "the reason", func() bool {
			return !slices.ContainsFunc(all, func(c *Cluster) bool {
				m := find(c.Members(), all[0].Boot())
				return m.State != Unfit || !strings.Contains(m.Reason, `store "empty" is not "ours", which 2 of 3`)
			})
		})
		f.crash(all[1])
		f.agree(5*time.Second, f.all, names(1))
	})
}

// TestNewerAnnouncement is sent at once, also while an older one is still being spread, and is what all know in the end.
func TestNewerAnnouncement(t *testing.T) {
	t.Parallel()
	bubble(t, 3, func(f *fleet) {
		all := f.serve(10, LAN) // where spreading takes longest
		time.Sleep(10 * time.Second)
		for i := range 5 {
			older := make(chan error, 1)
			go func() {
				older <- all[0].Announce(f.Context(), "unfit", "layout", fmt.Sprint("older ", i), nil)
			}()
			time.Sleep(time.Duration(1+30*i) * time.Millisecond)
			begun := time.Now()
			reason := fmt.Sprint("newer ", i)
			if err := all[0].Announce(f.Context(), "unfit", "layout", reason, nil); err != nil {
				f.Fatal(err)
			}
			f.within(2*time.Second, "all know "+reason, func() bool {
				return !slices.ContainsFunc(all, func(c *Cluster) bool { return find(c.Members(), all[0].Boot()).Reason != reason })
			})
			f.Logf("seed %d: known by all after %s", f.seed, time.Since(begun))
			if err := <-older; err != nil {
				f.Error(err)
			}
			time.Sleep(5 * time.Second)
			if m := find(all[9].Members(), all[0].Boot()); m.Reason != reason {
				f.Errorf("seed %d: the older came back: %v", f.seed, m)
			}
		}
	})
}

// TestAnnounceBursts lets all announce up to three things each within 0.3 s, as when a store flaps: the last word of each is
// known to all within a second. memberlist's queue loses some of such a burst; repeats make up for it.
func TestAnnounceBursts(t *testing.T) {
	t.Parallel()
	const rounds = 40
	bubble(t, seedsOr(t, 1), func(f *fleet) {
		f.serve(6, Fast)
		rng := rand.New(rand.NewPCG(f.seed, 1))
		var worst time.Duration
		late := 0
		for round := range rounds {
			var begun, ended sync.WaitGroup
			want := map[string]string{}
			for _, c := range f.all {
				n, gap := 1+rng.IntN(3), time.Duration(1+rng.IntN(300))*time.Millisecond
				want[c.Boot()] = fmt.Sprintf("r%02d-%d", round, n-1)
				begun.Go(func() {
					for i := range n {
						ended.Go(func() {
							_ = c.Announce(context.Background(), "serving", "layout", fmt.Sprintf("r%02d-%d", round, i), nil)
						})
						time.Sleep(gap)
					}
				})
			}
			begun.Wait()
			took := f.within(time.Minute, "the last word of each is known", func() bool {
				return !slices.ContainsFunc(f.all, func(c *Cluster) bool {
					return slices.ContainsFunc(c.Members(), func(m Member) bool { return m.Reason != want[m.Boot] })
				})
			})
			ended.Wait()
			if worst = max(worst, took); took > told {
				late++
			}
			time.Sleep(3 * time.Second)
		}
		f.Logf("seed %d: %d bursts of 6, the worst known after %s, %d after more than %s", f.seed, rounds, worst, late, told)
		if late > 1 {
			f.Errorf("seed %d: %d of %d were known after more than %s", f.seed, late, rounds, told)
		}
	})
}
