package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/belfry-go/belfry/internal/procs"
)

// providerSpec is what the provider's process is told.
type providerSpec struct {
	Ledger  string        // path of the file, made anew
	Latency time.Duration // of a call, on average
}

// charge is the body of a call. The provider reads none of it but to write it down: what it goes by is the
// idempotency key in the header.
type charge struct {
	Customer string    `json:"customer"`
	Night    time.Time `json:"night"`
	Replica  string    `json:"replica"`
	Pid      int       `json:"pid"`
}

const keyHeader = "Idempotency-Key"

// provider charges once per idempotency key, as payment providers do. It knows no replicas, no fences and no store.
type provider struct {
	latency time.Duration

	mu      sync.Mutex
	ledger  io.Writer
	charged map[string]bool // by idempotency key
}

// Provider runs the payment provider in a child process, until its parent lets go or ctx ends.
func Provider(ctx context.Context, parent *procs.Parent) (err error) {
	var spec providerSpec
	if err := parent.Receive(&spec); err != nil {
		return err
	}
	ledger, err := os.OpenFile(spec.Ledger, os.O_CREATE|os.O_EXCL|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("demo: provider: %w", err)
	}
	defer func() { err = errors.Join(err, ledger.Close()) }()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("demo: provider: %w", err)
	}
	server := &http.Server{
		Handler:           &provider{latency: spec.Latency, ledger: ledger, charged: map[string]bool{}},
		ReadHeaderTimeout: 10 * time.Second,
	}
	stop := context.AfterFunc(ctx, func() { server.Close() })
	defer stop()
	if err := parent.Report("http://" + l.Addr().String()); err != nil {
		return err
	}
	if err := server.Serve(l); err != http.ErrServerClosed {
		return fmt.Errorf("demo: provider: %w", err)
	}
	return nil
}

// ServeHTTP makes one charge, halfway through its latency. A caller that dies before then was not heard; one that
// dies after it never learns that the charge was made.
func (p *provider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get(keyHeader)
	var c charge
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil || key == "" {
		http.Error(w, "send a charge as JSON, and an "+keyHeader, http.StatusBadRequest)
		return
	}
	arrived := time.Now()
	half := time.Duration((0.5 + rand.Float64()) * float64(p.latency) / 2)
	if !pause(r.Context(), half) {
		return
	}
	if err := p.charge(key, arrived, c); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	pause(r.Context(), half)
	w.WriteHeader(http.StatusOK)
}

// charge writes the call down, and whether it was the first with its key: only that one takes money.
func (p *provider) charge(key string, arrived time.Time, c charge) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	line, err := json.Marshal(call{Arrived: arrived, At: time.Now(), Key: key, charge: c, First: !p.charged[key]})
	if err != nil {
		return err
	}
	if _, err := p.ledger.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	p.charged[key] = true
	return nil
}

// pause reports whether d went by before ctx ended.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
