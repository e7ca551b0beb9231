package storetest

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/belfry-go/belfry/idempotency"
)

const candidates = 16

// Who asks at once where nobody leads: one leads, and all are told the same.
func oneLeads(b *bundle) {
	b.power(b.Store)
	var told [candidates]idempotency.Leader
	raceOf(b, candidates, func(i int, r *replica) (err error) {
		told[i], err = r.power(r.store).Lead(b.Context(), r.session, 0)
		return err
	})
	for _, l := range told {
		want(b.T, "leader", l, b.leader())
	}
	want(b.T, "why", told[0].Why, "nobody led before")
}

// An elector's terms that come in any order: none is answered by a lower one, and the highest leads in the end.
func highestTermLeads(b *bundle) {
	b.power(b.Store)
	raceOf(b, candidates, func(i int, r *replica) error {
		l, err := r.power(r.store).Lead(b.Context(), r.session, int64(i+1))
		if err == nil && l.Term < int64(i+1) {
			return fmt.Errorf("term %d was answered by term %d", i+1, l.Term)
		}
		return err
	})
	want(b.T, "term", b.leader().Term, candidates)
	want(b.T, "replica", b.leader().Replica, fmt.Sprint("racer-", candidates-1))
}

// leaders is what those who lead by turns were answered, and how they ended.
type leaders struct {
	highest atomic.Int64 // term that was answered

	mu    sync.Mutex
	told  map[int64]idempotency.Leader
	ended map[int64]string
}

// answered notes who was said to lead. No answer is older than one that came before the call.
func (x *leaders) answered(l idempotency.Leader, before int64) error {
	x.mu.Lock()
	defer x.mu.Unlock()

	x.highest.Store(max(x.highest.Load(), l.Term))
	was, ok := x.told[l.Term]
	switch {
	case l.Term < before || !l.Until.IsZero():
		return fmt.Errorf("%+v was said to lead after term %d", l, before)
	case ok && was != l:
		return fmt.Errorf("of one term it was said %+v, then %+v", was, l)
	}
	x.told[l.Term] = l
	return nil
}

// ends notes how a leader is about to end.
func (x *leaders) ends(term int64, why string) {
	x.mu.Lock()
	defer x.mu.Unlock()

	x.ended[term] = why
}

// Leaders that resign and whose sessions end, while all ask: each follows the one before it, which had ended, and two
// terms are never answered in the wrong order. So the answers are those of one row, changed at one instant each.
func leadersFollowEachOther(b *bundle) {
	const rounds = 6
	b.power(b.Store)
	x := &leaders{told: make(map[int64]idempotency.Leader), ended: make(map[int64]string)}
	raceOf(b, candidates, func(i int, r *replica) error {
		for n := range rounds {
			before := x.highest.Load()
			l, err := r.power(r.store).Lead(b.Context(), r.session, 0)
			if err == nil {
				err = x.answered(l, before)
			}
			if err == nil && l.Session == r.session.ID {
				err = x.end(r, l.Term, (i+n)%2 == 0)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	x.follow(b)
}

// end ends the replica's term, by a resignation or with its session.
func (x *leaders) end(r *replica, term int64, resigns bool) (err error) {
	if resigns {
		x.ends(term, fmt.Sprint("resigned: ", term))
		return r.power(r.store).Resign(r.Context(), r.session, term, fmt.Sprint(term))
	}
	x.ends(term, "its session ended")
	if err = r.store.CloseSession(r.Context(), r.session); err == nil {
		r.session, _, err = r.store.OpenSession(r.Context(), r.opening)
	}
	return err
}

func (x *leaders) follow(b *bundle) {
	b.Helper()
	why := "nobody led before"
	for _, l := range slices.SortedFunc(maps.Values(x.told), func(a, b idempotency.Leader) int { return cmp.Compare(a.Term, b.Term) }) {
		want(b.T, fmt.Sprint("why of term ", l.Term), l.Why, why)
		if x.ended[l.Term] == "" {
			want(b.T, "leader that has not ended", b.leader(), l)
		}
		why = l.Replica + ": " + x.ended[l.Term]
	}
	if len(x.told) < 2 {
		b.Fatal("one leader shows nothing")
	}
}
