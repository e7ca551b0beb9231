package scheduler_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/scheduler"
)

// desk is a client of a store whose clock stands still unless it is set, and a session of replica a through which a test does
// what replicas do.
type desk struct {
	t       *testing.T
	now     time.Time
	store   *idempotency.Memory
	session idempotency.Session
	client  *scheduler.Client
	nonce   int64
	overlap idempotency.Overlap // of what is decided
	jobs    []idempotency.Declaration
}

var ann = scheduler.By{Actor: "ann", Reason: "provider down"}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, now: day(10, 0, 0), overlap: idempotency.OverlapAllow}
	d.store = idempotency.NewMemory(func() time.Time { return d.now })
	d.session = d.open("a")
	var err error
	if d.client, err = scheduler.NewClient("test", d.store); err != nil {
		t.Fatal(err)
	}
	return d
}

func (d *desk) open(replica string) idempotency.Session {
	d.t.Helper()
	ses, _, err := d.store.OpenSession(d.t.Context(), idempotency.Opening{
		Namespace: "test", Replica: replica, Boot: replica, Partitions: 8,
		Lease: 100 * 24 * time.Hour, Horizon: 24 * time.Hour, Retention: 7 * 24 * time.Hour,
	})
	if err != nil {
		d.t.Fatal(err)
	}
	return ses
}

// declare adds a job that is decided up to an instant; zero: an efficiency job.
func (d *desk) declare(job, schedule string, keyed bool, opened time.Time) {
	d.t.Helper()
	def := idempotency.Definition{Job: job, Schedule: schedule, Hash: "h1", Keyed: keyed}
	d.jobs = append(d.jobs, idempotency.Declaration{Definition: def, Opened: opened})
	d.nonce++
	if _, err := d.store.Declare(d.t.Context(), d.session, d.nonce, d.jobs); err != nil {
		d.t.Fatal(err)
	}
}

// entry is the job's.
func (d *desk) entry(job string) idempotency.Entry {
	d.t.Helper()
	o, err := d.store.Overview(d.t.Context(), "test")
	if err != nil {
		d.t.Fatal(err)
	}
	i := slices.IndexFunc(o.Entries, func(e idempotency.Entry) bool { return e.Job == job })
	if i < 0 {
		d.t.Fatalf("there is no job %q", job)
	}
	return o.Entries[i]
}

// decide decides the job's dues up to an instant: these run, claimed where claim says so, the ranges do not.
func (d *desk) decide(job string, upTo time.Time, claim int, run []time.Time, ranges ...idempotency.Range) []idempotency.Run {
	d.t.Helper()
	e := d.entry(job)
	d.nonce++
	got, err := d.store.Decide(d.t.Context(), d.session, d.nonce, []idempotency.Decision{{
		Seen: e, Definition: e.Definition, Opened: upTo, Keyed: e.Keyed, Run: run, Ranges: ranges, Claim: claim, Overlap: d.overlap,
	}})
	if err != nil || !got[0].Won {
		d.t.Fatalf("decide %s: %+v, %v", job, got, err)
	}
	return got[0].Runs
}

// finish ends a run, or lets it wait.
func (d *desk) finish(r idempotency.Run, f idempotency.Finish) {
	d.t.Helper()
	f.ID, f.Fence = r.ID, r.Fence
	got, err := d.store.Finish(d.t.Context(), "test", []idempotency.Finish{f})
	if err != nil || got[0] != idempotency.Finished {
		d.t.Fatalf("finish %v: %v, %v", r.ID, got, err)
	}
}

// row is the run of an ID.
func (d *desk) row(id idempotency.ID) *idempotency.Run {
	d.t.Helper()
	for r, err := range d.client.Runs(d.t.Context(), idempotency.Filter{Job: id.Job, Key: id.Key, From: id.Due, To: id.Due.Add(time.Second)}) {
		if err != nil {
			d.t.Fatal(err)
		}
		if r.ID.Request == id.Request {
			return &r
		}
	}
	return nil
}

// want demands an error that wraps target and says all of the texts.
func want(t *testing.T, err, target error, texts ...string) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("got %v, want %v", err, target)
		return
	}
	for _, s := range texts {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("%q does not say %q", err, s)
		}
	}
}

func TestNewClientChecks(t *testing.T) {
	t.Parallel()
	_, err := scheduler.NewClient("test", nil)
	want(t, err, scheduler.ErrNoStore, "give it the one that the replicas share")
	_, err = scheduler.NewClient("test", struct{ idempotency.Store }{idempotency.NewMemory(nil)})
	want(t, err, scheduler.ErrNoStore, "idempotency.History")
	_, err = scheduler.NewClient("test", struct {
		idempotency.Store
		idempotency.History
	}{idempotency.NewMemory(nil), idempotency.NewMemory(nil)})
	want(t, err, scheduler.ErrNoStore, "idempotency.Control")
	if _, err = scheduler.NewClient("a b", idempotency.NewMemory(nil)); err == nil || !strings.Contains(err.Error(), `"a b"`) {
		t.Errorf("a bad namespace: %v", err)
	}
}

