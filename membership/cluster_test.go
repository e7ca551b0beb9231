package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/internal/simnet"
)

// members is what the scheduler asks of a membership; stated here too, since neither package imports the other.
type members interface {
	Self() string
	Watch() (owners []string, changed <-chan struct{})
	Announce(ctx context.Context, state, layout, reason string, facts map[string]string) error
	Facts() map[string]map[string]string
}

var (
	_ members = (*Cluster)(nil)
	_ members = (*Static)(nil)
)

// TestLostAreCalled takes the seed away before the split, so that only the memory of lost peers can merge it; the
// seed said goodbye and is forgotten.
func TestLostAreCalled(t *testing.T) {
	t.Parallel()
	bubble(t, 3, func(f *fleet) {
		all := f.serve(6, Fast)
		f.close(all[0])
		rest, want := all[1:], names(6)[1:]
		f.agree(5*time.Second, rest, want)
		f.net.Split(addrs(rest[:2]), addrs(rest[2:]))
		f.agree(time.Minute, rest[:2], want[:2])
		f.agree(time.Minute, rest[2:], want[2:])
		time.Sleep(2 * time.Minute)
		f.net.Heal()
		f.Logf("merged %s after the heal", f.agree(merged, rest, want))
		for _, c := range rest {
			if _, lost := c.view.targets(); len(lost) > 0 {
				f.Errorf("%s still calls %v", c.Self(), lost)
			}
		}
	})
}

// close closes one member.
func (f *fleet) close(c *Cluster) {
	f.Helper()
	begun := time.Now()
	if err := c.Close(); err != nil {
		f.Error(err)
	}
	if took := time.Since(begun); took > closeMost {
		f.Errorf("Close took %s", took)
	}
}

// leave closes one member, which the others go on without.
func (f *fleet) leave(c *Cluster) {
	f.Helper()
	f.all = slices.DeleteFunc(f.all, func(o *Cluster) bool { return o == c })
	f.close(c)
}

// crash kills one member: its process is gone, without a word.
func (f *fleet) crash(c *Cluster) {
	f.net.Kill(c.Addr())
	f.leave(c)
}

// TestBornApart starts a member while it is cut off (GS-03): it goes on alone, and finds the others later.
func TestBornApart(t *testing.T) {
	t.Parallel()
	bubble(t, 3, func(f *fleet) {
		all := f.serve(2, Fast)
		var logged syncBuffer
		h := f.net.Listen()
		f.net.Split(addrs(all), []string{h.Addr()})
		c, err := joinOn(f.Context(), Config{Name: letter(2), Namespace: "test", Seeds: addrs(all),
			Logger: slog.New(slog.NewTextHandler(&logged, nil))}, h)
		if err != nil {
			f.Fatal(err)
		}
		f.all = append(f.all, c)
		f.announce(c, Serving)
		f.agree(0, []*Cluster{c}, []string{letter(2)})
		time.Sleep(time.Minute)
		if s := logged.String(); !strings.Contains(s, "no seed took this replica in") || !strings.Contains(s, all[0].Addr()) {
			f.Errorf("the log does not say which seeds are waited for: %s", s)
		}
		f.net.Heal()
		f.agree(merged, f.all, names(3))
	})
}

// TestRestart kills a member and starts it with the same name and another address (F19), and lets a third be
// killed for good to measure detection.
func TestRestart(t *testing.T) {
	t.Parallel()
	bubble(t, 3, func(f *fleet) {
		f.serve(5, Fast)
		old := f.all[2]
		f.crash(old)
		again := f.join(Config{Name: old.Self(), Seeds: addrs(f.all[:1])})
		if again.Boot() == old.Boot() {
			f.Fatal("two boots with one id")
		}
		f.announce(again, Serving)
		took := f.within(10*time.Second, "only the new boot is seen", func() bool {
			return !slices.ContainsFunc(f.all, func(c *Cluster) bool {
				ms := c.Members()
				return !slices.Equal(owners(c), names(5)) || len(ms) != 5 || find(ms, again.Boot()).State != Serving
			})
		})
		f.crash(f.all[3])
		gone := f.agree(5*time.Second, f.all, slices.Delete(names(5), 4, 5))
		f.Logf("restart agreed after %s; another crash seen by all after %s", took, gone)
	})
}

