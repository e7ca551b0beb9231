// Command nightly-renewals is a service that renews subscriptions: every night it charges each of its customers once,
// through a payment provider. Several equal replicas of it run, so that one may fail.
//
//	nightly-renewals seed --store renewals.db --customers 1000
//	nightly-renewals --name a --store renewals.db --provider http://127.0.0.1:9000
//
// The README beside it starts three of them and kills one.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/belfry-go/belfry/idempotency/sqlite"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/membership"
	"github.com/belfry-go/belfry/scheduler"
)

// namespace is this service's name in gossip and in the store.
const namespace = "billing"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "seed" {
		return seed(ctx, args[1:])
	}
	return serve(ctx, args)
}

// seed fills the table of customers.
func seed(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("nightly-renewals seed", flag.ContinueOnError)
	path := f.String("store", "renewals.db", "SQLite `file`, created where it is missing")
	n := f.Int("customers", 1000, "add customers until there are this many")
	if err := parse(f, args); err != nil {
		return err
	}
	c, err := openCustomers(ctx, *path)
	if err != nil {
		return err
	}
	return errors.Join(c.seed(ctx, *n), c.close())
}

// options are what one replica is started with.
type options struct {
	name, store, bind, http, provider string
	seeds                             []string
	every                             time.Duration
}

func serve(ctx context.Context, args []string) error {
	var o options
	f := flag.NewFlagSet("nightly-renewals", flag.ContinueOnError)
	f.StringVar(&o.name, "name", "", "this replica's `name`, unlike all others' (default: the host's)")
	f.StringVar(&o.store, "store", "renewals.db", "SQLite `file` that all replicas share")
	f.StringVar(&o.bind, "bind", "127.0.0.1:7946", "gossip `address`; port 0 takes a free one")
	f.Func("seed", "gossip `address` of another replica; repeat it for more", func(s string) error {
		o.seeds = append(o.seeds, s)
		return nil
	})
	f.StringVar(&o.http, "http", "127.0.0.1:8080", "`address` of the readiness page, /ready; port 0 takes a free one")
	f.StringVar(&o.provider, "provider", "http://127.0.0.1:9000", "`URL` of the payment provider")
	f.DurationVar(&o.every, "every", 0, "a night every so often, to try it out (default: at midnight in New York)")
	if err := parse(f, args); err != nil {
		return err
	}
	return replica(ctx, o)
}

// replica runs until ctx ends, then finishes what it has begun. What it opens it closes in the opposite order.
func replica(ctx context.Context, o options) (err error) {
	customers, err := openCustomers(ctx, o.store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, customers.close()) }()

	store, err := sqlite.Open(ctx, o.store, nil)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()

	cluster, err := membership.Join(ctx, membership.Config{Name: o.name, Namespace: namespace, Bind: o.bind, Seeds: o.seeds})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()

	s, err := scheduler.New(scheduler.Config{Namespace: namespace, Members: cluster, Store: store})
	if err != nil {
		return err
	}
	if err := s.Add(renewals(o.every, customers, newProvider(o.provider, cluster.Self()))); err != nil {
		return err
	}
	page, err := serveReady(o.http, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, page.Close()) }()

	slog.Info("replica started", "replica", cluster.Self(), "gossip", cluster.Addr(), "ready", page.url)
	return s.Run(ctx)
}

// renewals is the one job of this service: at its due, one run per customer.
func renewals(every time.Duration, c *customers, p *provider) jobs.Job {
	night := jobs.Cron("0 0 * * *").In("America/New_York")
	if every != 0 {
		night = jobs.Every(every)
	}
	return jobs.Job{
		Name:     "renewals",
		Schedule: night,
		Keys:     jobs.AllKeys(c.all),
		Retry:    jobs.Retry{Attempts: 8, First: 10 * time.Second}, // a provider that is away for some minutes costs nobody a night
		Timeout:  time.Minute,
		Run: func(ctx context.Context, o jobs.Occurrence) error {
			cents, err := c.price(ctx, o.Key)
			if err != nil {
				return err
			}
			// The provider cannot know which replica is right to ask. It knows a key it has seen before.
			return p.charge(ctx, o.IdempotencyKey(), charge{Customer: o.Key, Cents: cents, Night: o.Due})
		},
	}
}

// parse reads flags alone; a stray word is more likely a slip than meant.
func parse(f *flag.FlagSet, args []string) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%s: %q is not a flag; see --help", f.Name(), f.Arg(0))
	}
	return nil
}
