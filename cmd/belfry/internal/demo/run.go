package demo

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/fleet"
	"github.com/belfry-go/belfry/internal/procs"
)

// The demo's files within its folder.
const (
	storeFile    = "belfry.db"
	ledgerFile   = "ledger.jsonl"
	providerFile = "provider.log"
)

// providerGrace is how long the provider may take to end.
const providerGrace = 3 * time.Second

// Run runs the demo to its end, tells s about it, and returns what was counted. It starts this program again, with
// the arguments "demo replica NAME" and "demo provider", which must lead to Replica and Provider. When it returns,
// for whatever reason, those processes have ended, and what was put into o.Store is gone; so are the files unless Dir was
// given. It checks options before it does anything.
func Run(ctx context.Context, o Options, s *Screen) (r Result, err error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return Result{}, err
	}
	dir, remove, err := folder(o.Dir)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, remove()) }()
	at, err := openSite(ctx, o, dir)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, at.close(ctx)) }()
	defer s.settle()
	s.text("%s renew the subscriptions of %s, in %s, one every %v.", plural(o.Replicas, "replica"),
		plural(o.Customers, "customer"), plural(o.Nights, "night"), o.Every)
	s.text("Their store is %s.", at.where())
	s.text("Every process is real. %s.\n", map[bool]string{
		true:  "In the second night " + plural(o.Kills, "replica") + " will be killed: kill -9",
		false: "None will be killed"}[o.Kills > 0])

	provider, url, err := startProvider(dir, o)
	if err != nil {
		return Result{}, err
	}
	defer func() { err = errors.Join(err, end(ctx, provider.Stop(providerGrace))) }()
	s.line("", "provider", "charges once per idempotency key, and logs every call: process %d at %s", provider.Pid(), url)
	f := fleet.New(dir, fleet.Spec{
		Namespace: at.namespace, Store: at.client.URL().Secret(), Concurrency: o.concurrency(), Timing: fleet.Brisk(o.Replicas),
	}, "demo", "replica")
	f.Hurry = o.Hurry
	w := newShow(o, s, f, at, &ledger{path: filepath.Join(dir, ledgerFile)}, url)
	w.kept = o.Dir
	if err := w.play(ctx); err != nil {
		return Result{}, errors.Join(err, end(ctx, f.Close()))
	}
	if err := f.Close(); err != nil {
		return Result{}, err
	}
	return w.finish(ctx)
}

// end drops what processes ended with when everything ends early: only the cause is of interest.
func end(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// folder is where the files go, and what to do with it at the end.
func folder(dir string) (string, func() error, error) {
	if dir == "" {
		temp, err := os.MkdirTemp("", "belfry-demo-")
		if err != nil {
			return "", nil, fmt.Errorf("demo: temporary folder: %w; give another with --dir", err)
		}
		return temp, func() error { return os.RemoveAll(temp) }, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, fmt.Errorf("demo: --dir %q: %w", dir, err)
	}
	for _, name := range []string{storeFile, ledgerFile} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return "", nil, fmt.Errorf("demo: --dir %q: it holds %s of an earlier demo; name another folder, or empty it", dir, name)
		}
	}
	return dir, func() error { return nil }, nil
}

// startProvider starts the provider and returns where it listens.
func startProvider(dir string, o Options) (*procs.Child, string, error) {
	path := filepath.Join(dir, providerFile)
	log, err := os.Create(path)
	if err != nil {
		return nil, "", fmt.Errorf("demo: provider: %w", err)
	}
	defer log.Close()
	c, err := procs.Start(log, "demo", "provider")
	if err != nil {
		return nil, "", err
	}
	err = c.Send(providerSpec{Ledger: filepath.Join(dir, ledgerFile), Latency: o.latency()})
	var url string
	if err == nil {
		err = c.Receive(&url)
	}
	if err != nil {
		c.Kill()
		text, _ := os.ReadFile(path)
		return nil, "", fmt.Errorf("demo: the provider did not start: %w: %s", err, text)
	}
	return c, url, nil
}
