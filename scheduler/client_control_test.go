package scheduler_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// hourly is a desk with a job that is due each hour and decided up to midnight of the 10th, one with keys, one of a
// program's own schedule and one that the store has no record of.
func hourly(t *testing.T) *desk {
	t.Helper()
	d := newDesk(t)
	d.declare("backup", "@every 1h", false, d.now)
	d.declare("renewals", "@every 1h", true, d.now)
	d.declare("calendar", "@custom holidays", false, d.now)
	d.declare("cache", "@every 10m", false, time.Time{})
	return d
}

func by(request string) scheduler.By { return scheduler.By{Actor: "ann", Request: request} }

func TestCommandsNameWhoAsks(t *testing.T) {
	t.Parallel()
	d := hourly(t)
	_, err := d.client.Pause(t.Context(), "backup", scheduler.By{Reason: "no name"})
	want(t, err, idempotency.ErrRejected, `pause job "backup"`, "By.Actor is empty; say who asks")
	_, err = d.client.Pause(t.Context(), "backup", by("not a name"))
	want(t, err, idempotency.ErrRejected, `"not a name"`)
	_, err = d.client.Pause(t.Context(), "backup", by(strings.Repeat("x", 37)))
	want(t, err, idempotency.ErrRejected, "at most 36")
	if n := len(d.commands("")); n > 0 {
		t.Errorf("%d commands are recorded", n)
	}
	first, err := d.client.Pause(t.Context(), "backup", ann)
	if err != nil || first.Changed != 1 || first.Actor != "ann" || first.Reason != ann.Reason || !first.At.Equal(d.now) {
		t.Errorf("got %+v, %v", first, err)
	}
	if err := jobs.ValidateRequest(first.Request); err != nil {
		t.Error(err)
	}
	d.now = d.now.Add(time.Second)
	second, err := d.client.Pause(t.Context(), "backup", ann)
	if err != nil || second.Changed != 0 || second.Request == first.Request {
		t.Errorf("paused again: %+v, %v", second, err)
	}
	d.now = d.now.Add(time.Second)
	if c, err := d.client.Resume(t.Context(), "backup", ann); err != nil || c.Changed != 1 {
		t.Errorf("resumed: %+v, %v", c, err)
	}
	if got := d.commands("backup"); len(got) != 3 || got[0].Kind != idempotency.Resume || got[2].Request != first.Request {
		t.Errorf("recorded are %+v", got)
	}
}

func (d *desk) commands(job string) (list []idempotency.Command) {
	d.t.Helper()
	for c, err := range d.client.Commands(d.t.Context(), job) {
		if err != nil {
			d.t.Fatal(err)
		}
		list = append(list, c)
	}
	return list
}

func TestTrigger(t *testing.T) {
	t.Parallel()
	d := hourly(t)
	ctx := t.Context()
	c, err := d.client.Trigger(ctx, "backup", "", []byte("full"), by("r-1"))
	if err != nil {
		t.Fatal(err)
	}
	id := c.ID
	id.Request = c.Request
	r := d.row(id)
	if r == nil || r.ID.Key != "backup" || r.State != idempotency.Waiting || string(r.Payload) != "full" || r.Reason != "by hand" {
		t.Fatalf("the run is %+v", r)
	}
	d.now = d.now.Add(time.Minute)
	if again, err := d.client.Trigger(ctx, "backup", "backup", []byte("full"), by("r-1")); err != nil || !again.ID.Due.Equal(c.ID.Due) {
		t.Errorf("asked again it is %+v, %v", again, err)
	}
	_, err = d.client.Trigger(ctx, "backup", "42", nil, ann)
	want(t, err, idempotency.ErrRejected, `job "backup"`, `it has no keys, but key "42"`)
	if c, err = d.client.Trigger(ctx, "renewals", "", nil, ann); err != nil || c.Changed != 1 {
		t.Fatalf("all keys: %+v, %v", c, err)
	}
	o, err := d.store.Overview(ctx, "test")
	if err != nil || len(o.Open) != 1 || !o.Open[0].Due.Equal(c.ID.Due) {
		t.Errorf("open are %+v, %v", o.Open, err)
	}
	if c, err = d.client.Trigger(ctx, "cache", "", nil, by("r-2")); err != nil || c.Changed != 1 {
		t.Errorf("an efficiency job: %+v, %v", c, err)
	}
	_, err = d.client.Pause(ctx, "backup", by("r-2"))
	want(t, err, idempotency.ErrRejected, `job "backup"`, "take a new request")
}

