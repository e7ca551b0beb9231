package ordeal

import (
	"errors"
	"testing"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/testservers"
)

// F37: the server comes back with older data, as after a fail-over to a copy that lagged behind. What was acknowledged
// in between is gone, and no store can know that; but a renewal tells it, by its highest fence, to whoever knew more.
func TestRolledBack(t *testing.T) {
	each(t, onOwnServer, func(t *testing.T, s *site) {
		p := s.through(t)
		h := s.open(t)
		r := open(t, h, "a")
		due := openDue(t, h)
		r.works(due, "kept")
		if err := s.server.Stop(); err != nil {
			t.Fatal(err)
		}
		old := s.server.Copy(t, testservers.Options{})
		if err := s.server.Restart(); err != nil {
			t.Fatal(err)
		}
		works(t, h)

		c := claims(due, "lost", 20)
		lost := finishes(c, r.wins(c))
		later := open(t, h, "later")
		before, err := h.RenewSession(t.Context(), r.session)
		if err != nil {
			t.Fatal(err)
		}
		p.Target(old.Addr())
		p.Reset()
		works(t, h)
		after, err := h.RenewSession(t.Context(), r.session)
		if err != nil {
			t.Fatalf("renewal of a session that the copy has: %v", err)
		}
		if after.Store != before.Store {
			t.Errorf("the identity was %q and is %q; it is the store's for life", before.Store, after.Store)
		}
		if after.Highest >= before.Highest {
			t.Errorf("highest fence %d after %d was told: nobody can find out that the store was put back", after.Highest, before.Highest)
		}
		if _, err := h.RenewSession(t.Context(), later.session); !errors.Is(err, idempotency.ErrSessionDead) {
			t.Errorf("renewal of a session that the copy does not have: %v, want ErrSessionDead", err)
		}
		answers, err := h.Finish(t.Context(), namespace, lost)
		for i := range answers {
			if answers[i] != idempotency.Fenced {
				t.Errorf("finish of %v, which the copy does not have: %d, want fenced", lost[i].ID, answers[i])
			}
		}
		t.Logf("told: highest fence %d after %d (finish: %v)", after.Highest, before.Highest, err)
	})
}

// F38: an empty database is in the place of the one that the store knew. Its calls say so, and make nothing there; and
// once somebody else has made a store of it, an opened session tells that this is another one.
func TestReplacedByEmpty(t *testing.T) {
	each(t, onOwnServer, func(t *testing.T, s *site) {
		p := s.through(t)
		h := s.open(t)
		r := open(t, h, "a")
		due := openDue(t, h)
		r.works(due, "before")
		s.db = s.private(t, testservers.Options{}).Database(t) // of the same name
		p.Target(s.db.Addr)
		p.Reset()
		for _, c := range r.calls(due) {
			err := c.make(t.Context())
			if err == nil || errors.Is(err, idempotency.ErrSessionDead) || errors.Is(err, idempotency.ErrRefused) {
				t.Errorf("%s on an empty database: %v; want an error that says what is missing", c.name, err)
			}
			if c.name == "Claim" {
				t.Logf("told: %v", err)
			}
		}
		if n := s.ask(t, s.tables); n != 0 {
			t.Errorf("%d tables were made by calls of a store that is gone", n)
		}

		s.open(t) // another replica, which starts now
		if _, err := h.RenewSession(t.Context(), r.session); !errors.Is(err, idempotency.ErrSessionDead) {
			t.Errorf("renewal in another store: %v, want ErrSessionDead", err)
		}
		_, told, err := h.OpenSession(t.Context(), opening("again"))
		if err == nil && told.Store == r.told.Store {
			t.Errorf("a session in another store was told the old identity, %q: nobody can find out", told.Store)
		}
		t.Logf("told: identity %q after %q, %v", told.Store, r.told.Store, err)
	})
}
