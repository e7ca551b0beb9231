// Command global-report shows a job that belongs to the whole fleet: every few seconds one report, by whichever of three replicas leads. It
// starts the replicas as processes of its own, with an etcd that elects the leader, and you kill it:
//
//	global-report                          says which process to kill
//	global-report --kill                   kills it itself, and makes the next leader leave in peace
//	global-report --etcd 127.0.0.1:2379    with an etcd of yours
//	global-report --store-election         without etcd: the store elects
//	global-report replica --name a …       one replica, for who starts them by hand
//
// The README beside it says what to see.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// namespace is this service's name in gossip, in the store and in etcd.
const namespace = "reports"

func main() {
	slog.SetLogLoggerLevel(slog.LevelWarn) // what happens is told in lines of its own
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second one ends it at once
	err := run(ctx, os.Args[1:])
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "global-report:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	if len(args) > 0 && args[0] == "replica" {
		var o replicaOptions
		if err := parse(o.flags(), args[1:]); err != nil {
			return err
		}
		if o.untilEOF {
			ctx = untilEOF(ctx)
		}
		return unlessStopped(ctx, replica(ctx, o))
	}
	var o showOptions
	if err := parse(o.flags(), args); err != nil {
		return err
	}
	if o.storeElection && len(o.etcd) > 0 {
		return errors.New("--store-election needs no --etcd; give one of them")
	}
	return unlessStopped(ctx, show(ctx, o))
}

// untilEOF returns a context that ends with standard input too.
func untilEOF(ctx context.Context) context.Context {
	ctx, stop := context.WithCancelCause(ctx)
	go func() {
		io.Copy(io.Discard, os.Stdin) // whatever ends it
		stop(errors.New("its standard input ended"))
	}()
	return ctx
}

// unlessStopped drops the error of what was told to stop before it had begun.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.Cause(ctx))) {
		return nil
	}
	return err
}

// cluster is what all replicas are started with alike.
type cluster struct {
	etcd         []string // none: the store elects
	every, lease time.Duration
}

func (c *cluster) flags(f *flag.FlagSet) {
	f.Func("etcd", "`address` of an etcd that elects the leader; repeat it for each of its members", func(s string) error {
		c.etcd = append(c.etcd, s)
		return nil
	})
	f.DurationVar(&c.every, "every", 2*time.Second, "a report every so often, in whole seconds")
	f.DurationVar(&c.lease, "lease", 5*time.Second, "how long after its last sign a replica counts as alive: nobody leads for that long after a leader that was killed")
}

// arguments are the flags that set the same.
func (c *cluster) arguments() []string {
	args := []string{"--every", c.every.String(), "--lease", c.lease.String()}
	for _, address := range c.etcd {
		args = append(args, "--etcd", address)
	}
	return args
}

// showOptions are what the whole show is started with.
type showOptions struct {
	cluster
	storeElection, kill bool
}

func (o *showOptions) flags() *flag.FlagSet {
	f := flag.NewFlagSet("global-report", flag.ContinueOnError)
	o.cluster.flags(f)
	f.BoolVar(&o.storeElection, "store-election", false, "start no etcd: the store elects")
	f.BoolVar(&o.kill, "kill", false, "kill the leader, then make the next one leave, then end")
	return f
}

// replicaOptions are what one replica is started with.
type replicaOptions struct {
	cluster
	name, store, bind string
	seeds             []string
	untilEOF          bool
}

func (o *replicaOptions) flags() *flag.FlagSet {
	f := flag.NewFlagSet("global-report replica", flag.ContinueOnError)
	f.StringVar(&o.name, "name", "", "this replica's `name`, unlike all others' (default: the host's)")
	f.StringVar(&o.store, "store", "reports.db", "SQLite `file` that all replicas share, made where it is missing")
	f.StringVar(&o.bind, "bind", "127.0.0.1:7946", "gossip `address`; port 0 takes a free one")
	f.Func("seed", "gossip `address` of another replica; repeat it for more", func(s string) error {
		o.seeds = append(o.seeds, s)
		return nil
	})
	o.cluster.flags(f)
	f.BoolVar(&o.untilEOF, "until-eof", false, "stop at the end of standard input too, so that it outlives no program that started it")
	return f
}

// parse reads flags alone; a stray word is more likely a slip than meant.
func parse(f *flag.FlagSet, args []string) error {
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("%s: %q is not a flag; see --help", f.Name(), strings.Join(f.Args(), " "))
	}
	return nil
}
