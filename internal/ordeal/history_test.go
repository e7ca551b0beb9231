package ordeal

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/belfry-go/belfry/idempotency"
)

// judging bounds the check of one occurrence's history.
const judging = time.Minute

// asked is one question with its answer and when both were.
type asked struct {
	client int
	question
	reply
	held         map[string]int64 // what mine listed: fences by key
	call, answer int64
}

func (a asked) String() string {
	return fmt.Sprintf("%8d..%-20d client %d: %v: %v", a.call, a.answer, a.client, a.question, a.reply)
}

// history is all that the clients asked and were answered.
type history struct {
	began time.Time
	beat  int           // questions between two ticks
	tick  chan struct{} // has a token after each beat, has room for one
	calm  atomic.Bool   // all trouble is over

	mu      sync.Mutex
	all     []asked
	lapsing map[int64]bool // the sessions with a short lease
	recent  []idempotency.Finish
}

func newHistory(beat int) *history {
	return &history{began: time.Now(), beat: beat, tick: make(chan struct{}, 1), lapsing: make(map[int64]bool)}
}

func (h *history) now() int64 { return time.Since(h.began).Nanoseconds() }

func (h *history) len() int {
	h.mu.Lock()
	defer h.mu.Unlock()

	return len(h.all)
}

func (h *history) opened(session int64, mayLapse bool) {
	h.mu.Lock()
	defer h.mu.Unlock()

	h.lapsing[session] = mayLapse
}

func (h *history) mayLapse(session int64) bool {
	h.mu.Lock()
	defer h.mu.Unlock()

	return h.lapsing[session]
}

// remember keeps the last few runs that anybody won, with their fences.
func (h *history) remember(f idempotency.Finish) {
	h.mu.Lock()
	defer h.mu.Unlock()

	const few = 12
	h.recent = append(h.recent, f)
	h.recent = h.recent[max(0, len(h.recent)-few):]
}

// recall returns one of those that are remembered.
func (h *history) recall(rng *rand.Rand) (f idempotency.Finish, ok bool) {
	h.mu.Lock()
	defer h.mu.Unlock()

	if len(h.recent) == 0 {
		return f, false
	}
	return h.recent[rng.IntN(len(h.recent))], true
}

// add notes questions that were one call. What was lost may happen for ever after.
func (h *history) add(all ...asked) {
	h.mu.Lock()
	defer h.mu.Unlock()

	now := h.now()
	for _, a := range all {
		a.answer = now
		if a.lost {
			a.answer = math.MaxInt64
		}
		h.all = append(h.all, a)
		if len(h.all)%h.beat == 0 {
			select {
			case h.tick <- struct{}{}:
			default:
			}
		}
	}
}

// index says where in a history questions are, so that what concerns one occurrence is found without a look at all.
type index struct {
	keys     map[string][]int // about an occurrence
	sessions map[int64][]int  // about a session and no occurrence
}

func (h *history) index() index {
	x := index{make(map[string][]int), make(map[int64][]int)}
	for i, a := range h.all {
		switch {
		case a.key != "":
			x.keys[a.key] = append(x.keys[a.key], i)
		case a.idle(): // whenever it happened, it changed nothing and showed nothing
		default:
			x.sessions[a.session] = append(x.sessions[a.session], i)
		}
	}
	return x
}

// idle: the answer was lost, and with it all that there was.
func (a asked) idle() bool { return a.lost && (a.kind == renew || a.kind == mine) }

// of returns what concerns one key: the questions about its occurrence, and those about the sessions that ever tried to
// claim it.
func (h *history) of(key string, x index) (all []asked) {
	near := make(map[int64]bool)
	at := slices.Clone(x.keys[key])
	for _, i := range x.keys[key] {
		if a := h.all[i]; (a.kind == insert || a.kind == takeUp) && !near[a.session] {
			near[a.session] = true
			at = append(at, x.sessions[a.session]...)
		}
	}
	slices.Sort(at)
	for _, i := range at {
		a := h.all[i]
		if a.kind == mine {
			a.reply.fence = a.held[key]
		}
		all = append(all, a)
	}
	return all
}

func (a asked) operation() porcupine.Operation {
	return porcupine.Operation{ClientId: a.client, Input: a.question, Output: a.reply, Call: a.call, Return: a.answer}
}

// tally counts what a history consists of.
type tally struct {
	keys, longest, lost, won, takenUp, fenced int
	judged                                    time.Duration // how long that took
}

func (s tally) String() string {
	return fmt.Sprintf("%d keys, at most %d questions about one; %d without an answer; %d claims won, %d of them take-ups; %d finishes refused",
		s.keys, s.longest, s.lost, s.won, s.takenUp, s.fenced)
}

// judge checks that every occurrence's history is that of a register, and that no fence was given twice. Occurrences have
// nothing to do with one another, and so each is judged by itself, on all processors.
func (h *history) judge() (tally, error) {
	h.mu.Lock()
	defer h.mu.Unlock()

	var sum tally
	owner := make(map[int64]string)
	for _, a := range h.all {
		if err := sum.count(a, owner); err != nil {
			return sum, err
		}
	}
	x := h.index()
	sum.keys = len(x.keys)
	next := make(chan string)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var failed error
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for key := range next {
				n, err := h.judgeOne(key, x)
				mu.Lock()
				sum.longest = max(sum.longest, n)
				failed = cmp.Or(failed, err)
				mu.Unlock()
			}
		})
	}
	for key := range x.keys {
		next <- key
	}
	close(next)
	wg.Wait()
	return sum, failed
}

// judgeOne judges one occurrence, and returns how many questions there were about it.
func (h *history) judgeOne(key string, x index) (questions int, err error) {
	all := h.of(key, x)
	ops := make([]porcupine.Operation, len(all))
	for i, a := range all {
		ops[i] = a.operation()
	}
	if verdict := porcupine.CheckOperationsTimeout(model(), ops, judging); verdict != porcupine.Ok {
		err = fmt.Errorf("the history of %s is not that of a register (%s):\n%s", key, verdict, lines(all))
	}
	return len(all), err
}

// count adds a question to the tally; owner has who was given each fence.
func (s *tally) count(a asked, owner map[int64]string) error {
	switch {
	case a.lost:
		s.lost++
	case a.reply.finish == idempotency.Fenced:
		s.fenced++
	case a.verdict == idempotency.Won:
		s.won++
		if a.kind == takeUp {
			s.takenUp++
		}
		who := fmt.Sprint(a.key, ", session ", a.session, ", nonce ", a.nonce)
		if was := owner[a.reply.fence]; was != "" && was != who {
			return fmt.Errorf("fence %d was given to %s and to %s", a.reply.fence, was, who)
		}
		owner[a.reply.fence] = who
	}
	return nil
}

func lines(all []asked) string {
	slices.SortFunc(all, func(a, b asked) int { return int(a.call - b.call) })
	var s strings.Builder
	for _, a := range all {
		fmt.Fprintln(&s, a)
	}
	return s.String()
}