// The next due is that after the last decided one. Asked again by the same request, also when that due has come, nothing
// more is skipped.
func TestSkipNext(t *testing.T) {
	t.Parallel()
	d := hourly(t)
	ctx := t.Context()
	c, err := d.client.SkipNext(ctx, "backup", "", by("r-1"))
	if err != nil || c.Changed != 1 || !c.ID.Due.Equal(day(10, 1, 0)) {
		t.Fatalf("got %+v, %v", c, err)
	}
	if r := d.row(idempotency.ID{Job: "backup", Key: "backup", Due: c.ID.Due}); r == nil || r.Outcome != idempotency.Skipped || r.Reason != "by hand" {
		t.Errorf("the run is %+v", r)
	}
	if c, err := d.client.SkipNext(ctx, "backup", "", by("r-2")); err != nil || c.Changed != 0 || !c.ID.Due.Equal(day(10, 1, 0)) {
		t.Errorf("another request skips %+v, %v", c, err)
	}
	d.now = day(10, 1, 30)
	d.decide("backup", d.now, 0, []time.Time{day(10, 1, 0)})
	if c, err := d.client.SkipNext(ctx, "backup", "", by("r-1")); err != nil || c.Changed != 1 || !c.ID.Due.Equal(day(10, 1, 0)) {
		t.Errorf("the same request skips %+v, %v", c, err)
	}
	if c, err := d.client.SkipNext(ctx, "backup", "", by("r-3")); err != nil || !c.ID.Due.Equal(day(10, 2, 0)) {
		t.Errorf("a new request skips %+v, %v", c, err)
	}
	if c, err := d.client.SkipNext(ctx, "renewals", "42", ann); err != nil || c.ID.Key != "42" || !c.ID.Due.Equal(day(10, 1, 0)) {
		t.Errorf("one key: %+v, %v", c, err)
	}
	_, err = d.client.SkipNext(ctx, "calendar", "", ann)
	want(t, err, idempotency.ErrRejected, "@custom holidays", "pause the job")
	_, err = d.client.SkipNext(ctx, "cache", "", ann)
	want(t, err, idempotency.ErrRejected, "efficiency job", "pause it instead")
	d.declare("once", "@at 2000-01-09T00:00:00Z", false, d.now)
	_, err = d.client.SkipNext(ctx, "once", "", ann)
	want(t, err, idempotency.ErrRejected, "no due after 2000-01-10T01:30:00Z")
}

// overtaken is a store in which a replica decides between what a client reads and what it asks for.
type overtaken struct {
	*idempotency.Memory
	before func()
}

func (o overtaken) Submit(ctx context.Context, namespace string, c idempotency.Command) (idempotency.Command, error) {
	o.before()
	return o.Memory.Submit(ctx, namespace, c)
}

// A due that is decided while it is being skipped is not the next one any more; who always comes too late is told.
func TestSkipNextComesLate(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ times, want int }{"twice": {2, 3}, "always": {100, 0}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := hourly(t)
			n := 0
			client, err := scheduler.NewClient("test", overtaken{d.store, func() {
				if n++; n <= c.times {
					d.now = d.now.Add(time.Hour)
					d.decide("backup", d.now, 0, []time.Time{d.now})
				}
			}})
			if err != nil {
				t.Fatal(err)
			}
			got, err := client.SkipNext(t.Context(), "backup", "", ann)
			if c.want == 0 {
				want(t, err, idempotency.ErrRejected, "is decided already")
			} else if err != nil || !got.ID.Due.Equal(day(10, c.want, 0)) {
				t.Errorf("got %+v, %v", got, err)
			}
		})
	}
}

func TestBackfill(t *testing.T) {
	t.Parallel()
	d := hourly(t)
	ctx := t.Context()
	from, to := day(9, 20, 0), day(10, 0, 0)
	if dues, err := d.client.BackfillDues(ctx, "backup", "backup", from, to.Add(time.Nanosecond)); err != nil || len(dues) != 5 || !dues[4].Equal(to) {
		t.Errorf("the dues beforehand: %v, %v", dues, err)
	}
	c, err := d.client.Backfill(ctx, "backup", "", from, to.Add(time.Nanosecond), by("r-1"))
	if err != nil || c.Changed != 5 {
		t.Fatalf("got %+v, %v", c, err)
	}
	for h := range 5 {
		if r := d.row(idempotency.ID{Job: "backup", Key: "backup", Due: from.Add(time.Duration(h) * time.Hour)}); r == nil || r.State != idempotency.Waiting {
			t.Errorf("%d hours later the run is %+v", h, r)
		}
	}
	if c, err := d.client.Backfill(ctx, "backup", "", from.Add(-time.Nanosecond), to, by("r-2")); err != nil || c.Changed != 0 {
		t.Errorf("what waits was changed: %+v, %v", c, err)
	}
	// A repetition is the first record; of another stretch, which would pass for that one, there is none.
	if c, err := d.client.Backfill(ctx, "backup", "", from.Add(-time.Minute), to.Add(time.Nanosecond), by("r-1")); err != nil || c.Changed != 5 {
		t.Errorf("asked again: %+v, %v", c, err)
	}
	for _, hours := range [][2]time.Duration{{-1, 0}, {1, 0}, {0, -1}} {
		_, err := d.client.Backfill(ctx, "backup", "", from.Add(hours[0]*time.Hour), to.Add(hours[1]*time.Hour+time.Nanosecond), by("r-1"))
		want(t, err, idempotency.ErrRejected, "another range, "+from.Format(time.RFC3339)+" to "+to.Format(time.RFC3339))
	}
	if c, err := d.client.Backfill(ctx, "renewals", "", from, to, ann); err != nil || c.Changed != 4 {
		t.Errorf("all keys: %+v, %v", c, err)
	}
	if c, err := d.client.Backfill(ctx, "renewals", "42", from, to, ann); err != nil || c.Changed != 4 {
		t.Errorf("one key: %+v, %v", c, err)
	}
	for name, x := range map[string]struct {
		job, key string
		from, to time.Time
		says     []string
	}{
		"too many":        {"backup", "", day(10, 0, 0).AddDate(-1, 0, 0), to, []string{"8760 dues", "at most 1000 at once", "those before 1999-02-20T16:00:00Z"}},
		"one too many":    {"backup", "", to.Add(-1000 * time.Hour), to.Add(time.Second), []string{"1001 dues", "those before 2000-01-10T00:00:00Z"}},
		"not decided":     {"backup", "", from, day(10, 2, 0), []string{"due 2000-01-10T01:00:00Z is not decided yet: those up to 2000-01-10T00:00:00Z are"}},
		"empty":           {"backup", "", to, from, []string{"set from before to"}},
		"no due":          {"backup", "", from.Add(time.Minute), from.Add(2 * time.Minute), []string{"has no due from 1999", "belfry next"}[1:]},
		"a key of none":   {"backup", "42", from, to, []string{"it has no keys"}},
		"program's own":   {"calendar", "", from, to, []string{"@custom holidays", "trigger the runs"}},
		"efficiency":      {"cache", "", from, to, []string{"efficiency job", "trigger it"}},
		"above the years": {"backup", "", day(1, 0, 0).AddDate(9000, 0, 0), day(2, 0, 0).AddDate(9000, 0, 0), []string{"no due"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := d.client.Backfill(ctx, x.job, x.key, x.from, x.to, ann)
			want(t, err, idempotency.ErrRejected, x.says...)
			_, err = d.client.BackfillDues(ctx, x.job, x.key, x.from, x.to)
			want(t, err, idempotency.ErrRejected, x.says...)
		})
	}
	if _, err := d.client.Backfill(ctx, "backup", "", to.Add(-1000*time.Hour), to, ann); err != nil {
		t.Errorf("a thousand: %v", err)
	}
}

