package storetest

import (
	"fmt"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var batchLaws = []law{
	{"TooLargeIsRefused", tooLargeIsRefused},
	{"LargestIsTaken", largestIsTaken},
	{"BadElementRefusesAll", badElementRefusesAll},
	{"BadOpeningIsRefused", badOpeningIsRefused},
	{"BadQuestionIsRefused", badQuestionIsRefused},
}

// repeat makes a batch of n elements.
func repeat[T any](n int, f func(i int) T) []T {
	s := make([]T, n)
	for i := range s {
		s[i] = f(i)
	}
	return s
}

// refused wants errors of calls that must have done nothing.
func (b *bundle) refused(errs map[string]error) {
	b.Helper()
	for name, err := range errs {
		if err == nil {
			b.Fatalf("%s was taken", name)
		}
	}
	want(b.T, "rows", len(b.list(idempotency.Filter{})), 0)
	want(b.T, "ranges", len(b.ranges("")), 0)
}

func tooLargeIsRefused(b *bundle) {
	const n = idempotency.MaxBatch + 1
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	decision := r.decision(plain)
	long := decision
	long.Opened = b.ago(0)
	long.Run = repeat(n, func(i int) time.Time { return b.ago(time.Duration(n-i) * time.Second) })
	errs := make(map[string]error)
	_, errs["Decide"] = r.store.Decide(b.Context(), r.session, 9, repeat(n, func(int) idempotency.Decision { return decision }))
	_, errs["Decide of many dues"] = r.store.Decide(b.Context(), r.session, 9, []idempotency.Decision{long})
	_, errs["Claim"] = r.store.Claim(b.Context(), r.session, 9, repeat(n, func(i int) idempotency.Claim { return r.insert(fmt.Sprint(i), due) }))
	_, errs["Finish"] = r.store.Finish(b.Context(), namespace, repeat(n, func(i int) idempotency.Finish { return done(key(fmt.Sprint(i), due), 1) }))
	_, errs["SavePass"] = r.store.SavePass(b.Context(), r.session, repeat(n, func(int) idempotency.Pass { return idempotency.Pass{Job: keyed, Due: due} }))
	errs["MarkDead"] = r.store.MarkDead(b.Context(), r.session, make([]int64, n))
	b.refused(errs)
	want(b.T, "in force", r.entry(plain).InForce, "h1")
	want(b.T, "passes", len(r.lag(all()).Open[0].Passes), 0)
}

func largestIsTaken(b *bundle) {
	const n = idempotency.MaxBatch
	r := b.ready("a", "h1")
	due := b.ago(time.Hour)
	r.opens(due)
	answers := r.claim(repeat(n, func(i int) idempotency.Claim { return r.insert(fmt.Sprint(i), due) })...)
	b.finishes(idempotency.Finished, repeat(n, func(i int) idempotency.Finish { return done(key(fmt.Sprint(i), due), answers[i].Fence) })...)
	r.runs(1, repeat(n, func(i int) time.Time { return due.Add(time.Duration(i) * time.Second) })...)
	want(b.T, "rows", len(b.list(idempotency.Filter{})), 2*n)
	want(b.T, "entries", len(r.declare("h1", repeat(n, func(i int) string { return fmt.Sprint(i) })...)), n)
	r.mark(repeat(n, func(int) *replica { return r })...)
}

// One bad element refuses its whole batch, on every driver alike.
func badElementRefusesAll(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	errs := make(map[string]error)
	claim := func(what string, bad func(c *idempotency.Claim)) {
		c := r.insert("bad", due)
		bad(&c)
		_, errs["claim with "+what] = r.store.Claim(b.Context(), r.session, 9, []idempotency.Claim{r.insert("good", due), c})
	}
	claim("half a second", func(c *idempotency.Claim) { c.ID.Due = due.Add(time.Second / 2) })
	claim("no due", func(c *idempotency.Claim) { c.ID.Due = time.Time{} })
	claim("a bad job", func(c *idempotency.Claim) { c.ID.Job = "a job" })
	claim("no hash", func(c *idempotency.Claim) { c.Hash = "" })
	claim("a record that is done", func(c *idempotency.Claim) { c.OnBusy = &idempotency.Finish{Outcome: idempotency.Done} })
	claim("a record that waits for nothing", func(c *idempotency.Claim) { c.OnExpired = &idempotency.Finish{Outcome: idempotency.Wait} })

	pass := func(what string, p idempotency.Pass) {
		p.Job, p.Due = keyed, due
		_, errs["pass with "+what] = r.store.SavePass(b.Context(), r.session, []idempotency.Pass{{Job: keyed, Due: due, Finished: bitmap(1)}, p})
	}
	pass("a long bitmap", idempotency.Pass{Mine: []byte{1, 1}})
	pass("negative keys", idempotency.Pass{Keys: -1})

	good := r.decision(plain, due)
	decision := func(what string, bad func(d *idempotency.Decision)) {
		d := r.decision(keyed, due.Add(time.Second))
		bad(&d)
		_, errs["decision with "+what] = r.store.Decide(b.Context(), r.session, 9, []idempotency.Decision{good, d})
	}
	decision("a due that was decided", func(d *idempotency.Decision) { d.Run = []time.Time{due} })
	decision("a due beyond opened", func(d *idempotency.Decision) { d.Run = []time.Time{due.Add(2 * time.Second)} })
	decision("another's range", func(d *idempotency.Decision) {
		d.Ranges = []idempotency.Range{{Job: plain, From: due, To: due, Count: 1, Outcome: idempotency.Missed}}
	})
	decision("the same entry again", func(d *idempotency.Decision) { *d = good })
	declared := append(r.defs[:2:2], r.defs[0])
	_, errs["a job declared twice"] = r.store.Declare(b.Context(), r.session, 0, declared)
	_, errs["a missed range of another due's job"] = r.store.CloseDue(b.Context(), r.session, keyed, due, &idempotency.Range{Job: plain, From: due, To: due, Count: 1, Outcome: idempotency.Missed})
	_, errs["a finish that is missed"] = r.store.Finish(b.Context(), namespace, []idempotency.Finish{{ID: key("k", due), Fence: 1, Outcome: idempotency.Missed}})
	b.refused(errs)
	want(b.T, "passes", len(r.lag(all()).Open[0].Passes), 0)
	want(b.T, "entry", r.entry(plain), good.Seen)
}

// S19: impossible settings are refused at the door. F58: retention.
func badOpeningIsRefused(b *bundle) {
	errs := make(map[string]error)
	for what, bad := range map[string]func(o *idempotency.Opening){
		"no namespace":                func(o *idempotency.Opening) { o.Namespace = "" },
		"a namespace with a space":    func(o *idempotency.Opening) { o.Namespace = "a b" },
		"three partitions":            func(o *idempotency.Opening) { o.Partitions = 3 },
		"too many partitions":         func(o *idempotency.Opening) { o.Partitions = 1 << 17 },
		"no lease":                    func(o *idempotency.Opening) { o.Lease = 0 },
		"retention below the horizon": func(o *idempotency.Opening) { o.Retention = o.Horizon },
		"a negative tolerance":        func(o *idempotency.Opening) { o.Tolerance = -1 },
	} {
		o := b.open("a").opening
		bad(&o)
		_, _, errs[what] = b.Store.OpenSession(b.Context(), o)
	}
	b.refused(errs)
}

func badQuestionIsRefused(b *bundle) {
	r := b.ready("a", "h1")
	errs := make(map[string]error)
	for what, q := range map[string]idempotency.LagQuery{
		"a long bitmap":    {Ranks: [][]byte{bitmap(1), {1, 1}}},
		"a negative limit": {Limit: -1},
		"a negative grace": {Grace: -1},
	} {
		_, errs[what] = r.store.Lagging(b.Context(), r.session, q)
	}
	b.refused(errs)
}
