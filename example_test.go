package belfry_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/belfry-go/belfry/idempotency/sqlite"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/membership"
	"github.com/belfry-go/belfry/scheduler"
)

func run(ctx context.Context, seeds []string) error {
	store, err := sqlite.Open(ctx, "billing.db", nil) // one file, shared by the replicas of one host
	if err != nil {
		return err
	}
	defer store.Close()
	cluster, err := membership.Join(ctx, membership.Config{
		Namespace: "billing", Name: os.Getenv("REPLICA"), Bind: os.Getenv("BIND"), Seeds: seeds,
	})
	if err != nil {
		return err
	}
	defer cluster.Close()
	s, err := scheduler.New(scheduler.Config{Namespace: "billing", Members: cluster, Store: store})
	if err != nil {
		return err
	}
	err = s.Add(jobs.Job{
		Name:     "renewals",
		Schedule: jobs.Cron("0 0 * * *").In("America/New_York"),
		Keys:     jobs.AllKeys(customers), // every replica is asked, and runs its own share
		Run: func(ctx context.Context, o jobs.Occurrence) error {
			return charge(ctx, o.Key, o.IdempotencyKey())
		},
	})
	if err != nil {
		return err
	}
	return s.Run(ctx) // until ctx ends; then it drains
}

// customers would read the customers' table.
func customers(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { yield("42", nil) }
}

// charge would call the payment provider, which charges once per idempotency key.
func charge(ctx context.Context, customer, key string) error {
	slog.Info("charging", "customer", customer, "key", key)
	return ctx.Err()
}

// The program of the README, with its main.
func Example() {
	main := func() {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		if err := run(ctx, strings.Fields(os.Getenv("SEEDS"))); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	_ = main
}