// A scheduler without a store has a client all the same, each of whose methods says what is missing.
func TestWithoutStore(t *testing.T) {
	t.Parallel()
	s, err := scheduler.New(scheduler.Config{Namespace: "test", Members: seat{newGossip(), "a"}, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, id := t.Context(), idempotency.ID{Job: "j", Key: "j", Due: day(1, 0, 0)}
	one := func(_ any, err error) error { return err }
	for name, err := range map[string]error{
		"Jobs":     one(s.Jobs(ctx)),
		"Explain":  one(s.Explain(ctx, id)),
		"Trigger":  one(s.Trigger(ctx, "j", "", nil, ann)),
		"Pause":    one(s.Pause(ctx, "j", ann)),
		"Resume":   one(s.Resume(ctx, "j", ann)),
		"SkipNext": one(s.SkipNext(ctx, "j", "", ann)),
		"Backfill": one(s.Backfill(ctx, "j", "", day(1, 0, 0), day(2, 0, 0), ann)),
		"Cancel":   one(s.Cancel(ctx, id, ann)),
		"Retry":    one(s.Retry(ctx, id, ann)),
		"Runs":     errorOf(s.Runs(ctx, idempotency.Filter{})),
		"Commands": errorOf(s.Commands(ctx, "")),
		"Gaps":     errorOf(s.Gaps(ctx, "j", day(1, 0, 0), day(2, 0, 0))),
	} {
		if !errors.Is(err, scheduler.ErrNoStore) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// errorOf is the error that a sequence ends with.
func errorOf[T any](seq func(func(T, error) bool)) (last error) {
	for _, err := range seq {
		last = err
	}
	return last
}

// A name that is not there is answered with those that are like it, by everything that takes one.
func TestUnknownJob(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	_, err := d.client.Pause(ctx, "renewals", ann)
	want(t, err, scheduler.ErrUnknown, "no replica has declared a job", `namespace "test"`)
	for _, name := range []string{"renewals", "nightly-renewals", "backup", "mailing", "x"} {
		d.declare(name, "0 2 * * *", false, d.now)
	}
	_, err = d.client.Pause(ctx, "Renewal", ann)
	want(t, err, scheduler.ErrUnknown, `"Renewal"`, `of its 5: "renewals", `)
	_, err = d.client.Explain(ctx, idempotency.ID{Job: "bakcup", Due: d.now})
	want(t, err, scheduler.ErrUnknown, `of its 5: "backup", `)
	want(t, errorOf(d.client.Runs(ctx, idempotency.Filter{Job: "nightly"})), scheduler.ErrUnknown, `"nightly-renewals"`)
	want(t, errorOf(d.client.Commands(ctx, "nightly")), scheduler.ErrUnknown)
	want(t, errorOf(d.client.Gaps(ctx, "nightly", day(1, 0, 0), d.now)), scheduler.ErrUnknown)
	if err := errorOf(d.client.Runs(ctx, idempotency.Filter{Job: "backup"})); err != nil {
		t.Errorf("a job without runs: %v", err)
	}
}

func TestJobs(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	ctx := t.Context()
	d.declare("backup", "0 2 * * *", false, day(9, 0, 0))
	d.declare("cache", "@every 10m", false, time.Time{})
	d.declare("calendar", "@custom holidays", false, day(9, 0, 0))
	d.declare("renewals", "TZ=Europe/Berlin 0 4 * * *", true, day(9, 0, 0))
	r := d.decide("backup", d.now, 1, []time.Time{day(9, 2, 0)})
	d.finish(r[0], idempotency.Finish{Outcome: idempotency.Failed, Attempt: 1, Reason: "permanent"})
	if _, err := d.client.SkipNext(ctx, "backup", "", ann); err != nil {
		t.Fatal(err)
	}
	if _, err := d.client.Pause(ctx, "renewals", ann); err != nil {
		t.Fatal(err)
	}
	list, err := d.client.Jobs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, j := range list {
		s := fmt.Sprintf("%s %q keyed=%t eff=%t next=%s opened=%s paused=%s retired=%s on %v", j.Name, j.Schedule, j.Keyed, j.Efficiency,
			stamp(j.Next), stamp(j.Opened), stamp(j.PausedFrom), stamp(j.Retired), j.Announced)
		if j.Last != nil {
			s += fmt.Sprintf(" last %s %s", stamp(j.Last.ID.Due), j.Last.Outcome)
		}
		got = append(got, s)
	}
	wanted := []string{
		`backup "0 2 * * *" keyed=false eff=false next=10T02:00 opened=10T00:00 paused=- retired=- on [a] last 09T02:00 failed`,
		`cache "@every 10m" keyed=false eff=true next=10T00:10 opened=- paused=- retired=- on [a]`,
		`calendar "@custom holidays" keyed=false eff=false next=- opened=09T00:00 paused=- retired=- on [a]`,
		`renewals "TZ=Europe/Berlin 0 4 * * *" keyed=true eff=false next=09T03:00 opened=09T00:00 paused=10T00:00 retired=- on [a]`,
	}
	if !slices.Equal(got, wanted) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(wanted, "\n"))
	}
}

// stamp is a day and minute of January 2000.
func stamp(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("02T15:04")
}

// The client's namespace is the one that is read, whatever a filter says; a sequence that is not read on stops.
func TestRunsAreOfTheNamespace(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.declare("backup", "@every 1h", false, day(9, 0, 0))
	d.decide("backup", day(9, 3, 0), 0, []time.Time{day(9, 1, 0), day(9, 2, 0), day(9, 3, 0)})
	n := 0
	for r, err := range d.client.Runs(t.Context(), idempotency.Filter{Namespace: "other", Job: "backup", Newest: true}) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; !r.ID.Due.Equal(day(9, 4-n, 0)) {
			t.Errorf("run %d is of %v", n, r.ID.Due)
		}
		if n == 2 {
			break
		}
	}
	if n != 2 {
		t.Errorf("%d runs were listed", n)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	want(t, errorOf(d.client.Runs(ctx, idempotency.Filter{})), context.Canceled, "list runs")
	_, err := d.client.Jobs(ctx)
	want(t, err, context.Canceled, `namespace "test"`)
}
