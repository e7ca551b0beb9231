package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Rate is how much befalls a Trial.
type Rate string

// The rates: faults, and changes by people and code, in each round.
const (
	Light Rate = "light"
	Heavy Rate = "heavy"
)

// Rates are all of them.
var Rates = []Rate{Light, Heavy}

// perRound is how many moves of a sort a round gets, at least and at most.
func (r Rate) perRound(fault bool) (low, high int) {
	switch {
	case r == Heavy && fault:
		return 10, 20
	case r == Heavy:
		return 6, 14
	case fault:
		return 3, 5
	}
	return 1, 4
}

// Move is something that is done to a world. All are drawn before it begins, so that one can be left out and the others stay
// what they are.
type Move struct {
	N       int // its number, from 1
	At      time.Duration
	Kind    string
	Replica int           // whom it befalls, if it befalls one
	For     time.Duration // how long it lasts, if it lasts
	Dice    uint64        // decides the rest
}

// String is the move as a line of text.
func (m Move) String() string {
	return fmt.Sprintf("%d: at %v %s r%d for %v", m.N, m.At, m.Kind, m.Replica, m.For)
}

// kind is one of moves.
type kind struct {
	name      string
	weight    int // of the chance to be drawn
	low, high time.Duration
	do        func(*trial, Move, *rand.Rand)
}

const (
	millis = time.Millisecond
	second = time.Second
)

// faultKinds are those of moves that are faults.
var faultKinds = []kind{
	{"kill", 6, 100 * millis, 20 * second, (*trial).kill},
	{"kill all", 1, 2 * second, 100 * second, (*trial).killAll},
	{"pause", 3, second, 9 * second, func(t *trial, m Move, _ *rand.Rand) { t.r(m).Freeze(m.For) }},
	{"long pause", 3, 10 * second, 50 * second, func(t *trial, m Move, _ *rand.Rand) { t.r(m).Freeze(m.For) }},
	{"suspend", 2, 2 * second, 60 * second, func(t *trial, m Move, _ *rand.Rand) { t.r(m).Suspend(m.For) }},
	{"split", 4, 2 * second, 90 * second, (*trial).split},
	{"asymmetric cut", 3, 2 * second, 90 * second, (*trial).lopsided},
	{"flapping cut", 2, 5 * second, 60 * second, (*trial).flap},
	{"stale view", 3, 2 * second, 150 * second, func(t *trial, m Move, _ *rand.Rand) { t.r(m).Stale(m.For) }},
	{"store cut", 4, second, 60 * second, func(t *trial, m Move, _ *rand.Rand) { t.r(m).Blind(m.For) }},
	{"store cut for all", 2, second, 100 * second, (*trial).outage},
	{"store restart", 2, 500 * millis, 5 * second, (*trial).restartStore},
	{"lost replies", 3, 5 * second, 60 * second, weather(Loss)},
	{"late commits", 3, 5 * second, 60 * second, weather(Late)},
	{"slow store", 3, 5 * second, 60 * second, weather(Slow)},
	{"store clock step", 2, 0, 0, (*trial).stepStore},
	{"host clock", 4, 10 * second, 300 * second, (*trial).wrongClock},
	{"source fails", 2, 5 * second, 90 * second, weather(FailingSource)},
	{"source is slow", 2, 5 * second, 90 * second, weather(SlowSource)},
	{"source hangs", 1, 2 * second, 30 * second, func(t *trial, m Move, _ *rand.Rand) { t.hangs = max(t.hangs, t.w.now+m.For) }},
	{"source lags", 2, 0, maxLag, func(t *trial, m Move, _ *rand.Rand) { t.r(m).Lag(m.For) }},
	{"source shrinks", 1, 20 * second, 120 * second, (*trial).shrinkSource},
	{"handlers fail", 2, 10 * second, 90 * second, weather(Error)},
	{"handlers take long", 2, 10 * second, 90 * second, weather(Long)},
	{"handlers hang", 2, 10 * second, 60 * second, weather(Hang)},
	{"poison key", 1, 0, 0, (*trial).poison},
	{"jam", 1, 10 * second, 60 * second, (*trial).jam},
	{"hint flood", 1, second, 5 * second, (*trial).flood},
	{"hints go wrong", 1, 10 * second, 90 * second, weather(Hint)},
	{"term ends", 2, 0, 5 * second, func(t *trial, m Move, _ *rand.Rand) { t.w.EndTerm(m.For) }},
	{"elector errs", 2, 10 * second, 60 * second, weather(Elector)},
}

// changeKinds are those of moves that are the doing of people.
var changeKinds = []kind{
	{"drain", 3, 100 * millis, 15 * second, (*trial).drain},
	{"deploy", 2, 0, 60 * second, (*trial).deploy},
	{"lack", 1, 20 * second, 120 * second, (*trial).lack},
	{"churn", 5, 0, 0, (*trial).churn},
	{"command", 6, second, 50 * second, (*trial).command},
}

// draw makes the moves of a trial.
func draw(seed uint64, rounds, replicas int, rate Rate) (moves []Move) {
	r := rand.New(rand.NewPCG(seed, 0x5851f42d4c957f2d))
	for round := range rounds {
		var list []Move
		for _, fault := range []bool{true, false} {
			of := changeKinds
			if fault {
				of = faultKinds
			}
			low, high := rate.perRound(fault)
			for range low + r.IntN(high-low+1) {
				list = append(list, drawOne(r, of, replicas))
			}
		}
		for i := range list {
			list[i].At += time.Duration(round) * roundTakes
		}
		slices.SortStableFunc(list, func(a, b Move) int { return int(a.At - b.At) })
		moves = append(moves, list...)
	}
	for i := range moves {
		moves[i].N = i + 1
	}
	return moves
}

func drawOne(r *rand.Rand, of []kind, replicas int) Move {
	sum := 0
	for _, k := range of {
		sum += k.weight
	}
	n, i := r.IntN(sum), 0
	for ; n >= of[i].weight; i++ {
		n -= of[i].weight
	}
	k := of[i]
	return Move{
		Kind: k.name, Replica: int(r.Uint64() % uint64(replicas)), // any number of replicas draws the same
		For: spanOf(r, k.low, k.high), Dice: r.Uint64(),
		At: spanOf(r, roundCalm/40, roundCalm-lastMove).Truncate(millis),
	}
}

// spanOf is a duration from low to high, more often a short one.
func spanOf(r *rand.Rand, low, high time.Duration) time.Duration {
	x := r.Float64()
	return (low + time.Duration(x*x*float64(high-low))).Truncate(millis)
}

// isFault is whether moves of a kind are faults.
func isFault(name string) bool {
	return slices.ContainsFunc(faultKinds, func(k kind) bool { return k.name == name })
}

func kindOf(name string) kind {
	for _, k := range slices.Concat(faultKinds, changeKinds) {
		if k.name == name {
			return k
		}
	}
	panic("sim: no move is called " + name)
}
