package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// probes is the server of the pages that tell how the replica is.
type probes struct {
	*http.Server
	addr string
	done chan struct{} // closed when it has stopped serving
}

// routes are the pages. The first two differ in what may be done about a bad answer.
//
//   - /livez answers 200 as long as the process can answer at all: what does not should be started again.
//   - /readyz answers 200 while ready returns nil, else 503 with the reason: what a rolling deployment waits for. A replica
//     that cannot reach the database is not ready, and starting it again would not help.
//   - /metrics is for Prometheus.
func routes(ready func() error, metrics prometheus.Gatherer) *http.ServeMux {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "alive") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	mux.Handle("GET /metrics", promhttp.HandlerFor(metrics, promhttp.HandlerOpts{}))
	return mux
}

// serveProbes serves the routes. Close ends it.
func serveProbes(addr string, routes http.Handler) (*probes, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("probes: %w; give --http a free port", err)
	}
	p := &probes{
		Server: &http.Server{Handler: routes, ReadHeaderTimeout: 5 * time.Second},
		addr:   l.Addr().String(),
		done:   make(chan struct{}),
	}
	go func() {
		defer close(p.done)
		if err := p.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("the probes have stopped", "err", err)
		}
	}()
	return p, nil
}

// Close ends the server at once and waits for it.
func (p *probes) Close() error {
	err := p.Server.Close()
	<-p.done
	return err
}
