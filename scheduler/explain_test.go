package scheduler_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// go test ./scheduler -run TestExplain -scheduler.update writes the files in testdata: read what has changed.
var update = flag.Bool("scheduler.update", false, "write testdata/explain*.txt")

// golden demands that a file in testdata holds this text.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got == string(want) {
		return
	}
	had, has := strings.Split(string(want), "\n"), strings.Split(got, "\n")
	for i := range has {
		if i >= len(had) || had[i] != has[i] {
			t.Fatalf("%s:%d: got\n%s\nwant\n%s\nif that is meant: go test ./scheduler -run TestExplain -scheduler.update", path, i+1, has[i], strings.Join(had[min(i, len(had)):min(i+1, len(had))], ""))
		}
	}
	t.Fatalf("%s has %d lines, and %d are told", path, len(had), len(has))
}

// explained is what Explain says of an occurrence, under a heading.
func explained(t *testing.T, c *scheduler.Client, heading string, id idempotency.ID) string {
	t.Helper()
	x, err := c.Explain(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("## %s\n%s\n\n", heading, strings.Join(x.Sentences, "\n"))
}

// Each way in which a run of a live replica ends or goes on, as a person reads it.
func TestExplainEnds(t *testing.T) {
	bubble(t, func(t *testing.T, f *fleet) {
		ten, fifteen := day(1, 0, 0).Add(10*time.Second), day(1, 0, 0).Add(15*time.Second)
		job := func(name string, run jobs.Handler) jobs.Job {
			return jobs.Job{Name: name, Schedule: jobs.At(ten), Retry: jobs.Retry{Attempts: -1}, Run: run}
		}
		fails := func(err error) jobs.Handler { return func(context.Context, jobs.Occurrence) error { return err } }
		slow := job("slow", func(ctx context.Context, _ jobs.Occurrence) error { <-ctx.Done(); return context.Cause(ctx) })
		slow.Timeout = 3 * time.Second
		busy := job("busy", func(context.Context, jobs.Occurrence) error { time.Sleep(20 * time.Second); return nil })
		busy.Schedule = jobs.At(ten, fifteen)
		keyed := job("keyed", func(_ context.Context, o jobs.Occurrence) error {
			if o.Key == "43" {
				return jobs.Permanent(errors.New("card declined\nissuer: 05"))
			}
			return nil
		})
		keyed.Keys = jobs.KeyList("42", "43")
		s, err := scheduler.New(scheduler.Config{
			Namespace: "test", Store: f.store, Members: seat{f.gossip, "a"}, Lease: lease, Sweep: time.Second, Logger: slog.New(slog.DiscardHandler),
		})
		if err == nil {
			err = s.Add(job("done", quick), job("exhausted", fails(errDeclined)), job("permanent", fails(jobs.Permanent(errDeclined))),
				job("panic", func(context.Context, jobs.Occurrence) error { panic("no such customer") }), slow, busy, keyed)
		}
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		f.wg.Go(func() { _ = s.Run(ctx) })
		time.Sleep(20*time.Second + 100*time.Millisecond) // between two renewals
		var b strings.Builder
		for _, name := range []string{"done", "exhausted", "permanent", "panic", "slow", "busy"} {
			b.WriteString(explained(t, s.Client, name, idempotency.ID{Job: name, Due: ten}))
		}
		b.WriteString(explained(t, s.Client, "busy, the next due", idempotency.ID{Job: "busy", Due: fifteen}))
		b.WriteString(explained(t, s.Client, "a customer who was charged", idempotency.ID{Job: "keyed", Key: "42", Due: ten}))
		b.WriteString(explained(t, s.Client, "one who was not", idempotency.ID{Job: "keyed", Key: "43", Due: ten}))
		b.WriteString(explained(t, s.Client, "one whom the source did not return", idempotency.ID{Job: "keyed", Key: "44", Due: ten}))
		b.WriteString(explained(t, s.Client, "all customers", idempotency.ID{Job: "keyed", Due: ten}))
		stop()
		f.wg.Wait()
		golden(t, "explain_ends.txt", regexp.MustCompile(`fence \d+`).ReplaceAllString(b.String(), "fence N")) // jobs that are due at once are claimed in any order
	})
}
