package main

import (
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/belfry-go/belfry/scheduler"
)

// readyPage is the server of /ready.
type readyPage struct {
	*http.Server
	url  string
	done chan struct{} // closed when it has stopped serving
}

// serveReady answers GET /ready with 200 while the scheduler does its work, else with 503 and the reason: what a load
// balancer or a rolling deploy waits for. Close ends it.
func serveReady(addr string, s *scheduler.Scheduler) (*readyPage, error) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /ready", func(w http.ResponseWriter, _ *http.Request) {
		if err := s.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("ready: %w; give --http a free port", err)
	}
	p := &readyPage{
		Server: &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second},
		url:    "http://" + l.Addr().String() + "/ready",
		done:   make(chan struct{}),
	}
	go func() {
		defer close(p.done)
		if err := p.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			slog.Error("the readiness page has stopped", "err", err)
		}
	}()
	return p, nil
}

// Close ends the page at once and waits for it.
func (p *readyPage) Close() error {
	err := p.Server.Close()
	<-p.done
	return err
}
