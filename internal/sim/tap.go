package sim

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/sim/oracle"
)

// tap stands between the replicas and the store, and tells the oracle what the
// store answered, at the instant at which it did, whatever becomes of the answer.
type tap struct {
	idempotency.Store
	oracle     *oracle.Oracle
	clock      func() time.Time
	notes      *World                       // whose history the answers are part of; nil: nobody's
	define     func(boot, job, hash string) // told of each definition that a process declares; nil: who made the world has told the oracle
	partitions int
	unjudged   bool

	mu    sync.Mutex // an answer and what the oracle is told of it are one
	who   string
	lease map[int64]time.Duration // by session
	boots map[int64]string

	leading idempotency.Leader // that Lead answered last

	set  []int        // room for bits
	rows []oracle.Row // … and for the rows of a decision
}

// note adds an answer to the history.
func (t *tap) note(what string, a ...any) {
	if t.notes != nil {
		t.notes.note(t.who, what, a...)
	}
}

// noteRun adds one about a run.
func (t *tap) noteRun(what string, id oracle.ID, word string, n ...int64) {
	if t.notes != nil {
		t.notes.noteRun(t.who, what, id, word, n...)
	}
}

// judge is told after a call what it did, unless it failed.
func judge[T any](t *tap, name string, v T, err error, tell func(*oracle.Oracle)) (T, error) {
	if err != nil {
		t.note("store: "+name, err.Error())
		return v, err
	}
	if t.unjudged {
		return v, nil
	}
	t.oracle.At(t.now())
	tell(t.oracle)
	return v, nil
}

func (t *tap) now() time.Time { return t.clock().Truncate(time.Microsecond) }

func (t *tap) OpenSession(ctx context.Context, o idempotency.Opening) (idempotency.Session, idempotency.Renewal, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s, r, err := t.Store.OpenSession(ctx, o)
	_, err = judge(t, "OpenSession", s, err, func(x *oracle.Oracle) {
		if t.lease == nil {
			t.lease, t.boots = map[int64]time.Duration{}, map[int64]string{}
		}
		t.lease[s.ID], t.boots[s.ID] = o.Lease, o.Boot
		t.note("store: opens session", s.ID)
		x.Session(s.ID, o.Boot, t.now().Add(o.Lease), true)
	})
	r.Store = "model" // the memory store draws its identity at random
	return s, r, err
}

func (t *tap) RenewSession(ctx context.Context, s idempotency.Session) (idempotency.Renewal, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r, err := t.Store.RenewSession(ctx, s)
	r, err = judge(t, "RenewSession", r, err, func(x *oracle.Oracle) {
		x.Session(s.ID, t.boots[s.ID], t.now().Add(t.lease[s.ID]), false)
	})
	r.Store = "model"
	return r, err
}

func (t *tap) CloseSession(ctx context.Context, s idempotency.Session) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := judge(t, "CloseSession", 0, t.Store.CloseSession(ctx, s), func(x *oracle.Oracle) {
		t.note("store: closes session", s.ID)
		x.SessionDead(s.ID, true)
	})
	return err
}

func (t *tap) MarkDead(ctx context.Context, s idempotency.Session, dead []int64) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, err := judge(t, "MarkDead", 0, t.Store.MarkDead(ctx, s, dead), func(x *oracle.Oracle) {
		t.note("store: marks dead", fmt.Sprint(dead))
		for _, id := range dead {
			x.SessionDead(id, false)
		}
	})
	return err
}

func (t *tap) Declare(ctx context.Context, s idempotency.Session, nonce int64, d []idempotency.Declaration) ([]idempotency.Entry, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	hashes := make(map[string]string, len(d))
	for _, d := range d {
		hashes[d.Job] = d.Hash
		if t.define != nil {
			t.define(t.boots[s.ID], d.Job, d.Hash)
		}
	}
	e, err := t.Store.Declare(ctx, s, nonce, d)
	return judge(t, "Declare", e, err, func(x *oracle.Oracle) {
		x.Announced(s.ID, nonce, hashes)
		for _, e := range e {
			t.note("store: declared", e.Job, e.Hash, e.InForce, e.Opened, e.Next)
			x.Declared(s.ID, e.Job, e.Hash, e.InForce, e.Opened, e.Next)
		}
	})
}

func (t *tap) Decide(ctx context.Context, s idempotency.Session, nonce int64, d []idempotency.Decision) ([]idempotency.Decided, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, err := t.Store.Decide(ctx, s, nonce, d)
	return judge(t, "Decide", a, err, func(x *oracle.Oracle) {
		for i := range d {
			d := &d[i]
			t.note("store: decides", &d.Job, &d.Seen.Opened, &d.Opened, len(d.Run), a[i].Won)
			if !a[i].Won {
				continue
			}
			t.rows = rowsOf(t.rows[:0], a[i].Runs)
			decision := decisionOf(s.ID, nonce, d, t.rows)
			for _, r := range decision.Rows {
				t.noteRun("store: holds", r.ID, r.Outcome.String(), int64(r.State), r.Fence, int64(r.Attempt))
			}
			x.Decided(decision)
		}
	})
}

