package promhooks_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
	"github.com/belfry-go/belfry/scheduler"
	"github.com/belfry-go/belfry/scheduler/promhooks"
	"github.com/belfry-go/belfry/scheduler/schedulertest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// page is what a scrape of the registry shows: values by the metric with its labels, and the HELP and TYPE lines.
type page struct {
	values map[string]string
	help   map[string]string
	labels map[string]bool
}

func scrape(t *testing.T, g prometheus.Gatherer) page {
	t.Helper()
	w := httptest.NewRecorder()
	promhttp.HandlerFor(g, promhttp.HandlerOpts{}).ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
	text, err := io.ReadAll(w.Result().Body)
	if err != nil || w.Code != 200 {
		t.Fatalf("status %d, %v: %s", w.Code, err, text)
	}
	p := page{values: map[string]string{}, help: map[string]string{}, labels: map[string]bool{}}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			name, help, _ := strings.Cut(rest, " ")
			p.help[name] = help
			continue
		}
		i := strings.LastIndexByte(line, ' ')
		if strings.HasPrefix(line, "#") || i < 0 {
			continue
		}
		p.values[line[:i]] = line[i+1:]
		if _, labels, ok := strings.Cut(line[:i], "{"); ok {
			for pair := range strings.SplitSeq(strings.TrimSuffix(labels, "}"), ",") {
				name, _, _ := strings.Cut(pair, "=")
				p.labels[name] = true
			}
		}
	}
	return p
}

// want compares values of the page.
func (p page) want(t *testing.T, want map[string]string) {
	t.Helper()
	for name, value := range want {
		if got, ok := p.values[name]; got != value {
			t.Errorf("%s is %q (there: %t), want %s", name, got, ok, value)
		}
	}
}

const minute = time.Minute

// job is due each hour, and works for a minute.
func job(name string, run jobs.Handler) jobs.Job {
	return jobs.Job{Name: name, Schedule: jobs.Cron("0 * * * *").In("UTC"), Run: func(ctx context.Context, o jobs.Occurrence) error {
		time.Sleep(minute)
		return run(ctx, o)
	}}
}

// A day of one replica on a real registry: names, values and labels are as documented, and no label tells a key or an error.
func TestScrape(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewPedanticRegistry()
	hooks, err := promhooks.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	fine := job("fine", func(context.Context, jobs.Occurrence) error { return nil })
	fine.Keys = jobs.KeyList("customer-1", "customer-2")
	bad := job("bad", func(context.Context, jobs.Occurrence) error { return errors.New("declined by customer-3") })
	bad.Retry = jobs.Retry{Attempts: 2}
	panics := job("panics", func(context.Context, jobs.Occurrence) error { panic("out of tea") })
	panics.Retry = jobs.Retry{Attempts: -1}
	none := job("none", func(context.Context, jobs.Occurrence) error { return jobs.Skip("nobody to bill") })
	long := job("long", func(context.Context, jobs.Occurrence) error { time.Sleep(time.Hour); return nil })
	long.Timeout = -1
	stuck := job("stuck", func(context.Context, jobs.Occurrence) error { time.Sleep(10 * time.Hour); return nil })
	stuck.Timeout, stuck.Guarantee = 2*minute, jobs.Efficiency
	o := &schedulertest.Options{Replicas: 1, Config: scheduler.Config{Hooks: []scheduler.Hooks{hooks}, Concurrency: 16}}
	schedulertest.Test(t, o, []jobs.Job{fine, bad, panics, none, long, stuck}, func(t *testing.T, c *schedulertest.Cluster) {
		c.Advance(2*time.Hour + 30*minute)
		p := scrape(t, registry)
		p.want(t, map[string]string{
			`belfry_due_total{job="fine"}`:                          "2",
			`belfry_started_total{job="fine"}`:                      "4",
			`belfry_done_total{job="fine"}`:                         "4",
			`belfry_run_seconds_count{job="fine",outcome="done"}`:   "4",
			`belfry_run_seconds_sum{job="fine",outcome="done"}`:     "240",
			`belfry_lateness_seconds_count{job="fine"}`:             "4",
			`belfry_lateness_seconds_sum{job="fine"}`:               "0",
			`belfry_missed_total{job="fine"}`:                       "0",
			`belfry_started_total{job="bad"}`:                       "4",
			`belfry_waits_total{job="bad",reason="retry"}`:          "2",
			`belfry_failed_total{job="bad",reason="exhausted"}`:     "2",
			`belfry_run_seconds_count{job="bad",outcome="wait"}`:    "2",
			`belfry_lateness_seconds_count{job="bad"}`:              "2",
			`belfry_failed_total{job="panics",reason="panic"}`:      "2",
			`belfry_skipped_total{job="none",reason="handler"}`:     "2",
			`belfry_skipped_total{job="long",reason="overlap"}`:     "1",
			`belfry_started_total{job="stuck"}`:                     "1",
			`belfry_stuck_total{job="stuck"}`:                       "1",
			`belfry_running`:                                        "1",
			`belfry_workers`:                                        "16",
			`belfry_members`:                                        "1",
			`belfry_ring_moves_total`:                               "0",
			`belfry_leader`:                                         "0",
			`belfry_leader_changes_total`:                           "0",
			`belfry_clock_offset_seconds`:                           "0",
			`belfry_store_call_seconds_count{method="OpenSession"}`: "1",
		})
		if p.values[`belfry_store_call_seconds_count{method="Lagging"}`] == "" || len(p.values) < 100 {
			t.Errorf("calls of the store are not told: %v", p.values)
		}
		if got := slices.Sorted(maps.Keys(p.labels)); !slices.Equal(got, []string{"cause", "job", "le", "method", "outcome", "reason"}) {
			t.Errorf("labels %q", got)
		}
		for line := range p.values {
			for _, private := range []string{"customer", "declined", "replica", "tea", "2000"} {
				if strings.Contains(line, private) {
					t.Errorf("%s tells of %q", line, private)
				}
			}
		}
	})
}

