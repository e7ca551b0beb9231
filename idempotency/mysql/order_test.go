package mysql

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/testservers"
)

// asking is held while somebody asks who waits: the server shows what it showed before, until nobody has asked for 100 ms.
var asking sync.Mutex

// waits returns once some transaction in the database waits for a lock, or done is closed: then false.
func waits(t *testing.T, db *sql.DB, done <-chan struct{}) bool {
	t.Helper()
	for {
		asking.Lock()
		pause := time.NewTimer(150 * time.Millisecond)
		<-pause.C
		var n int
		err := db.QueryRow(`SELECT count(*) FROM information_schema.innodb_trx t JOIN information_schema.processlist p ON p.id = t.trx_mysql_thread_id
WHERE t.trx_state = 'LOCK WAIT' AND p.db = DATABASE()`).Scan(&n)
		asking.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if n > 0 {
			return true
		}
		select {
		case <-done:
			return false
		default:
		}
	}
}

// While a claim is under way, others may claim, finish, renew and save their passes; but whatever would make the claim
// wrong waits until it has committed: the end of its session, a decision of its job, the closing of its due, a race
// for its key.
func TestWhoWaitsForAClaim(t *testing.T) {
	t.Parallel()
	d := testservers.MariaDB(t).Database(t)
	admin := client(t, d, "")
	s := openOn(t, client(t, d, hostile), nil)
	w := newWorker(t, s)
	other := w.beside(t, s)
	ended := other.wins(t, "ended")
	ctx := context.Background()
	closing := w.beside(t, s)
	full := make([]byte, 4096/8)
	for i := range full {
		full[i] = 0xff
	}
	for _, x := range []struct {
		name  string
		by    *worker // who claims meanwhile
		waits bool
		call  func() error
	}{
		{"RenewSession", w, false, func() error { _, err := s.RenewSession(ctx, w.session); return err }},
		{"Claim", w, false, func() error { _, err := other.claim(ctx, other.insert("elsewhere")); return err }},
		{"Finish", w, false, func() error { _, err := s.Finish(ctx, "ns", []idempotency.Finish{ended}); return err }},
		{"SavePass", w, false, func() error {
			_, err := s.SavePass(ctx, other.session, []idempotency.Pass{{Job: "keyed", Due: w.due, Finished: full}})
			return err
		}},
		{"Declare", w, false, func() error {
			_, err := s.Declare(ctx, other.session, 1, []idempotency.Declaration{{Definition: idempotency.Definition{Job: "keyed", Hash: "h1", Keyed: true}, Opened: w.due}})
			return err
		}},
		{"Lagging", w, false, func() error {
			_, err := s.Lagging(ctx, other.session, idempotency.LagQuery{Limit: 10})
			return err
		}},
		{"Overview", w, false, func() error { _, err := s.Overview(ctx, "ns"); return err }},
		{"Retire", w, false, func() error { _, err := s.Retire(ctx, other.session, time.Hour); return err }},
		{"Submit", w, true, func() error {
			_, err := s.Submit(ctx, "ns", idempotency.Command{Request: "r", Kind: idempotency.Trigger, ID: idempotency.ID{Job: "keyed", Key: "triggered"}, Actor: "a"})
			return err
		}},
		{"ClaimOfTheKey", w, true, func() error { _, err := other.claim(ctx, other.insert("ClaimOfTheKey")); return err }},
		{"Decide", w, true, func() error {
			entries, err := s.Declare(ctx, other.session, 1, []idempotency.Declaration{{Definition: idempotency.Definition{Job: "keyed", Hash: "h1", Keyed: true}, Opened: w.due}})
			if err == nil {
				_, err = s.Decide(ctx, other.session, 99, []idempotency.Decision{{Seen: entries[0], Definition: entries[0].Definition, Opened: entries[0].Opened, Keyed: true}})
			}
			return err
		}},
		{"CloseSession", closing, true, func() error { return s.CloseSession(ctx, closing.session) }},
		{"CloseDue", w, true, func() error { _, err := s.CloseDue(ctx, other.session, "keyed", w.due, nil); return err }},
	} {
		t.Run(x.name, func(t *testing.T) {
			under, commit, done := make(chan struct{}), make(chan struct{}), make(chan struct{})
			claimed := make(chan error)
			go func() {
				claimed <- s.with(ctx, x.by.session, shared, func(c *call) error {
					y := claiming{changes: changes{call: c, nonce: 77}, batch: []idempotency.Claim{x.by.insert(x.name)}}
					err := y.hold()
					if err == nil {
						err = y.facts(noLock)
					}
					if y.judge(); err == nil {
						err = y.write()
					}
					close(under)
					<-commit
					return err
				})
			}()
			<-under
			go func() {
				if err := x.call(); err != nil {
					t.Errorf("%s: %v", x.name, err)
				}
				close(done)
			}()
			if waited := waits(t, admin, done); waited != x.waits {
				t.Errorf("waited %v, want %v", waited, x.waits)
			}
			close(commit)
			if err := <-claimed; err != nil {
				t.Errorf("claim: %v", err)
			}
			<-done
		})
	}
}

// A claim that had to wait for its key draws a higher fence than any that was drawn meanwhile, for it draws once it
// holds the key: the law of fences.
func TestFenceIsDrawnUnderTheKey(t *testing.T) {
	t.Parallel()
	d := testservers.MariaDB(t).Database(t)
	admin := client(t, d, "")
	s := openOn(t, client(t, d, ""), nil)
	w := newWorker(t, s)
	holder, err := admin.BeginTx(t.Context(), &sql.TxOptions{Isolation: sql.LevelReadCommitted})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = holder.Rollback() }()
	if _, err := holder.Exec(`INSERT INTO belfry_running (space, job, run_key, slot, due, request, session) VALUES (1, 'keyed', 'k', '', 0, '', 1)`); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	var late idempotency.Finish
	go func() {
		defer close(done)
		late = w.wins(t, "k")
	}()
	if !waits(t, client(t, d, ""), done) {
		t.Fatal("the claim did not wait for its key")
	}
	meanwhile := w.beside(t, s).wins(t, "other").Fence
	if err := holder.Rollback(); err != nil {
		t.Fatal(err)
	}
	<-done
	if late.Fence <= meanwhile {
		t.Errorf("fence %d of the claim that came to its key later, %d of one before; want a higher one", late.Fence, meanwhile)
	}
}
