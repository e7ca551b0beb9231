package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/storetest"
)

// twinStore is a store with all powers.
type twinStore interface {
	storetest.Store
	idempotency.Leaders
}

// twin is one of two stores that are asked the same. Numbers that a store draws
// are its own; they are compared by the order in which they were first seen.
type twin struct {
	twinStore
	sessions []idempotency.Session
	ranks    map[int64]int
	fences   map[idempotency.ID]int64
	term     int64 // of the last leader that was seen
}

func (w *twin) rank(n int64) int64 {
	if n == 0 {
		return 0
	}
	if w.ranks[n] == 0 {
		w.ranks[n] = len(w.ranks) + 1
	}
	return int64(w.ranks[n])
}

func (w *twin) runs(list []idempotency.Run) string {
	var b strings.Builder
	for _, x := range list {
		w.fences[x.ID] = x.Fence
		x.Fence, x.Session = w.rank(x.Fence), w.rank(x.Session)
		fmt.Fprintf(&b, "%+v\n", x)
	}
	return b.String()
}

// step is one call; it says all that was answered.
type step func(ctx context.Context, w *twin) string

// errs keeps of an error what the contract promises.
func errs(err error) string {
	switch {
	case err == nil:
		return ""
	case errors.Is(err, idempotency.ErrSessionDead):
		return "dead"
	case errors.Is(err, idempotency.ErrRejected):
		return "rejected"
	}
	return "error " + err.Error()
}

// chooser chooses steps. All it chooses is drawn before either twin is asked.
type chooser struct {
	*rand.Rand
	base time.Time
}

func (r *chooser) job() string { return []string{"keyed", "plain", "other"}[r.IntN(3)] }

func (r *chooser) hash() string { return fmt.Sprint("h", 1+r.IntN(2)) }

func (r *chooser) due() time.Time { return r.base.Add(time.Duration(r.IntN(12)) * 10 * time.Second) }

func (r *chooser) id() idempotency.ID {
	id := idempotency.ID{Job: r.job(), Key: fmt.Sprint("k\x00", r.IntN(3)), Due: r.due()}
	if r.IntN(3) == 0 {
		id.Job, id.Key = "plain", "plain"
	}
	if r.IntN(8) == 0 {
		id.Request = "by hand"
	}
	return id
}

func (r *chooser) bits() []byte { return []byte{byte(r.IntN(16) * 17)} }

func (r *chooser) content(outcomes ...idempotency.Outcome) idempotency.Finish {
	return idempotency.Finish{Outcome: outcomes[r.IntN(len(outcomes))], Attempt: r.IntN(4), Wake: r.due(), Reason: "r", Text: "t\x00é"}
}

func (r *chooser) step() step {
	i := r.IntN(1 << 20) // which session; most are of those opened last
	on := func(f func(ctx context.Context, w *twin, s idempotency.Session) string) step {
		return func(ctx context.Context, w *twin) string {
			n := len(w.sessions)
			return f(ctx, w, w.sessions[max(0, n-1-i%5)])
		}
	}
	switch x := r.IntN(124); {
	case x >= 120:
		return on(r.resign())
	case x >= 116:
		return on(r.lead())
	case x >= 112:
		return on(r.retire())
	case x >= 100:
		return r.submit()
	case x < 6:
		return r.openSession()
	case x < 16:
		return on(r.declare())
	case x < 34:
		return on(r.decide())
	case x < 60:
		return on(r.claim())
	case x < 72:
		return r.finish()
	case x < 80:
		return on(r.savePass())
	case x < 84:
		return on(r.closeDue())
	case x < 88:
		return on(r.prune())
	case x < 92:
		return on(r.endSession())
	}
	return on(r.lagging())
}

func (r *chooser) openSession() step {
	o := idempotency.Opening{
		Namespace: "ns", Replica: fmt.Sprint("r", r.IntN(3)), Boot: fmt.Sprint("b", r.IntN(4)), Partitions: 8,
		Lease: time.Duration(1+r.IntN(20)) * 3 * time.Second, Horizon: 60 * time.Second, Retention: 90 * time.Second, Tolerance: 2 * time.Second,
	}
	return func(ctx context.Context, w *twin) string {
		s, renewal, err := w.OpenSession(ctx, o)
		w.sessions = append(w.sessions, s)
		return fmt.Sprint(w.rank(s.ID), renewal.Now, errs(err))
	}
}

type call1 = func(ctx context.Context, w *twin, s idempotency.Session) string

