package jobs_test

import (
	"context"
	"errors"
	"fmt"
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
