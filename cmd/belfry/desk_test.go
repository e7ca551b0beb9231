package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/sqlite"
)

// desk is a namespace in a SQLite file, with a replica's session through which a test does what replicas do. In a bubble
// its clock and the commands' is the bubble's.
type desk struct {
	t       *testing.T
	url     string
	store   idempotency.Store
	session idempotency.Session
	nonce   int64
	term    int64 // in which it leads, or did last
}

// newDesk makes the file, of a replica that stays alive.
func newDesk(t *testing.T) *desk {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.db")
	store, err := sqlite.Open(t.Context(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return deskOf(t, "sqlite:"+path, store)
}

func deskOf(t *testing.T, url string, store idempotency.Store) *desk {
	t.Helper()
	d := &desk{t: t, url: url, store: store}
	var err error
	if d.session, _, err = store.OpenSession(t.Context(), idempotency.Opening{
		Namespace: "billing", Replica: "a", Boot: "b", Partitions: 8,
		Lease: 100 * 24 * time.Hour, Horizon: 24 * time.Hour, Retention: 7 * 24 * time.Hour,
	}); err != nil {
		t.Fatal(err)
	}
	return d
}

// belfry runs a command about the namespace.
func (d *desk) belfry(args ...string) result {
	d.t.Helper()
	return belfry(d.t, "", append(args, "--store", d.url, "--namespace", "billing")...)
}

func (d *desk) check(err error) {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
}

// job is what the desk declares.
type job struct {
	name, schedule string
	keyed          bool
	opened, next   time.Time // zero: an efficiency job
	leader         bool
}

func (j job) definition() idempotency.Definition {
	return idempotency.Definition{Job: j.name, Schedule: j.schedule, Hash: "h", Keyed: j.keyed, Leader: j.leader}
}

func (d *desk) declare(list ...job) {
	d.t.Helper()
	var all []idempotency.Declaration
	for _, j := range list {
		all = append(all, idempotency.Declaration{Definition: j.definition(), Opened: j.opened, Next: j.next})
	}
	d.nonce++
	_, err := d.store.Declare(d.t.Context(), d.session, d.nonce, all)
	d.check(err)
}

// decide decides a job's dues, those of a leader's job in the desk's term, and moves it to what is due next.
func (d *desk) decide(j job, opened, next time.Time, runs ...time.Time) []idempotency.Run {
	d.t.Helper()
	d.nonce++
	var term int64
	if j.leader {
		term = d.term
	}
	seen := idempotency.Entry{Definition: j.definition(), Opened: j.opened, Next: j.next, InForce: "h"}
	won, err := d.store.Decide(d.t.Context(), d.session, d.nonce, []idempotency.Decision{{
		Seen: seen, Definition: j.definition(), Opened: opened, Next: next, Keyed: j.keyed, Run: runs, Claim: len(runs), Term: term,
	}})
	d.check(err)
	if !won[0].Won {
		d.t.Fatalf("the decision of %s was lost: %+v", j.name, won[0])
	}
	return won[0].Runs
}

// claim claims a run of a keyed job, and returns how it ends done.
func (d *desk) claim(job, key string, due time.Time) idempotency.Finish {
	d.t.Helper()
	d.nonce++
	id := idempotency.ID{Job: job, Key: key, Due: due}
	answers, err := d.store.Claim(d.t.Context(), d.session, d.nonce, []idempotency.Claim{{ID: id, Hash: "h", Exclusive: true}})
	d.check(err)
	if answers[0].Verdict != idempotency.Won {
		d.t.Fatalf("%q is not claimed: %+v", key, answers[0])
	}
	return idempotency.Finish{ID: id, Fence: answers[0].Fence, Outcome: idempotency.Done, Attempt: 1}
}

// leaders is the desk's store as that of who leads.
func (d *desk) leaders() idempotency.Leaders { return d.store.(idempotency.Leaders) }

// lead makes the desk's replica the leader.
func (d *desk) lead() {
	d.t.Helper()
	l, err := d.leaders().Lead(d.t.Context(), d.session, 0)
	d.check(err)
	if d.term = l.Term; l.Session != d.session.ID {
		d.t.Fatalf("somebody else leads: %+v", l)
	}
}

func (d *desk) resign(why string) {
	d.t.Helper()
	d.check(d.leaders().Resign(d.t.Context(), d.session, d.term, why))
}

func (d *desk) finish(list ...idempotency.Finish) {
	d.t.Helper()
	answers, err := d.store.Finish(d.t.Context(), "billing", list)
	d.check(err)
	for i, a := range answers {
		if a != idempotency.Finished {
			d.t.Fatalf("%+v: %v", list[i], a)
		}
	}
}