func (r *chooser) declare() call1 {
	var d []idempotency.Declaration
	for _, j := range []string{"keyed", "plain", "other"} {
		if r.IntN(6) > 0 {
			d = append(d, idempotency.Declaration{
				Definition: idempotency.Definition{Job: j, Schedule: "s", Hash: r.hash(), Revision: int64(r.IntN(2)), Keyed: j == "keyed", Leader: r.IntN(3) == 0},
				Opened:     r.base, Next: r.base.Add(time.Second),
			})
			if r.IntN(4) == 0 {
				last := &d[len(d)-1]
				last.Opened, last.Next = time.Time{}, time.Time{}
			}
		}
	}
	return func(ctx context.Context, w *twin, s idempotency.Session) string {
		e, err := w.Declare(ctx, s, 0, d)
		return fmt.Sprintf("%+v %s", e, errs(err))
	}
}

func (r *chooser) decide() call1 {
	j, hash, keyed, claim, nonce, term := r.job(), r.hash(), r.IntN(2) == 0, r.IntN(3), int64(r.IntN(50)), int64(r.IntN(3))
	overlap, catchUp := idempotency.Overlap(r.IntN(4)), r.IntN(4) == 0
	n, ahead := r.IntN(4), time.Duration(r.IntN(4))*10*time.Second
	return func(ctx context.Context, w *twin, s idempotency.Session) string {
		seen, err := w.Declare(ctx, s, 0, []idempotency.Declaration{{
			Definition: idempotency.Definition{Job: j, Schedule: "s", Hash: hash}, Opened: r.base,
		}})
		if err != nil {
			return errs(err)
		}
		d := idempotency.Decision{
			Seen: seen[0], Definition: idempotency.Definition{Job: j, Schedule: "s", Hash: hash, Keyed: j == "keyed", Leader: term == 1}, Keyed: keyed, Claim: claim, Term: term,
			Overlap: overlap, CatchUp: catchUp,
			Opened: seen[0].Opened.Add(ahead), Next: seen[0].Opened.Add(ahead + time.Second).Truncate(time.Second),
		}
		for k := range n {
			if due := seen[0].Opened.Truncate(time.Second).Add(time.Duration(k+1) * 10 * time.Second); !due.After(d.Opened) {
				d.Run = append(d.Run, due)
			}
		}
		if n == 0 {
			d.Ranges = []idempotency.Range{{Job: j, From: seen[0].Opened, To: d.Opened, Count: 3, Outcome: idempotency.Missed, Reason: "late"}}
		}
		a, err := w.Decide(ctx, s, nonce, []idempotency.Decision{d})
		if err != nil {
			return errs(err)
		}
		runs := w.runs(a[0].Runs)
		a[0].Runs = nil
		return fmt.Sprintf("%+v %s", a, runs)
	}
}

func (r *chooser) claim() call1 {
	c := make([]idempotency.Claim, 1+r.IntN(4))
	crowd, hash := r.IntN(3) == 0, r.hash() // all ask for one key
	for k := range c {
		c[k] = idempotency.Claim{ID: r.id(), Hash: r.hash(), Exclusive: r.IntN(4) > 0, TakeUp: r.IntN(3) == 0, Term: int64(r.IntN(3))}
		if crowd {
			c[k].ID.Job, c[k].ID.Key, c[k].ID.Request, c[k].Hash = "keyed", "k\x000", "", hash
		}
		if !c[k].TakeUp && r.IntN(3) == 0 {
			busy, expired := r.content(idempotency.Skipped, idempotency.Wait), r.content(idempotency.Missed)
			c[k].OnBusy, c[k].OnExpired = &busy, &expired
			switch waits := c[k].Exclusive && busy.Outcome == idempotency.Wait; {
			case waits && r.IntN(2) == 0:
				c[k].Overtake = true
			case waits:
				queued := r.content(idempotency.Skipped)
				c[k].OnQueued = &queued
			}
			if c[k].Exclusive && r.IntN(2) == 0 {
				newer := r.content(idempotency.Wait)
				c[k].OnNewer = &newer
			}
		}
	}
	nonce := int64(r.IntN(50))
	return func(ctx context.Context, w *twin, s idempotency.Session) string {
		own := append([]idempotency.Claim(nil), c...)
		for k := range own {
			if own[k].TakeUp {
				own[k].Seen = w.fences[own[k].ID]
			}
		}
		a, err := w.Claim(ctx, s, nonce, own)
		for k := range a {
			if a[k].Fence > 0 {
				w.fences[c[k].ID] = a[k].Fence
			}
			a[k].Fence = w.rank(a[k].Fence)
		}
		return fmt.Sprintf("%+v %s", a, errs(err))
	}
}

func (r *chooser) finish() step {
	f := r.content(idempotency.Done, idempotency.Failed, idempotency.Wait)
	f.ID = r.id()
	return func(ctx context.Context, w *twin) string {
		own := f
		if own.Fence = w.fences[f.ID]; own.Fence == 0 {
			own.Fence = 1 << 40
		}
		a, err := w.Finish(ctx, "ns", []idempotency.Finish{own, own})
		return fmt.Sprint(a, errs(err))
	}
}

