package jobs_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

func Example() {
	renewals := jobs.Job{
		Name:     "renewals",
		Schedule: jobs.Cron("0 2 * * *").In("Europe/Berlin"),
		Keys:     jobs.KeyList("customer-1", "customer-2"),
		Run: func(ctx context.Context, o jobs.Occurrence) error {
			fmt.Println("charge", o.Key, "once, by", o.IdempotencyKey())
			return nil
		},
	}
	if err := renewals.Validate(); err != nil {
		fmt.Println(err)
		return
	}
	due, _ := renewals.Schedule.Next(time.Date(2026, 10, 1, 12, 0, 0, 0, time.UTC))
	_ = renewals.Run(context.Background(), jobs.Occurrence{
		Namespace: "shop", Job: renewals.Name, Key: "customer-1", Due: due, Attempt: 1,
	})
	// Output: charge customer-1 once, by shop:renewals/customer-1@2026-10-02T00:00:00Z
}

// A mistake in a schedule travels inside it and is reported with all others.
func ExampleJob_Validate() {
	err := jobs.Job{Name: "night shift", Schedule: jobs.Cron("0 0 30 2 *")}.Validate()
	fmt.Println(err)
	// Output:
	// jobs: job "night shift": name "night shift": byte " " is not allowed; use A-Z a-z 0-9 . _ -
	// jobs: job "night shift": schedule "0 0 30 2 *": day of month field, column 5: "30" never fires: the months of "2" have at most 29 days; mend the day, within 1-29 or L to L-28, or the month
	// jobs: job "night shift": no handler; set Run
}

func ExampleEvery() {
	s := jobs.Every(90 * time.Minute).Phase(10 * time.Minute)
	from := time.Date(2026, 10, 1, 4, 0, 0, 0, time.UTC)
	for due := range s.All(from, from.Add(4*time.Hour)) {
		fmt.Println(due.Format(time.TimeOnly))
	}
	fmt.Println(s)
	// Output:
	// 04:40:00
	// 06:10:00
	// 07:40:00
	// @every 1h30m phase 10m
}

// The dues of two schedules, of which one shows a zone of its own.
func ExampleUnion() {
	s := jobs.Union(
		jobs.Cron("0 9 * * 1-5").In("Europe/Berlin"),
		jobs.Cron("0 11 * * 6").In("Europe/Berlin"),
	)
	fmt.Println(s)
	from := time.Date(2026, 10, 2, 0, 0, 0, 0, time.UTC) // a Friday
	for due := range s.All(from, from.AddDate(0, 0, 4)) {
		fmt.Println(due)
	}
	// Output:
	// union(TZ=Europe/Berlin 0 11 * * 6; TZ=Europe/Berlin 0 9 * * 1-5)
	// 2026-10-02 07:00:00 +0000 UTC
	// 2026-10-03 09:00:00 +0000 UTC
	// 2026-10-05 07:00:00 +0000 UTC
}

// Nightly, but not at Christmas: what is excluded fires all day long. In sets the
// zone of both.
func ExampleSchedule_Except() {
	s := jobs.Cron("0 2 * * *").Except(jobs.Cron("* * 24-26 12 *")).In("Europe/Berlin")
	fmt.Println(s)
	from := time.Date(2026, 12, 22, 12, 0, 0, 0, time.UTC)
	for due := range s.All(from, from.AddDate(0, 0, 6)) {
		fmt.Println(due)
	}
	// Output:
	// except(TZ=Europe/Berlin 0 2 * * *; TZ=Europe/Berlin * * 24-26 12 *)
	// 2026-12-23 01:00:00 +0000 UTC
	// 2026-12-27 01:00:00 +0000 UTC
	// 2026-12-28 01:00:00 +0000 UTC
}

func ExampleSchedule_From() {
	launch := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	s := jobs.Cron("@daily").From(launch)
	first, _ := s.Next(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	fmt.Println(s, "begins with", first)
	// Output: from(2026-10-01T00:00:00Z; @daily) begins with 2026-10-01 00:00:00 +0000 UTC
}

func ExampleSchedule_Until() {
	end := time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)
	s := jobs.Cron("@daily").Until(end)
	last, _ := s.Prev(time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC))
	fmt.Println(s, "ends with", last)
	_, more := s.Next(last)
	fmt.Println("more:", more)
	// Output:
	// until(2026-10-01T00:00:00Z; @daily) ends with 2026-09-30 00:00:00 +0000 UTC
	// more: false
}

