// Command provider stands in for a payment provider. It does what real ones do and no more: it charges once per
// idempotency key, answers a repeated key with the charge it has made, and cannot tell a stale caller from a fresh one.
// It keeps everything in memory, until it ends.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// run serves until ctx ends.
func run(ctx context.Context, args []string) error {
	f := flag.NewFlagSet("provider", flag.ContinueOnError)
	addr := f.String("listen", "127.0.0.1:9000", "`address` to serve; port 0 takes a free one")
	delay := f.Duration("delay", 100*time.Millisecond, "how long a charge takes")
	if err := f.Parse(args); err != nil {
		return err
	}
	l, err := net.Listen("tcp", *addr)
	if err != nil {
		return fmt.Errorf("provider: %w; give --listen a free port", err)
	}
	log := slog.New(slog.NewTextHandler(os.Stdout, nil))
	log.Info("provider started", "url", "http://"+l.Addr().String())
	srv := &http.Server{Handler: newLedger(*delay, log).routes(), ReadHeaderTimeout: 5 * time.Second}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(l) }()
	select {
	case err = <-ended:
	case <-ctx.Done():
		err = srv.Close()
		<-ended
	}
	return err
}
