package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/testservers"
)

// candidate is a session that may lead.
func candidate(t testing.TB, s *Store, replica string, lease time.Duration) idempotency.Session {
	t.Helper()
	ses, _, err := s.OpenSession(t.Context(), idempotency.Opening{
		Namespace: "ns", Replica: replica, Boot: replica, Partitions: 8, Lease: lease, Horizon: time.Hour, Retention: 2 * time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	return ses
}

// leads makes the session the leader.
func leads(t testing.TB, s *Store, ses idempotency.Session, term int64) idempotency.Leader {
	t.Helper()
	l, err := s.Lead(t.Context(), ses, term)
	if err != nil || l.Session != ses.ID || !l.Until.IsZero() {
		t.Fatalf("lead: %+v %v, want session %d to lead", l, err, ses.ID)
	}
	return l
}

// Fifty would follow a leader whose lease has ended, at once: one of them does, each is told so and gets no error, and the
// session of the one before is dead for good. F42.
func TestFiftyFollow(t *testing.T) {
	t.Parallel()
	d, c := testservers.MariaDB(t).Database(t), newClock()
	stores := []*Store{openOn(t, client(t, d, ""), nil), openOn(t, client(t, d, ""), nil)}
	for _, s := range stores {
		s.clock = c.sql
	}
	leads(t, stores[0], candidate(t, stores[0], "first", time.Minute), 0)
	c.Advance(time.Hour)
	var wg sync.WaitGroup
	answers, start := make(chan idempotency.Leader, 50), make(chan struct{})
	for i := range cap(answers) {
		s := stores[i%2]
		ses := candidate(t, s, "next", time.Minute)
		wg.Go(func() {
			<-start
			l, err := s.Lead(context.Background(), ses, 0)
			if err != nil {
				t.Errorf("lead: %v", err)
			}
			answers <- l
		})
	}
	close(start)
	wg.Wait()
	close(answers)
	told := make(map[idempotency.Leader]int)
	for l := range answers {
		told[l]++
	}
	is, err := stores[1].Leader(t.Context(), "ns")
	if err != nil || is.Why != "first: its session ended" || is.Replica != "next" || told[is] != cap(answers) {
		t.Errorf("the leader is %+v %v, and answered was %v", is, err, told)
	}
	if marked := (&worker{Store: stores[0]}).count(t, `SELECT count(*) FROM belfry_session WHERE marked IS NOT NULL`); marked != 1 {
		t.Errorf("%d sessions are marked dead, want that of the one before", marked)
	}
}

// While a new leader's call is under way, whom it deposes renews, claims, and is still the leader to those who ask; but
// what would make the call wrong waits until it has committed: the end of its session, and the resignation of who led.
func TestWhoWaitsForALead(t *testing.T) {
	t.Parallel()
	d := testservers.MariaDB(t).Database(t)
	admin := client(t, d, "")
	s := openOn(t, client(t, d, hostile), nil)
	w := newWorker(t, s)
	ctx := t.Context()
	third := w.beside(t, s)
	for i, x := range []struct {
		name  string
		waits bool
		call  func(was idempotency.Leader, by idempotency.Session) error
	}{
		{"RenewSession", false, func(idempotency.Leader, idempotency.Session) error {
			_, err := s.RenewSession(ctx, w.session)
			return err
		}},
		{"Claim", false, func(idempotency.Leader, idempotency.Session) error {
			_, err := w.claim(ctx, w.insert("k"))
			return err
		}},
		{"Lead", false, func(was idempotency.Leader, _ idempotency.Session) error {
			l, err := s.Lead(ctx, third.session, 0)
			if err == nil && l != was {
				t.Errorf("the leader is %+v, want %+v", l, was)
			}
			return err
		}},
		{"Resign", true, func(was idempotency.Leader, _ idempotency.Session) error {
			return s.Resign(ctx, w.session, was.Term, "late")
		}},
		{"CloseSession", true, func(_ idempotency.Leader, by idempotency.Session) error { return s.CloseSession(ctx, by) }},
	} {
		t.Run(x.name, func(t *testing.T) {
			was := leads(t, s, w.session, int64(1_000_000*(2*i+1)))
			by := w.beside(t, s).session
			under, commit, done, led := make(chan struct{}), make(chan struct{}), make(chan struct{}), make(chan error)
			go func() {
				led <- s.with(ctx, by, shared, func(c *call) error {
					_, err := c.lead(by, was.Term+1)
					close(under)
					<-commit
					return err
				})
			}()
			<-under
			go func() {
				defer close(done)
				if err := x.call(was, by); err != nil {
					t.Errorf("%s: %v", x.name, err)
				}
			}()
			if waited := waits(t, admin, done); waited != x.waits {
				t.Errorf("waited %v, want %v", waited, x.waits)
			}
			close(commit)
			if err := <-led; err != nil {
				t.Errorf("lead: %v", err)
			}
			<-done
			if l, err := s.Leader(ctx, "ns"); err != nil || l.Session != by.ID || l.Term != was.Term+1 || l.Until.IsZero() == (x.name == "CloseSession") {
				t.Errorf("the leader is %+v %v, want session %d in term %d", l, err, by.ID, was.Term+1)
			}
		})
	}
}

// A call that had to wait for the leader's row draws a term above all fences that were drawn meanwhile, and begins it no
// earlier than what it waited for ended; whether the row was there before or not.
func TestTermIsDrawnUnderTheRow(t *testing.T) {
	t.Parallel()
	for name, hold := range map[string]string{
		"Locked": `UPDATE belfry_leader SET why = 'changes'`,
		"New":    `INSERT INTO belfry_leader (space, term, session, since, why) VALUES (1, 7, 1, 0, '')`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := testservers.MariaDB(t).Database(t)
			s := openOn(t, client(t, d, ""), nil)
			w := newWorker(t, s)
			if name == "Locked" {
				l := leads(t, s, w.session, 0)
				if err := s.Resign(t.Context(), w.session, l.Term, ""); err != nil {
					t.Fatal(err)
				}
			}
			holder, err := client(t, d, "").BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = holder.Rollback() }()
			if _, err := holder.Exec(hold); err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			var late idempotency.Leader
			go func() {
				defer close(done)
				late, err = s.Lead(t.Context(), w.session, 0)
			}()
			if !waits(t, client(t, d, ""), done) {
				t.Fatal("the call did not wait for the row")
			}
			meanwhile := w.beside(t, s).wins(t, "other")
			if err := holder.Rollback(); err != nil {
				t.Fatal(err)
			}
			<-done
			if err != nil || late.Term <= meanwhile.Fence {
				t.Errorf("term %d %v, and fence %d was drawn before the row was held", late.Term, err, meanwhile.Fence)
			}
			if began := w.run(t, "other").Started; late.Since.Before(began) {
				t.Errorf("the term began at %v, before %v, when the row was not free", late.Since, began)
			}
		})
	}
}

