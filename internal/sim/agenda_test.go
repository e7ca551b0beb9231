package sim

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The agenda yields what was put there in the order of its moments, whatever comes and goes in between.
func TestAgendaOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 0))
		var a agenda
		var want []int64 // by moment; each event's reply names it
		moments := map[int64]moment{}
		for seq := int64(1); seq < 500 || len(want) > 0; seq++ {
			if seq < 500 && (len(want) == 0 || r.IntN(3) > 0) {
				m := moment{time.Duration(r.IntN(20)), time.Duration(r.IntN(5)), seq}
				moments[seq] = m
				i, _ := slices.BinarySearchFunc(want, m, func(x int64, m moment) int {
					if moments[x].before(m) {
						return -1
					}
					return 1
				})
				want = slices.Insert(want, i, seq)
				a.push(m, event{reply: time.Duration(seq)})
				continue
			}
			first, ok := a.first()
			if e := a.pop(); !ok || first != moments[want[0]] || int64(e.reply) != want[0] {
				t.Fatalf("seed %d: %d comes, at %v; want %d, at %v", seed, e.reply, first, want[0], moments[want[0]])
			}
			want = want[1:]
		}
		if _, more := a.first(); more || len(a.free) != len(a.events) {
			t.Fatalf("seed %d: something is left", seed)
		}
	}
}
