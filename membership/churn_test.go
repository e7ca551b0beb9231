package membership

import (
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/ring"
)

const (
	few = 3 // and many: 30, or fewer with the race detector
	// settled is when all have one ring again after a phase of churn (F23).
	settled = 10 * time.Second
	// ideally is the share of the ideal that may move, over a phase.
	ideally = 1.3
)

// ring builds the ring of the default layout.
func (f *fleet) ring(owners []string) *ring.Ring {
	f.Helper()
	r, err := ring.New(owners, nil)
	if err != nil {
		f.Fatal(err)
	}
	return r
}

// agreeRing waits until all of cs have built the ring of these owners, by its fingerprint. Equal lists are built once.
func (f *fleet) agreeRing(most time.Duration, cs []*Cluster, want []string) (*ring.Ring, time.Duration) {
	f.Helper()
	took := f.agree(most, cs, want)
	var one *ring.Ring
	var list []string
	for _, c := range cs {
		if o := owners(c); one == nil || !slices.Equal(o, list) {
			r := f.ring(o)
			if one != nil && r.Fingerprint() != one.Fingerprint() {
				f.Errorf("seed %d: %s has ring %s, not %s", f.seed, c.Self(), r.Fingerprint(), one.Fingerprint())
			}
			one, list = r, o
		}
	}
	return one, took
}

// moves adds up what moved while owners came and went.
type moves struct {
	last         *ring.Ring
	moved, ideal float64
	worst        float64 // step, as a multiple of its ideal
}

// step goes on to the next ring that all agree on, which has one owner more or less.
func (m *moves) step(next *ring.Ring) {
	if m.last != nil {
		moved := float64(len(ring.Plan(m.last, next)))
		ideal := float64(next.Partitions()) / float64(max(len(next.Members()), len(m.last.Members())))
		m.moved, m.ideal, m.worst = m.moved+moved, m.ideal+ideal, max(m.worst, moved/ideal)
	}
	m.last = next
}

// eachSecond calls do for each of which, a second apart.
func eachSecond(which []int, do func(i int)) {
	for _, i := range which {
		begun := time.Now()
		do(i)
		rest(time.Second - time.Since(begun))
	}
}

// TestMassChurn lets 27 members join 3, and go again, a second apart (F23): each third crashes, the others leave. All
// agree within a step, so that each ring is followed by one that differs in one owner; a step that is a crash lasts
// until it is seen.
func TestMassChurn(t *testing.T) {
	t.Parallel()
	bubble(t, seedsOr(t, 1), func(f *fleet) {
		f.serve(few, Fast)
		for _, phase := range []string{"grow", "shrink"} {
			var m moves
			first, took := f.agreeRing(settled, f.all, names(len(f.all)))
			m.step(first)
			which := upTo(few, many)
			if phase == "shrink" {
				slices.Reverse(which)
			}
			eachSecond(which, func(i int) {
				most := time.Second / 2
				switch {
				case phase == "grow":
					f.announce(f.join(Config{Name: letter(i), Seeds: addrs(f.all[:1])}), Serving)
				case i%3 == 0:
					most = settled
					f.crash(f.all[i])
				default:
					f.leave(f.all[i])
				}
				r, d := f.agreeRing(most, f.all, names(len(f.all)))
				took = max(took, d)
				m.step(r)
			})
			_, last := f.agreeRing(settled, f.all, names(len(f.all)))
			f.Logf("seed %d: %s to %d: one ring %s after each step at most, %s after the last; moved %.2f of the ideal (worst step %.2f)",
				f.seed, phase, len(f.all), took, last, m.moved/m.ideal, m.worst)
			if m.moved > ideally*m.ideal {
				f.Errorf("seed %d: %s: %.0f partitions moved; %.0f would have been ideal", f.seed, phase, m.moved, m.ideal)
			}
		}
	})
}

// TestChurnLAN is the same with profile LAN, where a step may take longer than a second.
func TestChurnLAN(t *testing.T) {
	t.Parallel()
	bubble(t, seedsOr(t, 1), func(f *fleet) {
		f.serve(few, LAN)
		eachSecond(upTo(few, many), func(i int) {
			f.announce(f.join(Config{Name: letter(i), Profile: LAN, Seeds: addrs(f.all[:1])}), Serving)
		})
		_, up := f.agreeRing(settled, f.all, names(many))
		which := upTo(few, many)
		slices.Reverse(which)
		eachSecond(which, func(i int) {
			f.leave(f.all[i])
		})
		_, down := f.agreeRing(settled, f.all, names(few))
		f.Logf("seed %d: one ring of %d %s after the last join, of %d %s after the last leave", f.seed, many, up, few, down)
	})
}

// TestMassCrash kills all but few at once. The rest find them dead one after the other.
func TestMassCrash(t *testing.T) {
	t.Parallel()
	bubble(t, seedsOr(t, 1), func(f *fleet) {
		f.serve(many, Fast)
		time.Sleep(5 * time.Second)
		gone := slices.Clone(f.all[few:])
		for _, c := range gone {
			f.net.Kill(c.Addr())
		}
		f.all = f.all[:few]
		_, took := f.agreeRing(time.Minute, f.all, names(few))
		f.Logf("seed %d: %d of %d killed at once: one ring of the rest after %s", f.seed, many-few, many, took)
		for _, c := range gone {
			f.close(c)
		}
	})
}
