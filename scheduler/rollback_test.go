package scheduler_test

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// board is a place at which several ledgers see each other's facts.
type board struct {
	mu    sync.Mutex
	facts map[string]map[string]string
}

// poster is a ledger whose facts all on the board see.
type poster struct {
	*ledger
	board *board
}

func (p poster) Announce(ctx context.Context, state, layout, reason string, facts map[string]string) error {
	p.board.mu.Lock()
	p.board.facts[p.name] = maps.Clone(facts)
	p.board.mu.Unlock()
	return p.ledger.Announce(ctx, state, layout, reason, facts)
}

func (p poster) Facts() map[string]map[string]string {
	p.board.mu.Lock()
	defer p.board.mu.Unlock()
	all := map[string]map[string]string{}
	for name, f := range p.board.facts {
		all[name] = maps.Clone(f)
	}
	return all
}

// putBack is a store whose numbers went back by a thousand.
type putBack struct{ idempotency.Store }

func (s putBack) OpenSession(ctx context.Context, o idempotency.Opening) (idempotency.Session, idempotency.Renewal, error) {
	x, r, err := s.Store.OpenSession(ctx, o)
	r.Highest -= 1000
	return x, r, err
}

func (s putBack) RenewSession(ctx context.Context, x idempotency.Session) (idempotency.Renewal, error) {
	r, err := s.Store.RenewSession(ctx, x)
	r.Highest -= 1000
	return r, err
}

// F37: a replica that starts where the others have seen their store rolled back learns it from their facts, and so does one
// that was there before.
func TestRollbackIsToldByFacts(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		b := &board{facts: map[string]map[string]string{}}
		ctx, stop := context.WithCancel(t.Context())
		start := func(name string, store idempotency.Store) (poster, <-chan error) {
			p := poster{&ledger{seat: seat{f.gossip, name}}, b}
			_, done := p.runAs(ctx, t, p, store)
			time.Sleep(5 * time.Second)
			return p, done
		}
		first, firstDone := start("first", f.store)
		fact := first.last().facts
		if first.last().state != "serving" || fact["fence"] == "" || fact["store"] == "" {
			t.Fatalf("announced %+v, want serving, with the store and a fence", first.last())
		}
		late, lateDone := start("late", putBack{f.store})
		if got := late.last(); got.state != "unfit" || !strings.Contains(got.reason, "the store was rolled back from fence") || got.facts["fence"] < fact["fence"] {
			t.Errorf("the new replica announced %+v", got)
		}
		b.mu.Lock()
		b.facts["third"] = map[string]string{"store": fact["store"], "fence": "5000"}
		b.facts["odd"] = map[string]string{"store": fact["store"], "fence": "many"}
		b.facts["elsewhere"] = map[string]string{"store": "another", "fence": "9000"}
		b.mu.Unlock()
		time.Sleep(5 * time.Second)
		if got := first.last(); got.state != "unfit" || !strings.Contains(got.reason, "from fence 5000 to") || got.facts["fence"] != "5000" {
			t.Errorf("the replica that was there before announced %+v", got)
		}
		stop()
		for _, done := range []<-chan error{firstDone, lateDone} {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}
