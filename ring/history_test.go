package ring

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

var (
	historyCount = flag.Int("ring.histories", 40, "how many histories of members TestHistories draws")
	historySeed  = flag.Uint64("ring.seed", 1, "the first one's seed")
)

// TestHistories lets members join, leave and come again, in the order in which each replica happens to hear of it (T11). In the end
// all replicas have one ring; of 10,000 keys each has one owner, who says so itself; shares are fair; and a change moves little.
func TestHistories(t *testing.T) {
	t.Parallel()
	var sum toll
	var next atomic.Uint64
	var workers sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for i := next.Add(1) - 1; i < uint64(*historyCount); i = next.Add(1) - 1 {
				seed := *historySeed + i
				h := newHistory(seed)
				if err := h.judge(&sum); err != nil {
					t.Errorf("%v; repeat: go test ./ring -run TestHistories -ring.histories 1 -ring.seed %d", err, seed)
				}
			}
		})
	}
	workers.Wait()
	t.Logf("T11: %s", &sum)
	if mean := sum.keys / float64(sum.histories); mean > keysMost {
		t.Errorf("max/mean of %d keys is %.3f on average, above %v", historyKeys, mean, keysMost)
	}
	if mean := sum.average / float64(sum.histories); mean > movesMost {
		t.Errorf("a change moves %.2f x ideal on average, above %v", mean, movesMost)
	}
}

const (
	historyLeast   = 3
	historyMost    = 30
	historyKeys    = 10_000
	historyTold    = 3    // replicas that build their ring from what they heard, in their order
	partitionsMost = 1.13 // max/mean
	keysMost       = 1.25
	movesMost      = 1.3 // on average, times the mean share of the larger ring
	moveMost       = 1.5 // of one change
)

// toll is what histories came to.
type toll struct {
	mu                                      sync.Mutex
	histories, events                       int
	partitions, keys, worst, moves, average float64
	above, costly                           int // histories in which the sample is above keysMost, the change above movesMost
}

func (s *toll) String() string {
	n := float64(s.histories)
	return fmt.Sprintf("%d histories of %d events, %d keys: one ring and one owner in all; max/mean of partitions %.3f at worst, of keys %.3f on average (%.3f at worst, above %v in %.1f %%); "+
		"a change moves %.2f x ideal on average (%.2f at worst, above %v in %.1f %%)",
		s.histories, s.events, historyKeys, s.partitions, s.keys/n, s.worst, keysMost, 100*float64(s.above)/n, s.average/n, s.moves, movesMost, 100*float64(s.costly)/n)
}

// happening is a start or an end of a member. Its incarnation rises with each of the member's.
type happening struct {
	name        string
	incarnation int
	alive       bool
}

// history is what happened to the members of a cluster, in the order in which it did.
type history struct {
	seed uint64
	rand *rand.Rand
	all  []happening
	live []string
}

// newHistory draws 3 to 30 members who start, and up to 40 changes of them.
func newHistory(seed uint64) *history {
	h := &history{seed: seed, rand: rand.New(rand.NewPCG(seed, 11))}
	for range historyLeast + h.rand.IntN(historyMost-historyLeast+1) {
		h.start()
	}
	for range h.rand.IntN(40) {
		h.change()
	}
	return h
}

// names are of one kind in a cluster, as they are where a program makes them.
func (h *history) name() string {
	scheme := schemes[h.seed%uint64(len(schemes))]
	for {
		if name := fmt.Sprintf(scheme, h.rand.IntN(200)+1); !slices.Contains(h.live, name) {
			return name
		}
	}
}

func (h *history) happen(name string, alive bool) {
	n := 0
	for _, e := range h.all {
		if e.name == name {
			n = e.incarnation
		}
	}
	h.all = append(h.all, happening{name, n + 1, alive})
}

func (h *history) start() {
	name := h.name()
	h.live = append(h.live, name)
	h.happen(name, true)
}

