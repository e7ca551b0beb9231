package ordeal

import (
	"context"
	"strings"
	"testing"
	"time"
)

// F41: handlers hold all connections that there are. The store keeps its own: sessions are renewed, and what is held is
// finished.
func TestNoConnectionLeft(t *testing.T) {
	for _, limit := range []struct {
		name  string
		conns int
		role  bool
	}{
		{"of the pool", 7, false},
		{"of the role", plenty, true},
	} {
		t.Run(limit.name, func(t *testing.T) {
			each(t, onServer, func(t *testing.T, s *site) {
				s.exec(t, s.user...)
				h := s.dialect.open(t, s.dsn(s.db.Name), limit.conns)
				r := open(t, h, "a")
				due := openDue(t, h)
				r.works(due, "before")
				if limit.role {
					s.exec(t, s.limit)
				}
				held := drain(t, h)
				for range 5 {
					ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
					_, err := h.RenewSession(ctx, r.session)
					cancel()
					if err != nil {
						t.Fatalf("renewal while handlers hold %d connections: %v", held, err)
					}
				}
				r.works(due, "while")
				t.Logf("handlers hold %d connections; renewals, claims and finishes go on", held)
			})
		})
	}
}

// drain takes connections until there are none.
func drain(t *testing.T, h *handle) (held int) {
	t.Helper()
	for ; held < 2*plenty; held++ {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		err := h.take(ctx)
		cancel()
		if err != nil {
			t.Logf("no connection is left: %v", err)
			return held
		}
	}
	t.Fatalf("%d connections, and more to come: nothing is limited", held)
	return held
}

// F40: the store cannot be written while it runs. That is an error that says so, and over when it is.
func TestUnwritable(t *testing.T) {
	each(t, onOwnServer, func(t *testing.T, s *site) {
		s.exec(t, s.user...)
		h := s.dialect.open(t, s.dsn(s.db.Name), plenty)
		r := open(t, h, "a")
		due := openDue(t, h)
		c := claims(due, "held", 3)
		held := finishes(c, r.wins(c))
		s.exec(t, s.forbid...)
		r.nonce++
		for _, c := range []call{
			{"RenewSession", func(ctx context.Context) error { _, err := h.RenewSession(ctx, r.session); return err }},
			{"Claim", func(ctx context.Context) error {
				_, err := h.Claim(ctx, r.session, r.nonce, claims(due, "while", 1))
				return err
			}},
			{"Finish", func(ctx context.Context) error { _, err := h.Finish(ctx, namespace, held); return err }},
		} {
			ctx, cancel := context.WithTimeout(t.Context(), patient)
			err := c.make(ctx)
			cancel()
			if err == nil || !strings.Contains(err.Error(), "denied") && !strings.Contains(err.Error(), "read-only") {
				t.Errorf("%s in a store that cannot be written: %v; the reason is not told", c.name, err)
			}
			t.Logf("%s: %v", c.name, err)
		}
		s.exec(t, s.permit...)
		if answers := r.wins(claims(due, "while", 1)); answers[0].Crashes != 0 {
			t.Errorf("the claim that failed left something behind: %+v", answers[0])
		}
		r.ends(held)
	})
}