func (r *chooser) savePass() call1 {
	p := idempotency.Pass{Job: r.job(), Due: r.due(), Mine: r.bits(), Finished: r.bits(), Keys: int64(r.IntN(9))}
	return func(ctx context.Context, w *twin, s idempotency.Session) string {
		v, err := w.SavePass(ctx, s, []idempotency.Pass{p, p})
		return fmt.Sprint(v, errs(err))
	}
}

func (r *chooser) closeDue() call1 {
	j, due := r.job(), r.due()
	var missed *idempotency.Range
	if r.IntN(2) == 0 {
		missed = &idempotency.Range{Job: j, From: due, To: due, Count: 1, Outcome: idempotency.Missed, Reason: "source"}
	}
	return func(ctx context.Context, w *twin, s idempotency.Session) string {
		closed, err := w.CloseDue(ctx, s, j, due, missed)
		return fmt.Sprint(closed, errs(err))
	}
}

func (r *chooser) prune() call1 {
	limit := r.IntN(12) - 1
	return func(ctx context.Context, w *twin, s idempotency.Session) string {
		n, err := w.Prune(ctx, s, limit)
		return fmt.Sprint(n, errs(err))
	}
}

func (r *chooser) endSession() call1 {
	closes := r.IntN(3) == 0
	return func(ctx context.Context, w *twin, s idempotency.Session) string {
		if closes {
			return errs(w.CloseSession(ctx, s))
		}
		var dead []int64
		for _, x := range w.sessions {
			dead = append(dead, x.ID)
		}
		renewal, err := w.RenewSession(ctx, s)
		return errs(w.MarkDead(ctx, s, dead[max(0, len(dead)-100):])) + fmt.Sprint(renewal.Now, errs(err))
	}
}

func (r *chooser) lagging() call1 {
	q := idempotency.LagQuery{Ranks: [][]byte{r.bits(), r.bits(), nil}, Grace: time.Duration(r.IntN(20)) * time.Second, Limit: r.IntN(5)}
	if r.IntN(3) == 0 {
		q.Full = []string{r.job(), r.job()}
	}
	return func(ctx context.Context, w *twin, s idempotency.Session) string {
		lag, err := w.Lagging(ctx, s, q)
		for i := range lag.Open {
			for j := range lag.Open[i].Passes {
				lag.Open[i].Passes[j].Session = w.rank(lag.Open[i].Passes[j].Session)
			}
		}
		mine, err2 := w.Mine(ctx, s)
		return fmt.Sprintf("%v %d %+v %+v\n%s\n%s\n%s %s %s", lag.Now, lag.Controls, lag.Entries, lag.Open,
			w.runs(lag.Waiting), w.runs(lag.Orphaned), w.runs(mine), errs(err), errs(err2))
	}
}

func (r *chooser) submit() step {
	id := r.id()
	c := idempotency.Command{
		Request: fmt.Sprint("r", r.IntN(400)), Kind: idempotency.CommandKind(1 + r.IntN(7)),
		ID: id, Actor: "ann", Reason: "é\x00",
	}
	if r.IntN(3) == 0 {
		c.ID.Key = ""
	}
	switch c.Kind {
	case idempotency.Skip:
		c.ID.Due = c.ID.Due.Add(time.Minute)
	case idempotency.Trigger:
		c.Payload = [][]byte{nil, []byte("p\x00")}[r.IntN(2)]
	case idempotency.Backfill:
		for due := r.due(); len(c.Dues) < 1+r.IntN(3); due = due.Add(10 * time.Second) {
			c.Dues = append(c.Dues, due)
		}
	}
	return func(ctx context.Context, w *twin) string {
		record, err := w.Submit(ctx, "ns", c)
		return fmt.Sprintf("%+v %s", record, errs(err))
	}
}

func (r *chooser) retire() call1 {
	after := time.Duration(r.IntN(60)) * time.Second
	return func(ctx context.Context, w *twin, s idempotency.Session) string {
		list, err := w.Retire(ctx, s, after)
		return fmt.Sprintf("%+v %s", list, errs(err))
	}
}

