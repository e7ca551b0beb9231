package membership

import (
	"fmt"
	"io"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/internal/simnet"
	"github.com/hashicorp/memberlist"
)

// One view again within this time after a partition was healed (F12, F18).
const merged = 15 * time.Second

// mergedOn is merged for a profile. WAN's is longer: of 300 cuts 2|3 for two minutes seven took more than 15 s, none 20.
func mergedOn(p Profile) time.Duration {
	if p == WAN {
		return 25 * time.Second
	}
	return merged
}

// TestMemberlistAloneStaysSplit is the control: the same network and settings without a caller. Should it ever
// fail, memberlist has learnt to merge and the caller may go.
func TestMemberlistAloneStaysSplit(t *testing.T) {
	t.Parallel()
	for seed := range uint64(3) {
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				net := simnet.New(seed)
				var all []*memberlist.Memberlist
				var at []string
				for i := range 5 {
					s := Fast.settings()
					h := net.Listen()
					s.Name, s.Transport, s.LogOutput = letter(i), h, io.Discard
					m, err := memberlist.Create(s)
					if err != nil {
						t.Fatal(err)
					}
					all, at = append(all, m), append(at, h.Addr())
					if _, err := m.Join(at[:1]); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(30 * time.Second)
				see := func(want ...int) bool {
					got := make([]int, len(all))
					for i, m := range all {
						got[i] = m.NumMembers()
					}
					return slices.Equal(got, want)
				}
				if !see(5, 5, 5, 5, 5) {
					t.Fatal("not formed")
				}
				net.Split(at[:2], at[2:])
				for !see(2, 2, 3, 3, 3) {
					time.Sleep(time.Second)
				}
				time.Sleep(time.Minute)
				net.Heal()
				for range 3 * 60 {
					time.Sleep(time.Second)
					if !see(2, 2, 3, 3, 3) {
						t.Fatalf("seed %d: memberlist merged by itself", seed)
					}
				}
				for _, m := range all {
					if err := m.Shutdown(); err != nil {
						t.Error(err)
					}
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// TestDetection kills members one after the other; the bounds are far above what was measured, which is logged.
func TestDetection(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		profile Profile
		most    time.Duration
	}{
		{"Fast", Fast, 3 * time.Second},
		{"LAN", LAN, 30 * time.Second},
		{"WAN", WAN, 3 * time.Minute},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			bubble(t, 3, func(f *fleet) {
				f.serve(6, c.profile)
				var took []time.Duration
				for i := range 3 {
					time.Sleep(time.Minute)
					f.crash(f.all[1])
					took = append(took, f.agree(c.most, f.all, slices.Delete(names(6), 1, 2+i)))
				}
				f.Logf("seed %d: a crash of 6, 5 and 4 members was seen by all after %v", f.seed, took)
			})
		})
	}
}