func (h *history) change() {
	if len(h.live) == historyLeast || len(h.live) < historyMost && h.rand.IntN(2) == 0 {
		h.start()
		return
	}
	i := h.rand.IntN(len(h.live))
	h.happen(h.live[i], false)
	h.live = slices.Delete(h.live, i, i+1)
}

// heard is who is alive, as a replica has it that hears of everything, some of it twice, in an order of its own.
func (h *history) heard() []string {
	events := slices.Concat(h.all, h.all[:h.rand.IntN(len(h.all))])
	h.rand.Shuffle(len(events), func(i, j int) { events[i], events[j] = events[j], events[i] })
	newest := map[string]happening{}
	var order []string
	for _, e := range events {
		old, known := newest[e.name]
		if !known {
			order = append(order, e.name)
		}
		if e.incarnation > old.incarnation {
			newest[e.name] = e
		}
	}
	return slices.DeleteFunc(order, func(name string) bool { return !newest[name].alive })
}

// judge lets one more change happen, and looks at the rings.
func (h *history) judge(sum *toll) error {
	before, err := New(h.live, nil)
	if err != nil {
		return err
	}
	h.change()
	told := make([]*Ring, historyTold)
	for i := range told {
		if told[i], err = New(h.heard(), nil); err != nil {
			return err
		}
		if told[i].Fingerprint() != told[0].Fingerprint() {
			return fmt.Errorf("seed %d: replicas that heard of the same in other orders have the rings of %q and %q", h.seed, told[0].Members(), told[i].Members())
		}
	}
	partitions, keys, err := h.shares(told)
	if err != nil {
		return err
	}
	n := len(h.live)
	larger := float64(max(n, len(before.Members())))
	moved := float64(len(Plan(before, told[0]))) * larger / float64(told[0].Partitions())
	sum.add(h, partitions, keys, moved)
	// The keys are a sample: five times its standard deviation happens to nobody.
	sampled := partitions + 5*math.Sqrt(partitions*float64(n)/historyKeys)
	if partitions > partitionsMost || keys > sampled || moved > moveMost {
		return fmt.Errorf("seed %d, %d members: max/mean %.3f of partitions and %.3f of keys (at most %v and %.3f), a change moves %.2f x ideal (at most %v)",
			h.seed, n, partitions, keys, partitionsMost, sampled, moved, moveMost)
	}
	return nil
}

// shares demands that each key has one owner: one replica that says by its own ring, whichever of them it has, that it is its.
// Returned are the largest shares of partitions and of keys, in means.
func (h *history) shares(told []*Ring) (partitions, keys float64, err error) {
	n := float64(len(h.live))
	mine := make([][]string, told[0].Partitions()) // who says of a partition that it is its own
	for i, name := range h.live {
		own := told[i%len(told)].Owned(name)
		partitions = max(partitions, float64(len(own))*n/float64(told[0].Partitions()))
		for _, p := range own {
			mine[p] = append(mine[p], name)
		}
	}
	count := map[string]int{}
	for i := range historyKeys {
		key := fmt.Sprintf("customer-%d-%d", h.seed, i)
		r := told[i%len(told)]
		who := mine[r.Partition(key)]
		if len(who) != 1 || r.Owner(key) != who[0] {
			return 0, 0, fmt.Errorf("seed %d: %s is owned by %s, and [%s] say that it is theirs", h.seed, key, r.Owner(key), strings.Join(who, " "))
		}
		count[who[0]]++
	}
	most := 0
	for _, c := range count {
		most = max(most, c)
	}
	return partitions, float64(most) * n / historyKeys, nil
}

func (s *toll) add(h *history, partitions, keys, moved float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.histories, s.events = s.histories+1, s.events+len(h.all)
	s.partitions, s.worst, s.moves = max(s.partitions, partitions), max(s.worst, keys), max(s.moves, moved)
	s.keys, s.average = s.keys+keys, s.average+moved
	if keys > keysMost {
		s.above++
	}
	if moved > movesMost {
		s.costly++
	}
}
