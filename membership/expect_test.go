package membership

import (
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestExpect holds replicas back until there are three of them: nobody owns before, nobody counts them as owners, and
// all say why. Then all serve at once, and a later loss does not hold anybody back again.
func TestExpect(t *testing.T) {
	t.Parallel()
	bubble(t, 3, func(f *fleet) {
		a := f.join(Config{Name: letter(0), Expect: 3})
		f.announce(a, Serving)
		b := f.join(Config{Name: letter(1), Expect: 3, Seeds: addrs(f.all)})
		f.announce(b, Serving)
		time.Sleep(5 * time.Second)
		f.agree(0, f.all, nil)
		for _, c := range f.all {
			for _, m := range c.Members() {
				if m.State != Joining || !strings.Contains(m.Reason, "3 replicas") {
					f.Errorf("seed %d: %s sees %v", f.seed, c.Self(), m)
				}
			}
			if !strings.Contains(c.Reason(), "3 replicas") {
				f.Errorf("%s says %q", c.Self(), c.Reason())
			}
		}
		c := f.join(Config{Name: letter(2), Expect: 3, Seeds: addrs(f.all[:1])})
		f.agree(2*time.Second, f.all, names(2))
		f.announce(c, Serving)
		f.agree(2*time.Second, f.all, names(3))
		f.crash(c)
		f.agree(5*time.Second, f.all, names(2))
	})
}

// TestExpectGivesUp owns in the end without the others, says so, and drains as it should before.
func TestExpectGivesUp(t *testing.T) {
	t.Parallel()
	bubble(t, 1, func(f *fleet) {
		var logged syncBuffer
		a := f.join(Config{Name: "a", Expect: 2, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		b := f.join(Config{Name: "b", Expect: 9, Seeds: addrs(f.all)})
		f.close(b)
		f.all = f.all[:1]
		f.announce(a, Serving)
		f.agree(time.Second, f.all, []string{"a"}) // it has seen two

		c := f.join(Config{Name: "c", Expect: 3, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		f.announce(c, Serving)
		begun := time.Now()
		f.agree(expectMost+time.Second, []*Cluster{c}, []string{"c"})
		if d := time.Since(begun); d < expectMost-time.Second {
			f.Errorf("gave up after %s", d)
		}
		if s := logged.String(); !strings.Contains(s, "fewer replicas than expected") {
			f.Errorf("logged: %s", s)
		}
	})
}

// TestExpectTogether lets all of them own at once: none owns everything for a moment, because it let itself go before it had
// heard of the others.
func TestExpectTogether(t *testing.T) {
	t.Parallel()
	bubble(t, 5, func(f *fleet) {
		var seeds []string
		for i := range 3 {
			c := f.join(Config{Name: letter(i), Expect: 3, Seeds: seeds})
			f.announce(c, Serving)
			seeds = []string{c.Addr()}
		}
		f.within(3*time.Second, "all own", func() bool {
			whole := 0
			for _, c := range f.all {
				switch o := owners(c); {
				case len(o) == 3:
					whole++
				case len(o) > 0:
					f.Fatalf("seed %d: %s sees %v", f.seed, c.Self(), o)
				}
			}
			return whole == 3
		})
	})
}

// TestExpectHoldsAll holds back whatever was announced: where nobody serves, the unfit and then the draining own, and a fleet
// whose store is away at its start would be as many clusters as it has replicas.
func TestExpectHoldsAll(t *testing.T) {
	t.Parallel()
	bubble(t, 1, func(f *fleet) {
		a := f.join(Config{Name: "a", Expect: 3})
		b := f.join(Config{Name: "b", Expect: 3, Seeds: addrs(f.all)})
		if err := a.Announce(f.Context(), "unfit", "layout", "no store", nil); err != nil {
			f.Fatal(err)
		}
		f.announce(b, Draining)
		time.Sleep(time.Second)
		f.agree(0, f.all, nil)
		if m := find(b.Members(), a.Boot()); m.State != Joining || m.Reason != "no store" {
			f.Errorf("a is %v", m)
		}
		time.Sleep(expectMost)
		f.agree(time.Second, f.all, []string{"a"})
	})
}
