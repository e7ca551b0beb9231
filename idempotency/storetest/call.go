package storetest

import (
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

func (b *bundle) definition(job, hash string) idempotency.Declaration {
	return idempotency.Declaration{
		Definition: idempotency.Definition{Job: job, Schedule: "@every 1s", Hash: hash, Keyed: job == keyed},
		Opened:     b.ago(1000 * time.Hour),
		Next:       b.ago(999 * time.Hour),
	}
}

// declare announces exactly these jobs, all with one hash.
func (r *replica) declare(hash string, jobs ...string) []idempotency.Entry {
	r.Helper()
	r.hash, r.defs = hash, nil
	for _, j := range jobs {
		r.defs = append(r.defs, r.definition(j, hash))
	}
	return r.entries()
}

// entries declares the same again, which changes nothing.
func (r *replica) entries() []idempotency.Entry {
	r.Helper()
	e, err := r.store.Declare(r.Context(), r.session, 0, r.defs)
	r.alive("declare", err)
	if len(e) != len(r.defs) {
		r.Fatalf("declared %d jobs, %d entries answered", len(r.defs), len(e))
	}
	return e
}

func (r *replica) entry(job string) idempotency.Entry {
	r.Helper()
	for _, e := range r.entries() {
		if e.Job == job {
			return e
		}
	}
	r.Fatalf("no entry of job %q", job)
	return idempotency.Entry{}
}

// decision moves the job's entry on to its last due.
func (r *replica) decision(job string, dues ...time.Time) idempotency.Decision {
	r.Helper()
	e := r.entry(job)
	d := idempotency.Decision{
		Seen: e, Definition: idempotency.Definition{Job: job, Schedule: e.Schedule, Hash: r.hash, Keyed: job == keyed},
		Opened: e.Opened, Keyed: job == keyed, Run: dues,
	}
	if len(dues) > 0 {
		d.Opened = dues[len(dues)-1]
	}
	d.Next = d.Opened.Add(time.Second).Truncate(time.Second)
	return d
}

func (r *replica) decide(d idempotency.Decision) idempotency.Decided {
	r.Helper()
	r.nonce++
	return r.decideAs(r.nonce, d)
}

func (r *replica) decideAs(nonce int64, d idempotency.Decision) idempotency.Decided {
	r.Helper()
	a, err := r.store.Decide(r.Context(), r.session, nonce, []idempotency.Decision{d})
	r.alive("decide", err)
	if len(a) != 1 {
		r.Fatalf("one decision, %d answers", len(a))
	}
	return a[0]
}

// opens opens dues of the job with keys; each call must name later ones.
func (r *replica) opens(dues ...time.Time) {
	r.Helper()
	if !r.decide(r.decision(keyed, dues...)).Won {
		r.Fatalf("opening %v was lost", dues)
	}
}

// runs decides dues of the job without keys, of which so many may be claimed.
func (r *replica) runs(claim int, dues ...time.Time) []idempotency.Run {
	r.Helper()
	d := r.decision(plain, dues...)
	d.Claim = claim
	a := r.decide(d)
	if !a.Won || len(a.Runs) != len(dues) {
		r.Fatalf("deciding %v: won %v, runs %+v", dues, a.Won, a.Runs)
	}
	return a.Runs
}

func key(k string, due time.Time) idempotency.ID {
	return idempotency.ID{Job: keyed, Key: k, Due: due}
}

// insert is a claim of an occurrence of the job with keys.
func (r *replica) insert(k string, due time.Time) idempotency.Claim {
	return idempotency.Claim{ID: key(k, due), Hash: r.hash, Exclusive: true}
}

// takeUp is a claim of a row that exists.
func (r *replica) takeUp(id idempotency.ID, seen int64) idempotency.Claim {
	return idempotency.Claim{ID: id, Hash: r.hash, Exclusive: true, TakeUp: true, Seen: seen}
}

func (r *replica) claim(c ...idempotency.Claim) []idempotency.Answer {
	r.Helper()
	r.nonce++
	return r.claimAs(r.nonce, c...)
}

func (r *replica) claimAs(nonce int64, c ...idempotency.Claim) []idempotency.Answer {
	r.Helper()
	a, err := r.store.Claim(r.Context(), r.session, nonce, c)
	r.alive("claim", err)
	if len(a) != len(c) {
		r.Fatalf("%d claims, %d answers", len(c), len(a))
	}
	return a
}

// wins claims and returns the fence.
func (r *replica) wins(c idempotency.Claim) idempotency.Answer {
	r.Helper()
	a := r.claim(c)[0]
	if a.Verdict != idempotency.Won || a.Fence < 1 {
		r.Fatalf("claim of %v: %+v, want won", c.ID, a)
	}
	return a
}

// gets claims and wants a verdict other than won.
func (r *replica) gets(want idempotency.Verdict, c idempotency.Claim) idempotency.Answer {
	r.Helper()
	a := r.claim(c)[0]
	if a.Verdict != want || a.Fence != 0 {
		r.Fatalf("claim of %v: %+v, want verdict %d without a fence", c.ID, a, want)
	}
	return a
}

// finishes finishes by fence alone, and wants the answer.
func (b *bundle) finishes(want idempotency.FinishAnswer, f ...idempotency.Finish) {
	b.Helper()
	a, err := b.Store.Finish(b.Context(), namespace, f)
	if err != nil {
		b.Fatalf("finish: %v", err)
	}
	if len(a) != len(f) {
		b.Fatalf("%d finishes, %d answers", len(f), len(a))
	}
	for i := range a {
		if a[i] != want {
			b.Fatalf("finish %+v: answer %d, want %d", f[i], a[i], want)
		}
	}
}

func done(id idempotency.ID, fence int64) idempotency.Finish {
	return idempotency.Finish{ID: id, Fence: fence, Outcome: idempotency.Done, Attempt: 1}
}

func waits(id idempotency.ID, fence int64, wake time.Time) idempotency.Finish {
	return idempotency.Finish{ID: id, Fence: fence, Outcome: idempotency.Wait, Wake: wake}
}

func (b *bundle) list(f idempotency.Filter) []idempotency.Run {
	b.Helper()
	f.Namespace = namespace
	var runs []idempotency.Run
	for r, err := range b.Store.List(b.Context(), f) {
		if err != nil {
			b.Fatalf("list: %v", err)
		}
		runs = append(runs, r)
	}
	return runs
}

func (b *bundle) ranges(job string) []idempotency.Range {
	b.Helper()
	var ranges []idempotency.Range
	for r, err := range b.Store.Ranges(b.Context(), namespace, job) {
		if err != nil {
			b.Fatalf("ranges: %v", err)
		}
		ranges = append(ranges, r)
	}
	return ranges
}

// row returns the run's row; its State is zero if there is none.
func (b *bundle) row(id idempotency.ID) idempotency.Run {
	b.Helper()
	for _, r := range b.list(idempotency.Filter{Job: id.Job, Key: id.Key, From: id.Due, To: id.Due.Add(time.Second)}) {
		if r.ID == id {
			return r
		}
	}
	return idempotency.Run{}
}

// all is a question of a replica that has rank 0 everywhere.
func all() idempotency.LagQuery {
	return idempotency.LagQuery{Ranks: [][]byte{bitmap(0, 1, 2, 3, 4, 5, 6, 7)}, Grace: time.Minute, Limit: 100}
}

func (r *replica) lag(q idempotency.LagQuery) idempotency.Lag {
	r.Helper()
	lag, err := r.store.Lagging(r.Context(), r.session, q)
	r.alive("lagging", err)
	return lag
}

func bitmap(p ...int) []byte {
	b := make([]byte, partitions/8)
	for _, x := range p {
		b[x/8] |= 1 << (x % 8)
	}
	return b
}

func (r *replica) save(p idempotency.Pass) idempotency.Verdict {
	r.Helper()
	v, err := r.store.SavePass(r.Context(), r.session, []idempotency.Pass{p})
	r.alive("save pass", err)
	if len(v) != 1 {
		r.Fatalf("one pass, %d verdicts", len(v))
	}
	return v[0]
}

func (r *replica) closes(due time.Time, missed *idempotency.Range) bool {
	r.Helper()
	closed, err := r.store.CloseDue(r.Context(), r.session, keyed, due, missed)
	r.alive("close due", err)
	return closed
}

// finishedAll saves a pass that covers all partitions and closes the due.
func (r *replica) finishedAll(due time.Time) {
	r.Helper()
	want(r.T, "verdict of the pass", r.save(idempotency.Pass{Job: keyed, Due: due, Finished: bitmap(0, 1, 2, 3, 4, 5, 6, 7)}), idempotency.Won)
	want(r.T, "closed", r.closes(due, nil), true)
}

func (r *replica) mine() []idempotency.Run {
	r.Helper()
	runs, err := r.store.Mine(r.Context(), r.session)
	r.alive("mine", err)
	return runs
}
