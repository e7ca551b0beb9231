package promhooks_test

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
	"github.com/belfry-go/belfry/scheduler/promhooks"
	"github.com/belfry-go/belfry/scheduler/schedulertest"
)

// F30: a handler leaks a goroutine, a descriptor and a megabyte each time. That is seen where the package comment says, and
// another job is on time all the while.
func TestLeakyHandler(t *testing.T) {
	const days, runs = 2, 2 * 24
	registry := prometheus.NewRegistry()
	registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	hooks, err := promhooks.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	var release chan struct{}
	var files []*os.File
	var memory [][]byte
	leaky := job("leaky", func(context.Context, jobs.Occurrence) error {
		f, err := os.Open(os.DevNull)
		files, memory = append(files, f), append(memory, make([]byte, 1<<20))
		if release == nil {
			release = make(chan struct{}) // in the bubble: one from outside would stop its clock
		}
		go func(release chan struct{}) { <-release }(release)
		return err
	})
	fine := job("fine", func(context.Context, jobs.Occurrence) error { return nil })
	o := &schedulertest.Options{Replicas: 1, Config: scheduler.Config{Hooks: []scheduler.Hooks{hooks}}}
	schedulertest.Test(t, o, []jobs.Job{leaky, fine}, func(t *testing.T, c *schedulertest.Cluster) {
		defer func() { close(release) }()
		c.Advance(time.Second)
		before := scrape(t, registry)
		c.Advance(days*24*time.Hour + 2*minute)
		after := scrape(t, registry)
		after.want(t, map[string]string{
			`belfry_done_total{job="leaky"}`:           strconv.Itoa(runs),
			`belfry_done_total{job="fine"}`:            strconv.Itoa(runs),
			`belfry_lateness_seconds_sum{job="fine"}`:  "0",
			`belfry_lateness_seconds_sum{job="leaky"}`: "0",
			`belfry_running`:                           "0",
		})
		for name, least := range map[string]float64{"go_goroutines": runs, "go_memstats_heap_inuse_bytes": runs << 20, "process_open_fds": runs} {
			was, ok := before.values[name]
			if name == "process_open_fds" && !ok {
				continue // this system does not tell
			}
			if grown := number(t, after.values[name]) - number(t, was); grown < least-5 {
				t.Errorf("%s grew by %g, want %g or so: a leak would not be seen", name, grown, least)
			}
		}
	})
	for _, f := range files {
		f.Close()
	}
	if len(memory) != runs {
		t.Errorf("%d runs leaked, want %d", len(memory), runs)
	}
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}
