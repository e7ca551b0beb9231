// Command nightly-renewals is a service that renews subscriptions: every night it charges each of its customers once,
// through a payment provider. Several equal replicas of it run, so that one may fail.
//
//	nightly-renewals seed --store renewals.db --customers 1000
//	nightly-renewals --name a --store renewals.db --provider http://127.0.0.1:9000
//
// With DATABASE_URL=postgres://… in the environment, Postgres takes the place of the file.
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

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/membership"
	"github.com/belfry-go/belfry/scheduler"
	"github.com/belfry-go/belfry/scheduler/promhooks"
)

// namespace is this service's name in gossip and in the store.
const namespace = "billing"

func main() {
	ctx, hurry := signals()
	err := run(ctx, hurry, os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// signals returns a context that ends with the first SIGTERM or Ctrl-C, and one that ends with the second.
func signals() (ctx, hurry context.Context) {
	ctx, stop := context.WithCancelCause(context.Background())
	hurry, now := context.WithCancel(context.Background())
	told := make(chan os.Signal, 2)
	signal.Notify(told, os.Interrupt, syscall.SIGTERM)
	go func() {
		stop(fmt.Errorf("signal: %v", <-told)) // the other replicas log why this one goes
		<-told
		now()
		signal.Stop(told) // a third ends the program as it is
	}()
	return ctx, hurry
}

func run(ctx, hurry context.Context, args []string) error {
	if len(args) > 0 && args[0] == "seed" {
		return seed(ctx, args[1:])
	}
	return serve(ctx, hurry, args)
}

// seed fills the table of customers.
func seed(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("nightly-renewals seed", flag.ContinueOnError)
	path := f.String("store", "renewals.db", "SQLite `file`, created where it is missing; not used where "+databaseURL+" is set")
	n := f.Int("customers", 1000, "add customers until there are this many")
	if err := parse(f, args); err != nil {
		return err
	}
	db, err := openDatabase(ctx, *path)
	if err != nil {
		return err
	}
	return errors.Join(db.seed(ctx, *n), db.close())
}

// options are what one replica is started with.
type options struct {
	name, store, bind, advertise, gossipKey, http, provider string
	seeds                                                   []string
	every                                                   time.Duration
}

// flags are the command line of a replica, read into o.
func (o *options) flags() *flag.FlagSet {
	f := flag.NewFlagSet("nightly-renewals", flag.ContinueOnError)
	f.StringVar(&o.name, "name", "", "this replica's `name`, unlike all others' (default: the host's)")
	f.StringVar(&o.store, "store", "renewals.db", "SQLite `file` that all replicas share; not used where "+databaseURL+" is set")
	f.StringVar(&o.bind, "bind", "127.0.0.1:7946", "gossip `address`; port 0 takes a free one")
	f.StringVar(&o.advertise, "advertise", "", "`address` at which the other replicas reach this one (default: what is bound)")
	f.StringVar(&o.gossipKey, "gossip-key", "", "`file` of 32 random bytes, the same for all replicas; needed off loopback")
	f.Func("seed", "gossip `address` of another replica, or a name that resolves to all; repeat it for more", func(s string) error {
		o.seeds = append(o.seeds, s)
		return nil
	})
	f.StringVar(&o.http, "http", "127.0.0.1:8080", "`address` of the pages /livez, /readyz and /metrics; port 0 takes a free one")
	f.StringVar(&o.provider, "provider", "http://127.0.0.1:9000", "`URL` of the payment provider")
	f.DurationVar(&o.every, "every", 0, "a night every so often, to try it out (default: at midnight in New York)")
	return f
}

func serve(ctx, hurry context.Context, args []string) error {
	var o options
	if err := parse(o.flags(), args); err != nil {
		return err
	}
	return replica(ctx, hurry, o)
}

// drain is how long a replica that is told to stop may finish what it has begun.
const drain = 25 * time.Second

// replica runs until ctx ends, then finishes what it has begun, unless hurry ends too: that cuts it off, and other replicas
// repeat it. What it opens it closes in the opposite order.
func replica(ctx, hurry context.Context, o options) (err error) {
	db, err := openDatabase(ctx, o.store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()

	secrets, err := readGossipKey(o.gossipKey)
	if err != nil {
		return err
	}
	cluster, err := membership.Join(ctx, membership.Config{
		Name: o.name, Namespace: namespace, Bind: o.bind, Advertise: o.advertise, Seeds: o.seeds, Secrets: secrets,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()

	metrics := prometheus.NewRegistry()
	metrics.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	hooks, err := promhooks.New(metrics)
	if err != nil {
		return err
	}
	s, err := scheduler.New(scheduler.Config{
		Namespace: namespace, Members: cluster, Store: db.store(), Drain: drain, Hooks: []scheduler.Hooks{hooks},
	})
	if err != nil {
		return err
	}
	defer context.AfterFunc(hurry, s.Hurry)()
	if err := s.Add(renewals(o.every, db, newProvider(o.provider, cluster.Self()))); err != nil {
		return err
	}
	pages, err := serveProbes(o.http, routes(s.Ready, metrics))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, pages.Close()) }()

	slog.Info("replica started", "replica", cluster.Self(), "gossip", cluster.Addr(), "ready", "http://"+pages.addr+"/readyz")
	return s.Run(ctx)
}

// readGossipKey reads the key that lets replicas talk to each other; none where no file is named.
func readGossipKey(file string) ([][]byte, error) {
	if file == "" {
		return nil, nil
	}
	key, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("--gossip-key: %w", err)
	}
	return [][]byte{key}, nil
}

// renewals is the one job of this service: at its due, one run per customer.
func renewals(every time.Duration, db database, p *provider) jobs.Job {
	night := jobs.Cron("0 0 * * *").In("America/New_York")
	if every != 0 {
		night = jobs.Every(every)
	}
	return jobs.Job{
		Name:     "renewals",
		Schedule: night,
		Keys:     db.customers(),
		Retry:    jobs.Retry{Attempts: 8, First: 10 * time.Second}, // a provider that is away for some minutes costs nobody a night
		Timeout:  time.Minute,
		Run: func(ctx context.Context, o jobs.Occurrence) error {
			cents, err := db.price(ctx, o.Key)
			if err != nil {
				return err
			}
			// The provider cannot know which replica is right to ask. It knows a key it has seen before.
			if err := p.charge(ctx, o.IdempotencyKey(), charge{Customer: o.Key, Cents: cents, Night: o.Due}); err != nil {
				return err
			}
			// The ledger can: it is in the database that decides.
			return db.enter(ctx, o, cents)
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
