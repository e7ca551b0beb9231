package scheduler_test

import (
	"context"
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
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

// start runs a replica that the board tells of the others.
func (b *board) start(ctx context.Context, t *testing.T, f *fleet, name string, store idempotency.Store) (poster, <-chan error) {
	t.Helper()
	p := poster{&ledger{seat: seat{f.gossip, name}}, b}
	_, done := p.runAs(ctx, t, p, store)
	return p, done
}

// F37: a replica that starts where the others have seen a higher fence than the store has drawn knows that this was rolled
// back; and then those who were there before believe it.
func TestRollbackIsFoundByWhoStarts(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		b := &board{facts: map[string]map[string]string{}}
		ctx, stop := context.WithCancel(t.Context())
		first, firstDone := b.start(ctx, t, f, "first", f.store)
		time.Sleep(5 * time.Second)
		fact := first.last().facts
		if first.last().state != "serving" || fact["fence"] == "" || fact["store"] == "" || fact["zones"] != jobs.ZoneVersion() || len(fact) != 3 {
			t.Fatalf("announced %+v, want serving, with the store, a fence and the zone data", first.last())
		}
		late, lateDone := b.start(ctx, t, f, "late", putBack{f.store})
		time.Sleep(5 * time.Second)
		if got := late.last(); got.state != "unfit" || !strings.Contains(got.reason, "the store was rolled back from fence") || got.facts["fence"] < fact["fence"] || got.facts["rolled-back"] == "" {
			t.Errorf("the new replica announced %+v", got)
		}
		if got := first.last(); got.state != "unfit" || !strings.Contains(got.reason, "members saw") || got.facts["rolled-back"] == "" {
			t.Errorf("the replica that was there before announced %+v", got)
		}
		if lag := first.last().at.Sub(late.last().at); lag > 50*time.Millisecond {
			t.Errorf("it did so %v after the new one", lag)
		}
		stop()
		for _, done := range []<-chan error{firstDone, lateDone} {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// F37: a replica learns while it runs what another one has seen, by the other's facts.
func TestRollbackIsToldByFacts(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		b := &board{facts: map[string]map[string]string{}}
		ctx, stop := context.WithCancel(t.Context())
		first, done := b.start(ctx, t, f, "first", f.store)
		time.Sleep(5 * time.Second)
		fact := first.last().facts
		b.mu.Lock()
		b.facts["odd"] = map[string]string{"store": fact["store"], "fence": "many", "rolled-back": "yes"}
		b.facts["elsewhere"] = map[string]string{"store": "another", "fence": "9000", "rolled-back": "yes"}
		b.mu.Unlock()
		time.Sleep(5 * time.Second)
		if got := first.last(); got.state != "serving" {
			t.Errorf("by facts that are none, or of another store, it announced %+v", got)
		}
		b.mu.Lock()
		b.facts["third"] = map[string]string{"store": fact["store"], "fence": "5000"}
		b.mu.Unlock()
		time.Sleep(5 * time.Second)
		if got := first.last(); got.state != "unfit" || !strings.Contains(got.reason, "from fence 5000 to") || got.facts["fence"] != "5000" {
			t.Errorf("it announced %+v", got)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