// What a cluster does among its replicas: the moves, take-ups and fences of the one that stays.
func TestScrapeOfOthersEnds(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	hooks, err := promhooks.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	o := &schedulertest.Options{Replicas: 2, Config: scheduler.Config{Hooks: []scheduler.Hooks{hooks}}}
	schedulertest.Test(t, o, []jobs.Job{job("j", func(context.Context, jobs.Occurrence) error { return nil })}, func(t *testing.T, c *schedulertest.Cluster) {
		c.Advance(time.Hour)
		owner := 0
		if c.Runs()[0].Replica == "replica-1" {
			owner = 1
		}
		before := scrape(t, registry).values["belfry_ring_moves_total"]
		c.Crash(owner)
		c.Advance(10 * minute)
		p := scrape(t, registry)
		p.want(t, map[string]string{`belfry_take_ups_total{job="j"}`: "1", `belfry_done_total{job="j"}`: "1", `belfry_members`: "1"})
		if now := p.values["belfry_ring_moves_total"]; now == before {
			t.Errorf("%s partitions moved before the crash, and %s after it", before, now)
		}
	})
}

// Each hook by itself: what a run of a cluster seldom shows.
func TestHooks(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	h, err := promhooks.New(registry)
	if err != nil {
		t.Fatal(err)
	}
	ctx, o := t.Context(), jobs.Occurrence{Job: "j", Key: "k", Attempt: 1}
	h.Refused(ctx, scheduler.Refused{Occurrence: o, Cause: "taken"})
	h.Refused(ctx, scheduler.Refused{Occurrence: o, Cause: "fenced"})
	h.Hedged(ctx, o)
	h.Decided(ctx, scheduler.Decided{Job: "j", Dues: make([]time.Time, 2), Missed: 30, Paused: 4, TooLate: 5})
	h.Called(ctx, scheduler.Call{Name: "Claim", Took: 20 * time.Millisecond, Err: context.DeadlineExceeded})
	h.Renewed(ctx, scheduler.Renewed{Session: 7, Offset: -1500 * time.Millisecond})
	h.Moved(ctx, scheduler.Moved{Members: []string{"a", "b"}, Moves: make([]ring.Move, 9)})
	h.Moved(ctx, scheduler.Moved{})
	h.Finished(ctx, scheduler.Finished{Occurrence: o, Outcome: idempotency.Failed, Reason: "abandoned"}) // without a handler
	h.Finished(ctx, scheduler.Finished{Occurrence: o, Outcome: idempotency.Wait, Reason: "released", Late: 2 * time.Second, Took: minute, First: true})
	h.Finished(ctx, scheduler.Finished{Occurrence: o, Outcome: idempotency.Done, Late: time.Hour, Took: minute}) // taken up, or by hand
	h.Orphaned(ctx, idempotency.Orphan{Job: "old", For: time.Hour})
	h.Orphaned(ctx, idempotency.Orphan{Job: "old", For: 24 * time.Hour, Retired: true})
	h.Led(ctx, scheduler.Led{Leader: idempotency.Leader{Term: 1, Replica: "b"}})
	h.Led(ctx, scheduler.Led{Leader: idempotency.Leader{Term: 2, Replica: "a"}, Mine: true})
	p := scrape(t, registry)
	p.want(t, map[string]string{`belfry_leader`: "1", `belfry_leader_changes_total`: "2"})
	h.Led(ctx, scheduler.Led{Leader: idempotency.Leader{Term: 2, Replica: "a", Until: time.Unix(1, 0)}})
	p = scrape(t, registry)
	p.want(t, map[string]string{
		`belfry_leader`:                                      "0",
		`belfry_leader_changes_total`:                        "3",
		`belfry_refused_total{cause="taken",job="j"}`:        "1",
		`belfry_refused_total{cause="fenced",job="j"}`:       "",
		`belfry_fenced_total{job="j"}`:                       "1",
		`belfry_hedges_total{job="j"}`:                       "1",
		`belfry_due_total{job="j"}`:                          "41",
		`belfry_missed_total{job="j"}`:                       "30",
		`belfry_skipped_total{job="j",reason="paused"}`:      "4",
		`belfry_skipped_total{job="j",reason="deadline"}`:    "5",
		`belfry_lateness_seconds_count{job="j"}`:             "1",
		`belfry_lateness_seconds_sum{job="j"}`:               "2",
		`belfry_store_errors_total{method="Claim"}`:          "1",
		`belfry_store_call_seconds_count{method="Claim"}`:    "1",
		`belfry_clock_offset_seconds`:                        "-1.5",
		`belfry_members`:                                     "0",
		`belfry_ring_moves_total`:                            "9",
		`belfry_failed_total{job="j",reason="abandoned"}`:    "1",
		`belfry_run_seconds_count{job="j",outcome="failed"}`: "",
		`belfry_orphaned_total{job="old"}`:                   "1",
		`belfry_retired_total{job="old"}`:                    "1",
	})
	for name, help := range p.help {
		if !strings.HasPrefix(name, "belfry_") || !strings.HasSuffix(help, ".") {
			t.Errorf("%s: %q", name, help)
		}
	}
	if len(p.help) < 15 {
		t.Errorf("only %d metrics have a HELP", len(p.help))
	}
}

