package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler/schedulertest"
)

// paper stands in for the database: nothing in a bubble of fake time may wait for the world outside.
type paper struct {
	database
	n int

	mu      sync.Mutex
	entered map[string]int // by occurrence
}

func (p *paper) customers() jobs.KeySource {
	var ids []string
	for i := range p.n {
		ids = append(ids, customerID(i))
	}
	return jobs.KeyList(ids...)
}

func (p *paper) price(context.Context, string) (int64, error) { return 500, nil }

func (p *paper) enter(_ context.Context, o jobs.Occurrence, _ int64) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.entered[o.ID()]++
	return nil
}

// till stands in for the provider: it takes five seconds for a charge, declines a card, and at first is busy for one customer.
type till struct {
	mu      sync.Mutex
	charged map[string]int // by idempotency key
	asked   int
	busy    int
}

func (l *till) RoundTrip(r *http.Request) (*http.Response, error) {
	var c charge
	if err := json.NewDecoder(r.Body).Decode(&c); err != nil {
		return nil, err
	}
	status := l.charge(c.Customer, r.Header.Get("Idempotency-Key"))
	if status == http.StatusCreated {
		select {
		case <-time.After(5 * time.Second):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	return &http.Response{StatusCode: status, Status: http.StatusText(status), Body: http.NoBody, Request: r}, nil
}

func (l *till) charge(customer, key string) (status int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked++
	switch {
	case customer == customerID(1):
		return http.StatusPaymentRequired
	case customer == customerID(2) && l.busy > 0:
		l.busy--
		return http.StatusServiceUnavailable
	}
	l.charged[key]++
	return http.StatusCreated
}

// rehearse runs the service's job on a cluster, from the evening of a day on.
func rehearse(t *testing.T, evening time.Time, f func(t *testing.T, c *schedulertest.Cluster, db *paper, l *till)) {
	t.Helper()
	db, l := &paper{n: 20, entered: map[string]int{}}, &till{charged: map[string]int{}, busy: 2}
	o := &schedulertest.Options{Start: evening, JobsOf: func(replica int) []jobs.Job {
		p := newProvider("http://provider", fmt.Sprint(replica))
		p.client.Transport = l
		return []jobs.Job{renewals(0, db, p)}
	}}
	schedulertest.Test(t, o, nil, func(t *testing.T, c *schedulertest.Cluster) { f(t, c, db, l) })
}

// newYork is midnight there.
func newYork(t *testing.T, year int, month time.Month, day int) time.Time {
	t.Helper()
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		t.Fatal(err)
	}
	return time.Date(year, month, day, 0, 0, 0, 0, zone)
}

// TestOutcomes: a declined card fails at once, a busy provider is asked again, all others are charged and entered once.
func TestOutcomes(t *testing.T) {
	t.Parallel()
	midnight := newYork(t, 2026, time.October, 2)
	rehearse(t, midnight.Add(-time.Hour), func(t *testing.T, c *schedulertest.Cluster, db *paper, l *till) {
		c.AdvanceTo(midnight.Add(10 * time.Minute))
		runs := c.Runs()
		for _, r := range runs {
			want, attempt := idempotency.Done, 1
			switch r.Key {
			case customerID(1):
				want = idempotency.Failed
			case customerID(2):
				attempt = 3
			}
			if r.Outcome != want || r.Attempt != attempt || !r.Due.Equal(midnight) {
				t.Errorf("%+v", r)
			}
		}
		if len(runs) != db.n || len(l.charged) != db.n-1 || len(db.entered) != db.n-1 || l.asked != db.n+2 {
			t.Errorf("%d runs, %d charged, %d entered, %d asked for", len(runs), len(l.charged), len(db.entered), l.asked)
		}
	})
}

// TestClockChange: the two nights round the end of daylight saving, with 25 hours between them, each come once.
func TestClockChange(t *testing.T) {
	t.Parallel()
	evening := newYork(t, 2026, time.October, 31).Add(23 * time.Hour)
	rehearse(t, evening, func(t *testing.T, c *schedulertest.Cluster, db *paper, _ *till) {
		c.AdvanceTo(newYork(t, 2026, time.November, 2).Add(10 * time.Minute))
		nights := map[time.Time]int{}
		for _, r := range c.Runs() {
			nights[r.Due]++
		}
		for day := 1; day <= 2; day++ {
			if night := newYork(t, 2026, time.November, day).UTC(); nights[night] != db.n {
				t.Errorf("the night of November %d has %d runs, want %d: %v", day, nights[night], db.n, nights)
			}
		}
	})
}

// TestCrashAtMidnight: a replica that crashes while it charges leaves nobody out. What it had in hand is asked for again under the same
// key, and so is charged once where the provider keeps its word.
func TestCrashAtMidnight(t *testing.T) {
	t.Parallel()
	midnight := newYork(t, 2026, time.October, 2)
	rehearse(t, midnight.Add(-time.Hour), func(t *testing.T, c *schedulertest.Cluster, db *paper, l *till) {
		c.AdvanceTo(midnight.Add(2 * time.Second))
		c.Crash(0)
		c.AdvanceTo(midnight.Add(10 * time.Minute))
		again := 0
		for key, n := range l.charged {
			again += n - 1
			if db.entered[key] != 1 {
				t.Errorf("%s is entered %d times", key, db.entered[key])
			}
		}
		if len(l.charged) != db.n-1 || again == 0 {
			t.Errorf("%d charged, %d asked for again; want %d, and some of the crashed replica's", len(l.charged), again, db.n-1)
		}
		for _, r := range c.Runs() {
			if r.Key != customerID(1) && (r.Outcome != idempotency.Done || r.Replica == "replica-0") {
				t.Errorf("%+v", r)
			}
		}
	})
}

// TestSignals: the first signal drains, and the second hurries.
func TestSignals(t *testing.T) {
	t.Parallel()
	self, err := os.FindProcess(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	ctx, hurry := signals()
	for i, told := range []context.Context{ctx, hurry} {
		if told.Err() != nil {
			t.Fatalf("told before signal %d", i+1)
		}
		if err := self.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
		<-told.Done()
	}
	if cause := context.Cause(ctx); cause.Error() != "signal: terminated" {
		t.Errorf("the cause is %v", cause)
	}
}

// TestHurry: a replica whose provider does not answer gives that up once it is told to hurry, long before its drain is over.
func TestHurry(t *testing.T) {
	t.Parallel()
	asked, once := make(chan struct{}), sync.Once{}
	file := filepath.Join(t.TempDir(), "renewals.db")
	if err := seed(t.Context(), []string{"--store", file, "--customers", "1"}); err != nil {
		t.Fatal(err)
	}
	silent := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil { // only then does the server see that nobody waits any more
			t.Error(err)
		}
		once.Do(func() { close(asked) })
		<-r.Context().Done()
	})
	pages, err := serveProbes("127.0.0.1:0", silent)
	if err != nil {
		t.Fatal(err)
	}
	defer pages.Close()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	hurry, now := context.WithCancel(t.Context())
	defer now()
	done := make(chan error, 1)
	go func() {
		done <- replica(ctx, hurry, options{name: "a", store: file, bind: "127.0.0.1:0", http: "127.0.0.1:0",
			provider: "http://" + pages.addr, every: time.Second})
	}()
	select {
	case <-asked:
	case err := <-done:
		t.Fatal(err)
	}
	stop()
	now()
	select {
	case err := <-done:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(drain - 5*time.Second):
		t.Error("it goes on draining")
	}
}
