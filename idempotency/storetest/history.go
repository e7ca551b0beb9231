package storetest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var historyLaws = []law{
	{"ListOrder", listOrder},
	{"ListFilter", listFilter},
	{"ListNewestFirst", listNewestFirst},
	{"ListEndsEarly", listEndsEarly},
	{"RangesOldestFirst", rangesOldestFirst},
}

// listed makes nine runs: three keys of three dues, in no order.
func listed(b *bundle) (*replica, []time.Time) {
	b.Helper()
	r := b.ready("a", "h1")
	due := []time.Time{b.ago(3 * time.Minute), b.ago(2 * time.Minute), b.ago(time.Minute)}
	r.opens(due...)
	for _, i := range []int{1, 2, 0} {
		for _, k := range []string{"b", "c", "a"} {
			c := r.insert(k, due[i])
			fence := r.wins(c).Fence
			f := done(c.ID, fence)
			if k == "c" {
				f.Outcome = idempotency.Failed
			}
			if k == "b" && i == 2 {
				f = waits(c.ID, fence, due[0])
			}
			b.finishes(idempotency.Finished, f)
		}
	}
	return r, due
}

func (b *bundle) shows(what string, f idempotency.Filter, want string) {
	b.Helper()
	got := ""
	for i, r := range b.list(f) {
		if i > 0 {
			got += " "
		}
		got += fmt.Sprint(r.ID.Key, int(r.ID.Due.Sub(b.ago(3*time.Minute)).Minutes()))
	}
	if got != want {
		b.Fatalf("%s: got %q, want %q", what, got, want)
	}
}

// Runs come in the order of (due, job, key, request).
func listOrder(b *bundle) {
	r, due := listed(b)
	b.shows("all", idempotency.Filter{}, "a0 b0 c0 a1 b1 c1 a2 b2 c2")
	for _, request := range []string{"z", "Z", "a"} {
		c := r.insert("a", due[2])
		c.ID.Request = request
		b.finishes(idempotency.Finished, done(c.ID, r.wins(c).Fence))
	}
	r.runs(0, due[2])
	got := ""
	for _, x := range b.list(idempotency.Filter{From: due[2]}) {
		got += x.ID.Job + "/" + x.ID.Key + "/" + x.ID.Request + " "
	}
	want(b.T, "order", got, "keyed/a/ keyed/a/Z keyed/a/a keyed/a/z keyed/b/ keyed/c/ plain/plain/ ")
}

func listFilter(b *bundle) {
	_, due := listed(b)
	b.shows("one key", idempotency.Filter{Key: "a"}, "a0 a1 a2")
	b.shows("one job", idempotency.Filter{Job: keyed, Limit: 2}, "a0 b0")
	b.shows("another job", idempotency.Filter{Job: plain}, "")
	b.shows("failed", idempotency.Filter{Outcome: idempotency.Failed}, "c0 c1 c2")
	b.shows("done", idempotency.Filter{Outcome: idempotency.Done, Limit: 4}, "a0 b0 a1 b1")
	b.shows("waiting", idempotency.Filter{State: idempotency.Waiting}, "b2")
	b.shows("ended", idempotency.Filter{State: idempotency.Ended, From: due[2]}, "a2 c2")
	b.shows("running", idempotency.Filter{State: idempotency.Running}, "")
	b.shows("from", idempotency.Filter{From: due[1]}, "a1 b1 c1 a2 b2 c2")
	b.shows("to", idempotency.Filter{To: due[1]}, "a0 b0 c0")
	b.shows("from and to", idempotency.Filter{From: due[1].Add(-time.Second), To: due[2], Key: "b"}, "b1")
	b.shows("limit", idempotency.Filter{Limit: 4}, "a0 b0 c0 a1")
	for _, err := range b.Store.List(b.Context(), idempotency.Filter{Namespace: "other"}) {
		b.Fatalf("a run, or an error, of a namespace that is not there: %v", err)
	}
}

func listNewestFirst(b *bundle) {
	_, due := listed(b)
	b.shows("all", idempotency.Filter{Newest: true}, "c2 b2 a2 c1 b1 a1 c0 b0 a0")
	b.shows("limit", idempotency.Filter{Newest: true, Limit: 4}, "c2 b2 a2 c1")
	b.shows("from and to", idempotency.Filter{Newest: true, From: due[0].Add(time.Second), To: due[2]}, "c1 b1 a1")
	b.shows("one key, failed", idempotency.Filter{Newest: true, Key: "c", Outcome: idempotency.Failed, Limit: 2}, "c2 c1")
}

// A reader may stop, call the store while it reads, or have its context end.
func listEndsEarly(b *bundle) {
	r, _ := listed(b)
	f := idempotency.Filter{Namespace: namespace}
	for range b.Store.List(b.Context(), f) {
		break
	}
	n := 0
	for x, err := range b.Store.List(b.Context(), f) {
		if err != nil {
			b.Fatal(err)
		}
		if x.State == idempotency.Waiting {
			r.wins(r.takeUp(x.ID, x.Fence))
		}
		n++
	}
	want(b.T, "rows read while one was taken up", n, 9)
	ctx, cancel := context.WithCancel(b.Context())
	cancel()
	failed := 0
	for _, err := range b.Store.List(ctx, f) {
		if !errors.Is(err, context.Canceled) {
			b.Fatalf("a run after the context ended: %v", err)
		}
		failed++
	}
	want(b.T, "errors", failed, 1)
}

func rangesOldestFirst(b *bundle) {
	r := b.ready("a", "h1")
	for _, job := range []string{keyed, plain} {
		d := r.decision(job)
		for _, hours := range []int{5, 9, 7} {
			from := b.ago(time.Duration(hours) * time.Hour)
			if job == plain {
				from = from.Add(time.Minute)
			}
			d.Ranges = append(d.Ranges, idempotency.Range{Job: job, From: from, To: from.Add(time.Second), Count: 2, Outcome: idempotency.Skipped, Reason: fmt.Sprint(hours)})
		}
		want(b.T, "won", r.decide(d).Won, true)
	}
	order := func(job string) (s string) {
		for _, x := range b.ranges(job) {
			s += x.Job[:1] + x.Reason
		}
		return s
	}
	want(b.T, "ranges of one job", order(plain), "p9p7p5")
	want(b.T, "all ranges", order(""), "k9p9k7p7k5p5")
	for _, err := range b.Store.Ranges(b.Context(), "other", "") {
		b.Fatalf("a range, or an error, of a namespace that is not there: %v", err)
	}
}