// A mistake is an error that says what to do, and nothing of the second set is registered.
func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := promhooks.New(nil); err == nil || !strings.Contains(err.Error(), "pass prometheus.NewRegistry()") {
		t.Errorf("nil: %v", err)
	}
	registry := prometheus.NewRegistry()
	if _, err := promhooks.New(registry); err != nil {
		t.Fatal(err)
	}
	_, err := promhooks.New(registry)
	var twice prometheus.AlreadyRegisteredError
	if !errors.As(err, &twice) || !strings.Contains(err.Error(), "WrapRegistererWith") {
		t.Errorf("twice: %v", err)
	}
	other := prometheus.NewRegistry()
	for i := range 2 { // as it says
		if _, err := promhooks.New(prometheus.WrapRegistererWith(prometheus.Labels{"scheduler": fmt.Sprint(i)}, other)); err != nil {
			t.Errorf("wrapped: %v", err)
		}
	}
	taken := prometheus.NewRegistry()
	taken.MustRegister(prometheus.NewGauge(prometheus.GaugeOpts{Namespace: "belfry", Name: "members", Help: "Another one."}))
	if _, err := promhooks.New(taken); err == nil || !strings.Contains(err.Error(), "belfry_members") {
		t.Errorf("a metric of the name is there: %v", err)
	}
	if families, err := taken.Gather(); err != nil || len(families) != 1 {
		t.Errorf("%d metrics are registered (%v), want none but the other one", len(families), err)
	}
}
