package scheduler_test

import (
	"context"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// The ends that a job's policies, a person or a stop of its replica bring about, as a person reads them.
func TestExplainPolicies(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		ten, fifteen := day(1, 0, 0).Add(10*time.Second), day(1, 0, 0).Add(15*time.Second)
		seventeen := fifteen.Add(2 * time.Second)
		obeys := func(ctx context.Context, _ jobs.Occurrence) error { <-ctx.Done(); return context.Cause(ctx) }
		job := func(name string, run jobs.Handler, change func(*jobs.Job)) jobs.Job {
			j := jobs.Job{Name: name, Schedule: jobs.At(ten, fifteen), Retry: jobs.Retry{Attempts: -1}, Run: run}
			change(&j)
			return j
		}
		once := func(j *jobs.Job) { j.Schedule = jobs.At(ten) }
		thirty := day(1, 0, 0).Add(30 * time.Second)
		late := job("deadline", quick, func(j *jobs.Job) { j.Schedule = jobs.At(thirty); j.StartWithin = 5 * time.Second })
		s, err := scheduler.New(scheduler.Config{
			Namespace: "test", Store: f.store, Members: seat{f.gossip, "a"}, Lease: lease, Sweep: time.Second, Drain: time.Second, Concurrency: 16, Logger: slog.New(slog.DiscardHandler),
		})
		if err == nil {
			err = s.Add(
				job("stalled", func(ctx context.Context, o jobs.Occurrence) error {
					jobs.Progress(ctx, "customer 17 of 90")
					return obeys(ctx, o)
				}, func(j *jobs.Job) { once(j); j.StallAfter = 3 * time.Second }),
				job("handler", func(context.Context, jobs.Occurrence) error { return jobs.Skip("the customer has left") }, once),
				job("canceled", obeys, once),
				job("overtaken", obeys, func(j *jobs.Job) { j.Overlap = jobs.OverlapCancel }),
				job("queued", obeys, func(j *jobs.Job) { j.Schedule, j.Overlap = jobs.At(ten, fifteen, seventeen), jobs.OverlapQueue }),
				late,
				job("released", obeys, once),
			)
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		f.wg.Go(func() { _ = s.Run(ctx) })
		time.Sleep(18 * time.Second)
		if _, err := s.Cancel(t.Context(), idempotency.ID{Job: "canceled", Due: ten}, ann); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2*time.Second + 100*time.Millisecond) // between two renewals
		var b strings.Builder
		tell := func(name string, due time.Time) {
			b.WriteString(explained(t, s.Client, name+" "+due.Format("05"), idempotency.ID{Job: name, Due: due}))
		}
		for _, name := range []string{"stalled", "handler", "canceled", "overtaken"} {
			tell(name, ten)
		}
		tell("overtaken", fifteen)
		tell("queued", fifteen)
		tell("queued", seventeen)
		stop()
		f.wg.Wait()
		tell("released", ten)
		time.Sleep(20 * time.Second) // nobody is there when the last one is due
		second := f.start("b", late)
		time.Sleep(2 * time.Second)
		tell("deadline", thirty)
		f.end(second)
		golden(t, "explain_policies.txt", regexp.MustCompile(`fence \d+`).ReplaceAllString(b.String(), "fence N"))
	})
}
