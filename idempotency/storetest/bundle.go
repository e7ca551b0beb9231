package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

const (
	namespace  = "ns"
	partitions = 8
	keyed      = "keyed" // a job with keys
	plain      = "plain" // a job without
)

// bundle is what a law works with.
type bundle struct {
	*testing.T
	Harness
	lease time.Duration // of short-lived sessions
	base  time.Time     // the store's now at the first opening, in whole seconds
}

// replica is a session, with what it announced.
type replica struct {
	*bundle
	store   Store
	session idempotency.Session
	opening idempotency.Opening
	now     time.Time // the store's at the opening
	hash    string    // of all its definitions
	defs    []idempotency.Declaration
	nonce   int64
}

// open opens a session that outlives the law, of a process of its own.
func (b *bundle) open(name string, change ...func(*idempotency.Opening)) *replica {
	b.Helper()
	r := &replica{bundle: b, store: b.Store, opening: idempotency.Opening{
		Namespace: namespace, Replica: name, Boot: name, Partitions: partitions,
		Lease: time.Hour, Horizon: 90 * time.Minute, Retention: 2 * time.Hour, Tolerance: 100 * time.Millisecond,
	}}
	for _, f := range change {
		f(&r.opening)
	}
	s, renewal, err := r.store.OpenSession(b.Context(), r.opening)
	if err != nil {
		b.Fatalf("open session: %v", err)
	}
	r.session, r.now = s, renewal.Now
	if b.base.IsZero() {
		b.base = r.now.Truncate(time.Second)
	}
	return r
}

// ready opens a session and declares both jobs with one hash.
func (b *bundle) ready(name, hash string, change ...func(*idempotency.Opening)) *replica {
	b.Helper()
	r := b.open(name, change...)
	r.declare(hash, keyed, plain)
	return r
}

// brief makes a session short-lived.
func (b *bundle) brief(o *idempotency.Opening) { o.Lease = b.lease }

// ago is an instant before the first opening, in whole seconds.
func (b *bundle) ago(d time.Duration) time.Time { return b.base.Add(-d) }

// second is another handle on the data, or the only one.
func (b *bundle) second() Store {
	if b.Second == nil {
		return b.Store
	}
	return b.Second(b.T)
}

// eventually asks again and again until the answer is true. It moves the
// store's clock between, or lets time pass.
func (b *bundle) eventually(what string, ask func() bool) {
	b.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for range 1000 {
		if ask() {
			return
		}
		if b.Advance != nil {
			b.Advance(20 * time.Millisecond)
			continue
		}
		<-tick.C
	}
	b.Fatalf("never: %s", what)
}

// alive ends the law if the call failed. A short-lived session that is dead
// begins the law anew.
func (r *replica) alive(call string, err error) {
	r.Helper()
	if errors.Is(err, idempotency.ErrSessionDead) && r.opening.Lease == r.lease && r.Advance == nil {
		panic(tooShort{})
	}
	if err != nil {
		r.Fatalf("%s: %v", call, err)
	}
}

// lapse waits until the session's lease has ended.
func (r *replica) lapse() {
	r.Helper()
	r.eventually("the session lapses", func() bool {
		_, err := r.store.Mine(r.Context(), r.session)
		return errors.Is(err, idempotency.ErrSessionDead)
	})
}

func (r *replica) close() {
	r.Helper()
	if err := r.store.CloseSession(r.Context(), r.session); err != nil {
		r.Fatalf("close session: %v", err)
	}
}

func (r *replica) mark(dead ...*replica) {
	r.Helper()
	ids := make([]int64, len(dead))
	for i, d := range dead {
		ids[i] = d.session.ID
	}
	r.alive("mark dead", r.store.MarkDead(r.Context(), r.session, ids))
}

func want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Fatalf("%s: got %+v, want %+v", what, got, want)
	}
}

// wantTime compares instants, and that they are UTC.
func wantTime(t testing.TB, what string, got, want time.Time) {
	t.Helper()
	if !got.Equal(want) || got.Location() != time.UTC {
		t.Fatalf("%s: got %v, want %v", what, got, want.UTC())
	}
}

// names makes what was listed comparable.
func names(runs []idempotency.Run) string {
	var s []string
	for _, r := range runs {
		s = append(s, r.ID.Job+"/"+r.ID.Key+"@"+r.ID.Due.Format(time.TimeOnly))
	}
	return fmt.Sprint(s)
}

func keys(runs []idempotency.Run) string {
	var s []string
	for _, r := range runs {
		s = append(s, r.ID.Key)
	}
	slices.Sort(s)
	return fmt.Sprint(s)
}
