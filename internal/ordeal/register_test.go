package ordeal

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"

	"github.com/belfry-go/belfry/idempotency"
)

// phase is where an occurrence stands.
type phase int

const (
	absent phase = iota
	held         // running, under (session, nonce)
	waiting
	ended
)

// register is one occurrence as the contract describes it, with those sessions marked dead that ever came near it. It
// is comparable, as the checker wants it. The fence of a claim whose answer was lost is unknown until it is seen.
type register struct {
	phase          phase
	session, nonce int64
	fence          int64 // 0 where unknown
	floor          int64 // every fence of this key up to here was drawn before the last claim
	dead           string
}

// kind is what was asked.
type kind int

const (
	insert kind = iota
	takeUp
	finish
	release // a finish that lets the run wait
	renew
	mine
	mark
	closing
)

var kinds = [...]string{"insert", "take up", "finish", "release", "renew", "mine", "mark dead", "close"}

// question is a call as far as one occurrence sees it.
type question struct {
	kind     kind
	key      string
	session  int64 // that asks; of mark and close, the one that is to be dead
	nonce    int64
	fence    int64 // that is finished, or that the run to take up had
	mayLapse bool  // the session's lease is short: it may be dead at any time
}

func (q question) String() string {
	return fmt.Sprintf("%s %s (session %d, nonce %d, fence %d)", kinds[q.kind], q.key, q.session, q.nonce, q.fence)
}

// reply is what was answered.
type reply struct {
	lost    bool // there was an error: it may have happened, or happen yet, or never
	dead    bool // ErrSessionDead
	verdict idempotency.Verdict
	finish  idempotency.FinishAnswer
	fence   int64 // that was won, or listed by mine; 0: not listed
}

func (r reply) String() string {
	switch {
	case r.lost:
		return "?"
	case r.dead:
		return "session dead"
	}
	return fmt.Sprintf("verdict %d, finish %d, fence %d", r.verdict, r.finish, r.fence)
}

func id(session int64) string { return fmt.Sprintf("%d;", session) }

func (r register) isDead(session int64) bool {
	return slices.Contains(strings.SplitAfter(r.dead, ";"), id(session))
}

func (r register) killed(session int64) register {
	if r.isDead(session) {
		return r
	}
	all := append(strings.SplitAfter(r.dead, ";"), id(session))
	slices.Sort(all)
	r.dead = strings.Join(all, "")
	return r
}

func (r register) won(q question, fence int64) register {
	r.phase, r.session, r.nonce, r.floor, r.fence = held, q.session, q.nonce, max(r.floor, r.fence), fence
	return r
}

// seen is the register if its fence is the given one, and whether it can be: a fence that was not known is now.
func (r register) seen(fence int64) (register, bool) {
	if r.fence == 0 && fence > r.floor {
		r.fence = fence
	}
	return r, r.fence == fence && fence != 0
}

// may reports whether the fence can be another than the given one.
func (r register) may(not int64) bool { return r.fence == 0 || r.fence != not }

// step returns what the register may be after the answer to the question; nothing, where no store that keeps the
// contract gives that answer.
func step(r register, q question, a reply) []register {
	switch q.kind {
	case insert, takeUp:
		return r.claimed(q, a)
	case finish, release:
		return r.finished(q, a)
	case mine:
		return r.listed(q, a)
	case renew:
		if a.lost || a.dead == r.isDead(q.session) || a.dead && q.mayLapse {
			return []register{r}
		}
	case mark:
		if q.mayLapse {
			return []register{r, r.killed(q.session)}
		}
		return []register{r}
	case closing:
		switch {
		case a.lost:
			return []register{r, r.killed(q.session)}
		case !a.dead:
			return []register{r.killed(q.session)}
		}
	}
	return nil
}

// obtainable reports whether the claim of a live session gets the run.
func (r register) obtainable(q question) (next register, ok bool) {
	switch {
	case q.kind == insert:
		return r, r.phase == absent
	case r.phase == waiting, r.phase == held && r.isDead(r.session):
		return r.seen(q.fence)
	}
	return r, false
}

func (r register) claimed(q question, a reply) []register {
	mineNow := r.phase == held && r.session == q.session && r.nonce == q.nonce
	got, ok := r.obtainable(q)
	ok = ok && !mineNow && !r.isDead(q.session)
	switch {
	case a.lost && ok:
		return []register{r, got.won(q, 0)}
	case a.lost:
		return []register{r}
	case a.dead:
		if q.mayLapse || r.isDead(q.session) {
			return []register{r}
		}
	case r.isDead(q.session):
	case a.verdict == idempotency.Won && mineNow:
		if now, same := r.seen(a.fence); same {
			return []register{now}
		}
	case a.verdict == idempotency.Won && ok:
		if a.fence > max(got.floor, got.fence) {
			return []register{got.won(q, a.fence)}
		}
	case a.verdict == idempotency.Taken && !mineNow:
		if !ok || q.kind == takeUp && r.may(q.fence) {
			return []register{r}
		}
	}
	return nil
}

func (r register) finished(q question, a reply) []register {
	next, same := r.seen(q.fence)
	next.phase = ended
	if q.kind == release {
		next.phase = waiting
	}
	switch {
	case a.lost && r.phase == held && same:
		return []register{r, next}
	case a.lost:
		return []register{r}
	case a.finish == idempotency.Finished && r.phase == held && same:
		return []register{next}
	case a.finish == idempotency.Already && same && (r.phase == waiting && q.kind == release || r.phase == ended && q.kind == finish),
		a.finish == idempotency.Completed && same && r.phase == ended && q.kind == release: // every end here is done
		next.phase = r.phase
		return []register{next}
	case a.finish == idempotency.Fenced && (r.phase == absent || r.may(q.fence) || same && r.phase == waiting && q.kind == finish):
		return []register{r}
	}
	return nil
}

// listed: a session's list of what it holds is a read of every run it may hold.
func (r register) listed(q question, a reply) []register {
	holds := r.phase == held && r.session == q.session
	switch {
	case a.lost:
		return []register{r}
	case a.dead:
		if q.mayLapse || r.isDead(q.session) {
			return []register{r}
		}
	case r.isDead(q.session):
	case a.fence == 0 && !holds:
		return []register{r}
	case a.fence != 0 && holds:
		if now, same := r.seen(a.fence); same {
			return []register{now}
		}
	}
	return nil
}

// model is the register for the checker.
func model() porcupine.Model {
	m := porcupine.NondeterministicModel{
		Init: func() []any { return []any{register{}} },
		Step: func(state, in, out any) []any {
			var next []any
			for _, r := range step(state.(register), in.(question), out.(reply)) {
				next = append(next, r)
			}
			return next
		},
	}
	return m.ToModel()
}
