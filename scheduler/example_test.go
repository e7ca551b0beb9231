package scheduler_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// One replica alone, with a store in memory: enough to try a job out.
func Example() {
	s, err := scheduler.New(scheduler.Config{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	err = s.Add(jobs.Job{
		Name:     "report",
		Schedule: jobs.At(time.Now().Add(2 * time.Second).Truncate(time.Second)),
		Run: func(_ context.Context, o jobs.Occurrence) error {
			fmt.Printf("attempt %d of %s/%s\n", o.Attempt, o.Job, o.Key)
			stop()
			return nil
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Run(ctx))
	// Output:
	// attempt 1 of report/report
	// <nil>
}

// Every problem of every job is in the error; none of them is added.
func ExampleScheduler_Add() {
	s, err := scheduler.New(scheduler.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Add(
		jobs.Job{Name: "a b", Schedule: jobs.Every(time.Hour), Run: func(context.Context, jobs.Occurrence) error { return nil }},
		jobs.Job{Name: "report", Run: func(context.Context, jobs.Occurrence) error { return nil }},
	))
	// Output:
	// scheduler: jobs: job "a b": name "a b": byte " " is not allowed; use A-Z a-z 0-9 . _ -
	// scheduler: jobs: job "report": no schedule; set Schedule, to jobs.Manual() for a job that only runs when it is triggered
}

// The first SIGTERM, or Ctrl-C, begins the drain; the second cuts off what is still at work.
func ExampleScheduler_Hurry() {
	s, err := scheduler.New(scheduler.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	told := make(chan os.Signal, 2)
	signal.Notify(told, os.Interrupt, syscall.SIGTERM)
	go func() { <-told; stop(); <-told; s.Hurry() }()
	err = s.Run(ctx)
	fmt.Println(err)
}