// The connection is lost at the commit of a Lead, which is repeated as it was: where the commit arrived, the term is the
// one that it drew.
func TestLeadIsNotAnswered(t *testing.T) {
	t.Parallel()
	server := testservers.MariaDB(t)
	for name, arrive := range map[string]bool{"it arrived": true, "it did not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c, d := &cutter{arrive: arrive}, server.Database(t)
			s, other := openOn(t, c.open(t, d), nil), openOn(t, client(t, d, ""), nil)
			ses := candidate(t, s, "a", time.Hour)
			c.armed.Store(true)
			if l, err := s.Lead(t.Context(), ses, 0); err == nil || !strings.Contains(err.Error(), "the commit was not answered") {
				t.Fatalf("lead: %+v %v, want a commit that was not answered", l, err)
			}
			var before idempotency.Leader
			if arrive {
				before = leader(t, other, func(l idempotency.Leader) bool { return l.Term > 0 })
			}
			if l := leads(t, s, ses, 0); arrive && l != before {
				t.Errorf("the repetition is answered %+v, and the first one made %+v", l, before)
			}
		})
	}
}

// leader waits until who leads is as wanted: the server commits when it comes to it.
func leader(t testing.TB, s *Store, want func(idempotency.Leader) bool) idempotency.Leader {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		l, err := s.Leader(ctx, "ns")
		if err != nil {
			t.Fatal(err)
		}
		if want(l) {
			return l
		}
	}
}

// A session whose lease ends while its Lead waits for the row does not lead.
func TestLeaseEndsInLead(t *testing.T) {
	t.Parallel()
	d := testservers.MariaDB(t).Database(t)
	s, admin := openOn(t, client(t, d, ""), nil), client(t, d, "")
	was := leads(t, s, candidate(t, s, "first", time.Hour), 0)
	late := candidate(t, s, "late", time.Hour)
	holder, err := admin.Begin()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback() }()
	if _, err := holder.Exec(`UPDATE belfry_leader SET why = 'changes'`); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if l, err := s.Lead(t.Context(), late, was.Term+1); !errors.Is(err, idempotency.ErrSessionDead) {
			t.Errorf("lead: %+v %v, want %v", l, err, idempotency.ErrSessionDead)
		}
	}()
	if !waits(t, admin, done) {
		t.Fatal("the call did not wait for the row")
	}
	run(t, admin, fmt.Sprintf(`UPDATE belfry_lease SET expires = 0 WHERE session = %d`, late.ID))
	if err := holder.Rollback(); err != nil {
		t.Fatal(err)
	}
	<-done
	if l, err := s.Leader(t.Context(), "ns"); err != nil || l != was {
		t.Errorf("the leader is %+v %v, want %+v", l, err, was)
	}
}
