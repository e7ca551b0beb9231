package sqlite

import (
	"context"
	"fmt"

	"github.com/belfry-go/belfry/idempotency"
)

// elected is an elector's term that lies above all numbers that a store draws here: so each twin compares alike.
const elected = int64(1) << 40

// leads says who leads, with the numbers as twins compare them.
func (w *twin) leads(l idempotency.Leader, err error) string {
	if l.Term > 0 {
		w.term = l.Term
	}
	l.Term, l.Session = w.rank(l.Term), w.rank(l.Session)
	return fmt.Sprintf("%+v %s\n", l, errs(err))
}

func (r *chooser) lead() call1 {
	term := []int64{0, 0, 0, 1, elected + int64(r.IntN(20))}[r.IntN(5)]
	return func(ctx context.Context, w *twin, s idempotency.Session) string {
		return w.leads(w.Lead(ctx, s, term))
	}
}

// resign is most often of the last leader that was seen, be it the session's term or not.
func (r *chooser) resign() call1 {
	why, own, other := []string{"", "é\x00"}[r.IntN(2)], r.IntN(4) > 0, r.IntN(4) == 0
	return func(ctx context.Context, w *twin, s idempotency.Session) string {
		last, err := w.Leader(ctx, "ns")
		said := w.leads(last, err)
		if own {
			s.ID = last.Session
		}
		term := max(w.term, 1)
		if other {
			term++
		}
		return said + errs(w.Resign(ctx, s, term, why)) + w.leads(w.Leader(ctx, "ns"))
	}
}
