package storetest

import (
	"fmt"
	"reflect"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var overviewLaws = []law{
	{"EmptyNamespace", overviewOfAnEmptyNamespace},
	{"Entries", overviewEntries},
	{"OpenDuesWithThePassesOfAll", overviewOpenDues},
	{"LiveSessions", overviewSessions},
	{"DuesOldestFirst", duesOldestFirst},
	{"DuesKeepTheirKeys", duesKeepTheirKeys},
}

func (b *bundle) overview() idempotency.Overview {
	b.Helper()
	o, err := b.Store.Overview(b.Context(), namespace)
	if err != nil {
		b.Fatalf("overview: %v", err)
	}
	return o
}

func (b *bundle) dues(job string, from, to time.Time) []idempotency.Due {
	b.Helper()
	var list []idempotency.Due
	for d, err := range b.Store.Dues(b.Context(), namespace, job, from, to) {
		if err != nil {
			b.Fatalf("dues: %v", err)
		}
		list = append(list, d)
	}
	return list
}

func overviewOfAnEmptyNamespace(b *bundle) {
	for range 2 {
		o := b.overview()
		want(b.T, "partitions, entries, open dues and sessions", o.Partitions+len(o.Entries)+len(o.Open)+len(o.Sessions), 0)
		b.ready("o", "h1", func(o *idempotency.Opening) { o.Namespace = "other" })
	}
	if _, err := b.Store.Overview(b.Context(), "no name"); err == nil {
		b.Fatal("a namespace that is no name was taken")
	}
}

func overviewEntries(b *bundle) {
	r := b.ready("a", "h1")
	z := b.ready("z", "h2")
	r.runs(0, b.ago(time.Minute))
	b.pause("p", plain)
	o := b.overview()
	want(b.T, "partitions", o.Partitions, partitions)
	want(b.T, "entries", len(o.Entries), 2)
	for i, job := range []string{keyed, plain} {
		want(b.T, "entry", o.Entries[i], z.entry(job))
		want(b.T, "in force", o.Entries[i].InForce, "h2")
		want(b.T, "schedule", o.Entries[i].Schedule, "@every 1s")
	}
	want(b.T, "paused", o.Entries[1].PausedFrom.IsZero(), false)
	if o.Now.Before(r.now) || o.Now.Location() != time.UTC {
		b.Fatalf("now is %v, and was %v", o.Now, r.now)
	}
	r.close()
	z.close()
	o = b.overview()
	want(b.T, "in force where nobody is", o.Entries[0].InForce+o.Entries[1].InForce, "")
}

// A dead session's pass tells who began the due, and how far it came.
func overviewOpenDues(b *bundle) {
	a, gone := b.ready("a", "h1"), b.ready("gone", "h1")
	due := b.ago(time.Hour)
	a.opens(due, due.Add(time.Second), due.Add(2*time.Second))
	for i, r := range []*replica{a, gone} {
		r.save(idempotency.Pass{Job: keyed, Due: due, Mine: bitmap(i, 5), Finished: bitmap(i), Keys: int64(10 * i)})
	}
	a.finishedAll(due.Add(time.Second))
	gone.close()
	open := b.overview().Open
	want(b.T, "open dues", len(open), 2)
	wantTime(b, "due", open[0].Due, due)
	wantTime(b, "next due", open[1].Due, due.Add(2*time.Second))
	want(b.T, "finished bits", open[0].Finished[0], bitmap(0, 1)[0])
	want(b.T, "passes", len(open[0].Passes), 2)
	for i, p := range open[0].Passes {
		want(b.T, "session", p.Session, []*replica{a, gone}[i].session.ID)
		want(b.T, "mine", p.Mine[0], bitmap(i, 5)[0])
		want(b.T, "keys", p.Keys, int64(10*i))
	}
	lag := a.lag(all()).Open
	lag[0].Passes = open[0].Passes
	if !reflect.DeepEqual(open, lag) {
		b.Fatalf("open dues but for the passes of the dead:\n%+v, want\n%+v", open, lag)
	}
}

func overviewSessions(b *bundle) {
	zoe, ann := b.ready("zoe", "h1"), b.ready("ann", "h2")
	none := b.open("none")
	second := b.open("ann", func(o *idempotency.Opening) { o.Boot = "ann's second" })
	b.ready("gone", "h1").close()
	b.ready("lapsed", "h1", b.brief).lapse()
	got := b.overview().Sessions
	want(b.T, "live sessions", len(got), 4)
	for i, r := range []*replica{ann, second, none, zoe} {
		x := got[i]
		want(b.T, "replica", x.Replica, r.opening.Replica)
		want(b.T, "session", x.ID, r.session.ID)
		want(b.T, "boot", x.Boot, r.opening.Boot)
		wantTime(b, "expires", x.Expires, r.now.Add(r.opening.Lease))
		hashes := ""
		if len(r.defs) > 0 {
			hashes = r.hash + r.hash
		}
		want(b.T, "announced", x.Announced[keyed]+x.Announced[plain], hashes)
		want(b.T, "jobs announced", len(x.Announced), len(r.defs))
	}
}

func duesOldestFirst(b *bundle) {
	r := b.open("a")
	r.declare("h1", keyed, plain)
	due := repeat(5, func(i int) time.Time { return b.ago(time.Duration(9-i) * time.Minute) })
	r.opens(due...)
	r.finishedAll(due[1])
	shows := func(what string, from, to time.Time, want string) {
		b.Helper()
		got := ""
		for _, d := range b.dues(keyed, from, to) {
			got += fmt.Sprint(int(d.Due.Sub(due[0])/time.Minute), " ")
			if d.Job != keyed || d.Opened.Before(r.now) || d.Closed.IsZero() == d.Due.Equal(due[1]) {
				b.Fatalf("due %+v", d)
			}
		}
		if got != want {
			b.Fatalf("%s: %q, want %q", what, got, want)
		}
	}
	shows("all", time.Time{}, time.Time{}, "0 1 2 3 4 ")
	shows("from", due[2], time.Time{}, "2 3 4 ")
	shows("to", time.Time{}, due[2], "0 1 ")
	shows("from and to", due[1], due[3], "1 2 ")
	want(b.T, "dues of another job", len(b.dues(plain, time.Time{}, time.Time{})), 0)
	for range b.Store.Dues(b.Context(), namespace, keyed, time.Time{}, time.Time{}) {
		break
	}
	for _, err := range b.Store.Dues(b.Context(), "other", keyed, time.Time{}, time.Time{}) {
		b.Fatalf("a due, or an error, of a namespace that is not there: %v", err)
	}
}

// The sum of what the passes settled, those of dead sessions too.
func duesKeepTheirKeys(b *bundle) {
	a, gone := b.ready("a", "h1"), b.ready("gone", "h1")
	full, missed := b.ago(time.Minute), b.ago(2*time.Hour)
	a.opens(missed, full)
	gone.save(idempotency.Pass{Job: keyed, Due: full, Finished: bitmap(0), Keys: 40})
	gone.save(idempotency.Pass{Job: keyed, Due: missed, Finished: bitmap(0), Keys: 5})
	gone.close()
	a.save(idempotency.Pass{Job: keyed, Due: full, Keys: 2})
	for _, d := range b.dues(keyed, time.Time{}, time.Time{}) {
		want(b.T, "keys while it is open", d.Keys, 0)
		want(b.T, "closed", d.Closed.IsZero(), true)
	}
	a.finishedAll(full)
	want(b.T, "closed", a.closes(missed, &idempotency.Range{Job: keyed, From: missed, To: missed, Count: 1, Outcome: idempotency.Missed}), true)
	got := b.dues(keyed, time.Time{}, time.Time{})
	want(b.T, "keys of the missed", got[0].Keys, 5)
	want(b.T, "keys of the other", got[1].Keys, 42)
	if got[1].Closed.Before(got[1].Opened) {
		b.Fatalf("opened at %v, closed at %v", got[1].Opened, got[1].Closed)
	}
}