// people is what people see.
func (w *twin) people(t *testing.T) string {
	t.Helper()
	o, err := w.Overview(t.Context(), "ns")
	for i := range o.Open {
		for j := range o.Open[i].Passes {
			o.Open[i].Passes[j].Session = w.rank(o.Open[i].Passes[j].Session)
		}
	}
	for i := range o.Sessions {
		o.Sessions[i].ID = w.rank(o.Sessions[i].ID)
	}
	said := []string{fmt.Sprintf("%+v %s", o, errs(err)), w.leads(w.Leader(t.Context(), "ns"))}
	for c, err := range w.Commands(t.Context(), "ns", "plain") {
		said = append(said, fmt.Sprintf("%+v %s", c, errs(err)))
	}
	for d, err := range w.Dues(t.Context(), "ns", "keyed", time.Time{}, time.Time{}) {
		said = append(said, fmt.Sprintf("%+v %s", d, errs(err)))
	}
	for x, err := range w.List(t.Context(), idempotency.Filter{Namespace: "ns", State: idempotency.Ended, Newest: true, Limit: 9}) {
		said = append(said, w.runs([]idempotency.Run{x}), errs(err))
	}
	return strings.Join(said, "\n")
}

// all is everything that a twin has written.
func (w *twin) all(t *testing.T) string {
	t.Helper()
	var runs []idempotency.Run
	for x, err := range w.List(t.Context(), idempotency.Filter{Namespace: "ns"}) {
		if err != nil {
			t.Fatal(err)
		}
		runs = append(runs, x)
	}
	s := w.runs(runs)
	for x, err := range w.Ranges(t.Context(), "ns", "") {
		if err != nil {
			t.Fatal(err)
		}
		s += fmt.Sprintf("%+v\n", x)
	}
	return s + w.people(t)
}

// Asked the same at the same instants, the store answers as the memory store
// does, which says the contract at its plainest.
func TestTwin(t *testing.T) {
	t.Parallel()
	seeds := []uint64{rand.Uint64(), rand.Uint64()}
	if x := os.Getenv(seedIn); x != "" {
		seed, _ := strconv.ParseUint(x, 10, 64)
		seeds = []uint64{seed}
	}
	for _, seed := range seeds {
		t.Run(strconv.FormatUint(seed, 10), func(t *testing.T) {
			t.Parallel()
			compare(t, seed)
		})
	}
}

func compare(t *testing.T, seed uint64) {
	c := newClock()
	s := openAt(t, file(t), nil, c.Now)
	r := &chooser{Rand: rand.New(rand.NewPCG(seed, 0)), base: c.Now().Truncate(time.Second)}
	var twins [2]*twin
	for i, x := range []twinStore{idempotency.NewMemory(c.Now), s} {
		twins[i] = &twin{twinStore: x, ranks: make(map[int64]int), fences: make(map[idempotency.ID]int64)}
	}
	first := r.openSession()
	for i := range 1500 {
		next := first
		if i > 0 {
			next = r.step()
		}
		a, b := next(t.Context(), twins[0]), next(t.Context(), twins[1])
		if i%20 == 0 {
			a, b = a+twins[0].all(t), b+twins[1].all(t)
		}
		if a != b {
			t.Fatalf("call %d: memory answers\n%s\nand sqlite\n%s\nrun again: %s=%d go test -run TestTwin", i, a, b, seedIn, seed)
		}
		if r.IntN(4) == 0 {
			c.Advance(time.Duration(r.IntN(1_500_000)) * time.Microsecond)
		}
	}
	if n := len(twins[0].ranks); n < 50 {
		t.Errorf("%d sessions and fences show little", n)
	}
	count(t, s)
	plans(t, s)
}

// plans demands that no statement of a store that did all of the above reads
// the runs from end to end, or sorts where it wants only the first.
func plans(t *testing.T, s *Store) {
	t.Helper()
	for range s.List(t.Context(), idempotency.Filter{Namespace: "ns", Job: "plain", Key: "plain", From: time.Unix(1, 0), To: time.Now(), Limit: 9}) {
		continue
	}
	for _, pool := range []chan *conn{s.writer, s.readers} {
		c := <-pool
		for text := range c.stmts {
			if !strings.Contains(text, "belfry_run") || strings.Contains(text, "count(*)") || strings.HasPrefix(text, "CREATE") {
				continue
			}
			rows, err := c.c.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, make([]any, strings.Count(text, "?"))...)
			if err != nil {
				t.Errorf("%s: %v", text, err)
				continue
			}
			for rows.Next() {
				var id, parent, unused sql.NullInt64
				var detail string
				if err := rows.Scan(&id, &parent, &unused, &detail); err != nil {
					t.Error(err)
				}
				scans := strings.HasPrefix(detail, "SCAN") && !strings.Contains(detail, "sqlite_schema") && !strings.Contains(detail, "belfry_run_running") &&
					!strings.Contains(detail, "json_each")
				if scans || strings.Contains(text, "LIMIT") && strings.Contains(detail, "TEMP B-TREE") {
					t.Errorf("%s\nof %s", detail, text)
				}
			}
			rows.Close()
		}
		pool <- c
	}
}