// left is a store whose caller goes away once it has the overview.
type left struct {
	*idempotency.Memory
	stop func()
}

func (l left) Overview(ctx context.Context, namespace string) (idempotency.Overview, error) {
	defer l.stop()
	return l.Memory.Overview(ctx, namespace)
}

// A command whose caller has gone is not rejected: it may be asked again.
func TestCallerLeaves(t *testing.T) {
	t.Parallel()
	d := hourly(t)
	ctx, stop := context.WithCancel(t.Context())
	c, err := scheduler.NewClient("test", left{d.store, stop})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Backfill(ctx, "backup", "", day(9, 0, 0), d.now, ann)
	if want(t, err, context.Canceled); errors.Is(err, idempotency.ErrRejected) {
		t.Errorf("%v is a rejection", err)
	}
}

func TestCancelAndRetry(t *testing.T) {
	t.Parallel()
	d := hourly(t)
	ctx := t.Context()
	d.now = day(10, 3, 0)
	runs := d.decide("backup", d.now, 2, []time.Time{day(10, 1, 0), day(10, 2, 0), day(10, 3, 0)})
	d.finish(runs[0], idempotency.Finish{Outcome: idempotency.Failed, Attempt: 3, Reason: "exhausted"})
	at := func(hour int) idempotency.ID { return idempotency.ID{Job: "backup", Due: day(10, hour, 0)} }

	if c, err := d.client.Retry(ctx, at(1), ann); err != nil || c.Changed != 1 {
		t.Errorf("retry: %+v, %v", c, err)
	}
	if r := d.row(runs[0].ID); r.State != idempotency.Waiting || r.Attempt != 0 {
		t.Errorf("the run to retry is %+v", r)
	}
	_, err := d.client.Retry(ctx, at(2), ann)
	want(t, err, idempotency.ErrRejected, `retry job "backup", due 2000-01-10T02:00:00Z`)
	if c, err := d.client.Cancel(ctx, at(2), ann); err != nil || c.Changed != 1 || d.row(runs[1].ID).Cancel != idempotency.Canceled {
		t.Errorf("cancel at work: %+v, %v", c, err)
	}
	if c, err := d.client.Cancel(ctx, at(3), ann); err != nil || c.Changed != 1 || d.row(runs[2].ID).Outcome != idempotency.Skipped {
		t.Errorf("cancel waiting: %+v, %v", c, err)
	}
	_, err = d.client.Cancel(ctx, at(3), ann)
	want(t, err, idempotency.ErrRejected, "has ended")
	_, err = d.client.Cancel(ctx, at(4), ann)
	want(t, err, idempotency.ErrRejected, "there is no run")
	_, err = d.client.Cancel(ctx, idempotency.ID{Job: "renewals", Due: d.now}, ann)
	want(t, err, idempotency.ErrRejected, "it has keys; name that of the run")
	_, err = d.client.Cancel(ctx, idempotency.ID{Job: "backup"}, ann)
	want(t, err, idempotency.ErrRejected, "not a whole second")
}