func (t *tap) Claim(ctx context.Context, s idempotency.Session, nonce int64, c []idempotency.Claim) ([]idempotency.Answer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, err := t.Store.Claim(ctx, s, nonce, c)
	return judge(t, "Claim", a, err, func(x *oracle.Oracle) {
		for i, c := range c {
			how := "new"
			if c.TakeUp {
				how = "take-up"
			}
			t.noteRun("store: claims", key(c.ID), how, c.Seen, int64(a[i].Verdict), a[i].Fence, int64(a[i].Crashes))
			t.claimed(x, s.ID, nonce, c, a[i])
		}
	})
}

func (t *tap) claimed(x *oracle.Oracle, session, nonce int64, c idempotency.Claim, a idempotency.Answer) {
	record, overtakes := c.OnExpired, false
	switch a.Verdict {
	case idempotency.Won:
		x.Claimed(oracle.Claim{
			Session: session, Nonce: nonce, ID: key(c.ID), Hash: c.Hash, Exclusive: c.Exclusive, TakeUp: c.TakeUp,
			Seen: c.Seen, Fence: a.Fence, Term: c.Term, Attempt: a.Attempt, Crashes: a.Crashes,
		})
		return
	case idempotency.Busy:
		record, overtakes = onBusy(x, c)
		if record != nil && record.Outcome != a.Recorded || record == nil && a.Recorded != 0 {
			x.Misrecorded(key(c.ID), a.Recorded.String())
		}
	case idempotency.Taken:
		if c.TakeUp {
			x.Refused(key(c.ID), c.Seen)
		}
		return
	case idempotency.Expired:
	default:
		return
	}
	if record == nil || c.TakeUp || a.Verdict == idempotency.Expired && !x.Open(c.ID.Job, c.ID.Due.Unix()) {
		return
	}
	r := oracle.Row{ID: key(c.ID), State: oracle.Ended, Outcome: outcome(record.Outcome), Wake: record.Wake}
	if r.Outcome == oracle.None {
		r.State = oracle.Waiting
	}
	x.Recorded(session, r)
	if overtakes {
		x.Overtaken(r.ID)
	}
}

// onBusy is what a claim has recorded of a run whose key is held, as the oracle knows its rivals, and whether it overtakes them.
func onBusy(x *oracle.Oracle, c idempotency.Claim) (record *idempotency.Finish, overtakes bool) {
	switch {
	case c.OnNewer != nil && x.Newer(key(c.ID)):
		return c.OnNewer, false
	case c.OnQueued != nil && x.Waits(c.ID.Job, c.ID.Key):
		return c.OnQueued, false
	}
	return c.OnBusy, c.Overtake
}

func (t *tap) Finish(ctx context.Context, namespace string, f []idempotency.Finish) ([]idempotency.FinishAnswer, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a, err := t.Store.Finish(ctx, namespace, f)
	return judge(t, "Finish", a, err, func(x *oracle.Oracle) {
		for i, f := range f {
			t.noteRun("store: finishes", key(f.ID), outcome(f.Outcome).String(), f.Fence, int64(f.Attempt), int64(a[i]))
			x.Finished(oracle.Finish{
				ID: key(f.ID), Fence: f.Fence, Outcome: outcome(f.Outcome), Wake: f.Wake, Attempt: f.Attempt, Reason: f.Reason, Answer: oracle.Answer(a[i]),
			})
		}
	})
}

func (t *tap) SavePass(ctx context.Context, s idempotency.Session, p []idempotency.Pass) ([]idempotency.Verdict, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	v, err := t.Store.SavePass(ctx, s, p)
	return judge(t, "SavePass", v, err, func(x *oracle.Oracle) {
		for i, p := range p {
			t.note("store: saves pass", p.Job, p.Due, bits(p.Finished), bits(p.Mine), int(v[i]))
			if v[i] == idempotency.Won {
				x.Passed(s.ID, p.Job, p.Due.Unix(), t.bits(p.Finished))
			}
		}
	})
}

func (t *tap) bits(b []byte) []int {
	set := t.set[:0]
	for p := range t.partitions {
		if b[p/8]>>(p%8)&1 == 1 {
			set = append(set, p)
		}
	}
	t.set = set
	return set
}

func (t *tap) CloseDue(ctx context.Context, s idempotency.Session, job string, due time.Time, missed *idempotency.Range) (bool, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	closed, err := t.Store.CloseDue(ctx, s, job, due, missed)
	return judge(t, "CloseDue", closed, err, func(x *oracle.Oracle) {
		t.note("store: closes due", job, due, fmt.Sprint(missed != nil, closed))
		if !closed {
			return
		}
		var m *oracle.Range
		if missed != nil {
			r := rangeOf(*missed)
			m = &r
		}
		x.Closed(s.ID, job, due.Unix(), m)
	})
}
