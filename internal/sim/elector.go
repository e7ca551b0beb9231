package sim

import (
	"context"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/core"
	"github.com/belfry-go/belfry/internal/sim/oracle"
)

// elector elects one of the replicas that stand, in rising terms. While chance may do faults, its terms end at any time, and
// whose term it was may be told of that when there is another leader already.
type elector struct {
	w      *World
	term   int64
	holder *Replica // nil: nobody leads
	life   int      // of its process
}

// ofLeader makes some of the jobs the leader's, one at least.
func ofLeader(list []Job, r *rand.Rand) {
	led := 1 + r.IntN(1<<len(list)-1)
	for i := range list {
		list[i].Leader = led>>i&1 == 1
		list[i].HandOverAfter = []time.Duration{0, 0, time.Second, 4 * time.Second}[r.IntN(4)]
	}
}

// Leader is the replica that was told to lead last, of those that lead; nil: none does.
func (w *World) Leader() *Replica {
	var leader *Replica
	for _, r := range w.replicas {
		if r.leads != 0 && (leader == nil || r.leads > leader.leads) {
			leader = r
		}
	}
	return leader
}

// EndTerm ends the elector's term. Its replica hears of that so much later.
func (w *World) EndTerm(late time.Duration) { w.elector.end(w.elector.term, late, "the scene says so") }

// stand takes a replica's word on whether it may be elected.
func (r *Replica) stand(on bool) {
	e := r.w.elector
	if r.stands = on; on {
		e.soon()
	} else if e.holder == r && e.life == r.life {
		e.end(e.term, 0, "it stands no more")
	}
}

// died frees the term of a process that is gone, when its lease ends.
func (e *elector) died(r *Replica) {
	if e.holder != r {
		return
	}
	term := e.term
	e.w.After(e.w.between(time.Second, 2*time.Second), func() {
		if e.term == term && e.holder == r {
			e.holder = nil
			e.soon()
		}
	})
}

// soon elects somebody after a while.
func (e *elector) soon() {
	gap := e.w.between(5*time.Millisecond, 100*time.Millisecond)
	if e.w.fault(Elector, .3) {
		gap = e.w.between(100*time.Millisecond, 6*time.Second)
	}
	e.w.After(gap, e.elect)
}

func (e *elector) elect() {
	var stand []*Replica
	for _, r := range e.w.replicas {
		if r.up && r.stands && r.elected == 0 {
			stand = append(stand, r)
		}
	}
	if e.holder != nil || len(stand) == 0 {
		return
	}
	e.holder = stand[e.w.rand.IntN(len(stand))]
	e.life, e.term = e.holder.life, e.term+1+e.w.rand.Int64N(3)
	r, term := e.holder, e.term
	r.elected = term
	e.w.note(r.Name, "is elected", term)
	r.after(e.w.between(0, 10*time.Millisecond), func() { r.tell(core.Elected{Term: term}) })
	if e.w.fault(Elector, .7) {
		late := time.Duration(0)
		if e.w.chance(.4) {
			late = e.w.between(0, 3*time.Second)
		}
		e.w.After(e.w.between(10*time.Millisecond, 5*time.Second), func() {
			if !e.w.calm {
				e.end(term, late, "its lease ended")
			}
		})
	}
}

// end ends a term. Its replica hears of that after a while, and another one may be elected meanwhile.
func (e *elector) end(term int64, late time.Duration, why string) {
	r := e.holder
	if r == nil || e.term != term {
		return
	}
	e.holder = nil
	if e.life == r.life {
		r.after(11*time.Millisecond+late, func() { // not before it was told that it is elected
			r.elected = 0
			if r.tell(core.Deposed{Term: term, Why: why}); r.up && r.stands {
				e.soon()
			}
		})
	}
	e.soon()
}

// lead begins what the leader does beside jobs, or ends it, which may take longer than anybody waits.
func (r *Replica) lead(term int64) {
	w := r.w
	if r.leads = term; term != 0 {
		return
	}
	takes := w.between(0, 30*time.Millisecond)
	if w.faults(Leader) && w.chance(.2) {
		takes = w.between(0, w.cfg.Timing.Lease)
	}
	r.after(takes, func() { r.tell(core.Yielded{}) })
}

func (t *tap) leaders() idempotency.Leaders { return t.Store.(idempotency.Leaders) }

func (t *tap) Lead(ctx context.Context, s idempotency.Session, term int64) (idempotency.Leader, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, err := t.leaders().Lead(ctx, s, term)
	return judge(t, "Lead", l, err, func(x *oracle.Oracle) {
		if t.leading.Term != l.Term {
			if strings.HasSuffix(l.Why, "its session ended") { // it is marked dead for that
				x.SessionDead(t.leading.Session, false)
			}
			t.leading = l
			t.note("store: is led by", l.Session, l.Term, l.Why)
		}
		if l.Session == s.ID {
			x.Led(s.ID, l.Term, term == 0)
		}
	})
}

func (t *tap) Resign(ctx context.Context, s idempotency.Session, term int64, why string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := judge(t, "Resign", 0, t.leaders().Resign(ctx, s, term, why), func(*oracle.Oracle) { t.note("store: resigns", s.ID, term, why) })
	return err
}

func (t *tap) Leader(ctx context.Context, namespace string) (idempotency.Leader, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	l, err := t.leaders().Leader(ctx, namespace)
	return judge(t, "Leader", l, err, func(*oracle.Oracle) {})
}