// TestOneName runs two processes with one name (F20): the newest owns everywhere, the older says why it does not,
// and takes over again when the newest has gone.
func TestOneName(t *testing.T) {
	t.Parallel()
	bubble(t, 3, func(f *fleet) {
		all := f.serve(3, Fast)
		older := all[1]
		time.Sleep(time.Second)
		newer := f.join(Config{Name: older.Self(), Seeds: addrs(all[:1])})
		f.announce(newer, Serving)
		others := []*Cluster{all[0], all[2], newer}
		f.within(5*time.Second, "the older is superseded", func() bool {
			for _, c := range f.all {
				m := find(c.Members(), older.Boot())
				if m.State != Unfit || !strings.Contains(m.Reason, "superseded by boot "+newer.Boot()) {
					return false
				}
			}
			return true
		})
		if why := older.Reason(); !strings.Contains(why, newer.Boot()) || newer.Reason() != "" {
			f.Errorf("the older says %q, the newer %q", why, newer.Reason())
		}
		f.agree(time.Second, others, names(3))
		f.agree(time.Second, []*Cluster{older}, []string{letter(0), letter(2)})
		if err := newer.Announce(f.Context(), "serving", "layout", "", map[string]string{"store": "new"}); err != nil {
			f.Fatal(err)
		}
		f.within(5*time.Second, "the newest's facts", func() bool {
			return all[0].Facts()[older.Self()]["store"] == "new"
		})
		f.close(newer)
		f.agree(5*time.Second, all, names(3))
	})
}

// TestTwoBootsAlone leaves the older of two boots with nobody to own: its own list is empty, for the name is not
// its own any more.
func TestTwoBootsAlone(t *testing.T) {
	t.Parallel()
	bubble(t, 2, func(f *fleet) {
		older := f.serve(1, Fast)[0]
		time.Sleep(time.Second)
		newer := f.join(Config{Name: older.Self(), Seeds: addrs(f.all)})
		f.announce(newer, Serving)
		f.agree(5*time.Second, []*Cluster{older}, nil)
		f.agree(time.Second, []*Cluster{newer}, names(1))
		f.crash(newer)
		f.agree(5*time.Second, []*Cluster{older}, names(1))
	})
}

// TestGhosts lets many members come and go, half of them by crashing (GS-11), and replays what one of the dead once
// said: the live ones only own, and a ghost stays no longer than a crash takes to be seen.
func TestGhosts(t *testing.T) {
	t.Parallel()
	bubble(t, 2, func(f *fleet) {
		f.serve(3, Fast)
		for i := range 20 {
			c := f.join(Config{Name: fmt.Sprintf("ghost%02d", i), Seeds: addrs(f.all[:1])})
			f.announce(c, Serving)
			time.Sleep(500 * time.Millisecond)
			if i%2 == 0 {
				f.crash(c)
			} else {
				f.leave(c)
			}
		}
		f.agree(5*time.Second, f.all, names(3))
		time.Sleep(2 * time.Minute) // memberlist has forgotten them; we still call the crashed
		f.agree(0, f.all, names(3))
		if n := len(f.all[0].view.lost); n != 10 {
			f.Errorf("%d peers are called again, not the 10 that crashed", n)
		}
	})
}

// TestJoinCanceled returns the context's error and leaves nothing behind.
func TestJoinCanceled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		net := simnet.New(1)
		h, silent := net.Listen(), net.Listen()
		net.Split([]string{h.Addr()}, []string{silent.Addr()})
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		_, err := joinOn(ctx, Config{Name: "a", Namespace: "test", Seeds: []string{silent.Addr()}, Logger: quietLog()}, h)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		if err := silent.Shutdown(); err != nil {
			t.Error(err)
		}
		time.Sleep(time.Minute)
	})
}