// A planner counts what was missed in a year, a bounded turn at a time.
func ExampleSchedule_Tally() {
	s := jobs.Union(jobs.Every(time.Minute), jobs.Cron("@daily"))
	at := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	end := at.AddDate(1, 0, 0)
	missed := int64(0)
	for at.Before(end) {
		n, until := s.Tally(at, end, 10_000)
		missed, at = missed+n, until
	}
	fmt.Println(missed)
	// Output: 525600
}

func ExampleParseSchedule() {
	s, err := jobs.ParseSchedule("TZ=America/New_York 30 9 * * 1-5")
	next, _ := s.Next(time.Date(2026, 10, 2, 14, 0, 0, 0, time.UTC))
	fmt.Println(next, err)
	_, err = jobs.ParseSchedule("TZ=Local 0 2 * * *")
	fmt.Println(err)
	// Output:
	// 2026-10-05 13:30:00 +0000 UTC <nil>
	// jobs: schedule "TZ=Local 0 2 * * *": column 4: zone "Local" would mean another clock on each host; name one, such as UTC or Europe/Berlin
}

func ExamplePermanent() {
	declined := errors.New("card declined")
	err := fmt.Errorf("charge: %w", jobs.Permanent(declined))
	fmt.Println(err, jobs.IsPermanent(err))
	// Output: charge: card declined true
}

// What a run is given is decoded, and what cannot be fails the run for good.
func ExampleTyped() {
	type invoice struct{ Customer string }
	run := jobs.Typed(func(_ context.Context, o jobs.Occurrence, i invoice) error {
		fmt.Println("bill", i.Customer)
		return nil
	})
	fmt.Println(run(context.Background(), jobs.Occurrence{Payload: []byte(`{"Customer": "Ada"}`)}))
	err := run(context.Background(), jobs.Occurrence{Payload: []byte(`{"Client": "Ada"}`)})
	fmt.Println(jobs.IsPermanent(err), err)
	// Output:
	// bill Ada
	// <nil>
	// true payload of 17 bytes is no jobs_test.invoice: json: unknown field "Client"; mend it where the job is added, or the run was triggered
}

// A long handler tells that it gets on, so that StallAfter can be shorter than Timeout.
func ExampleProgress() {
	run := func(ctx context.Context, _ jobs.Occurrence) error {
		for page := range 3 {
			jobs.Progress(ctx, fmt.Sprintf("page %d of 3", page+1))
		}
		return nil
	}
	ctx := jobs.WithProgress(context.Background(), func(note string) { fmt.Println(note) }) // in a test; a scheduler does so itself
	if err := run(ctx, jobs.Occurrence{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// page 1 of 3
	// page 2 of 3
	// page 3 of 3
}

// A handler logs with the logger of its run, and never has to say which run that is.
func ExampleLogger() {
	run := func(ctx context.Context, o jobs.Occurrence) error {
		jobs.Logger(ctx).Info("charged", "cents", 500)
		return nil
	}
	plain := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
	ctx := jobs.WithLogger(context.Background(), plain.With("job", "renewals", "key", "c-1")) // in a test; a scheduler does so itself
	if err := run(ctx, jobs.Occurrence{}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// level=INFO msg=charged job=renewals key=c-1 cents=500
}

// A receiver that says when to come back is asked again then, and not when the back-off says.
func ExampleRetryAfter() {
	limited := errors.New("429 Too Many Requests")
	err := fmt.Errorf("charge: %w", jobs.RetryAfter(30*time.Second, limited))
	wait, asked := jobs.RetryDelay(err)
	fmt.Println(err, errors.Is(err, limited), wait, asked)
	// Output:
	// charge: 429 Too Many Requests true 30s true
}

// A handler that finds nothing to do says so: its run is recorded as skipped, and neither as done nor as failed.
func ExampleSkip() {
	run := func(_ context.Context, o jobs.Occurrence) error {
		if o.Key == "c-7" {
			return jobs.Skip("the customer has left")
		}
		return nil
	}
	reason, skipped := jobs.SkipReason(run(context.Background(), jobs.Occurrence{Key: "c-7"}))
	fmt.Println(skipped, reason)
	// Output:
	// true the customer has left
}
