package ordeal

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/faultproxy"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/membership"
	"github.com/belfry-go/belfry/ring"
	"github.com/belfry-go/belfry/scheduler"
)

const (
	fleetKeys = 300
	struckAt  = 100 // effects, when the fault strikes
	working   = 20 * time.Millisecond
	healing   = 7 * time.Second // how long one replica is cut off: longer than its lease
)

// T4, T14 in small: three replicas share out a due of 300 keys, when the server is killed and started again, or one of
// them gets no more answers from it for longer than its lease. Every key has its effect once.
func TestFleet(t *testing.T) {
	for _, x := range []struct {
		name   string
		need   need
		strike func(t *testing.T, s *site, first *faultproxy.Proxy)
	}{
		{"server killed", onOwnServer, func(t *testing.T, s *site, _ *faultproxy.Proxy) {
			s.server.Kill()
			if err := s.server.Restart(); err != nil {
				t.Error(err)
			}
		}},
		{"one replica half-open", onServer, func(_ *testing.T, _ *site, first *faultproxy.Proxy) {
			first.ToServer.Swallow(true)
			first.ToClient.Swallow(true)
			<-time.After(healing)
			first.ToServer.Swallow(false)
			first.ToClient.Swallow(false)
		}},
	} {
		t.Run(x.name, func(t *testing.T) {
			each(t, x.need, func(t *testing.T, s *site) { rideOut(t, s, x.strike) })
		})
	}
}

func rideOut(t *testing.T, s *site, strike func(*testing.T, *site, *faultproxy.Proxy)) {
	watcher := s.open(t)
	s.exec(t, makeEffects)
	f := &fleet{site: s, struck: make(chan struct{})}
	f.openJob(t, watcher)
	ctx, stop := context.WithCancel(t.Context())
	t.Cleanup(func() {
		stop()
		f.wg.Wait() // whatever the test ended with, nobody speaks for it after its end
	})
	var first *faultproxy.Proxy
	for _, name := range []string{"a", "b", "c"} {
		p := f.start(t, ctx, name)
		if first == nil {
			first = p
		}
	}
	select {
	case <-f.struck:
	case <-time.After(time.Minute):
		t.Fatalf("%d effects within a minute", len(s.effects(t)))
	}
	strike(t, s, first)
	ended := time.Now()
	for tick := time.Tick(20 * time.Millisecond); ; <-tick {
		if rows := list(t, watcher); done(rows) == fleetKeys {
			break
		}
		if time.Since(ended) > time.Minute {
			t.Fatalf("a minute after the fault %d of %d keys are done", done(list(t, watcher)), fleetKeys)
		}
	}
	after := time.Since(ended)
	stop()
	f.wg.Wait()
	effects := s.effects(t)
	for key, n := range effects {
		if n != 1 {
			t.Errorf("%s has %d effects", key, n)
		}
	}
	if len(effects) != fleetKeys {
		t.Errorf("%d keys have an effect of %d", len(effects), fleetKeys)
	}
	crashed := 0
	for _, x := range list(t, watcher) {
		if x.Crashes > 0 {
			crashed++
		}
	}
	t.Logf("%d keys done once each, 0 lost, 0 double; %d handlers were started, %d runs taken up; all over %v after the fault",
		len(effects), f.started, crashed, after.Round(time.Millisecond))
}

func done(rows map[string]idempotency.Run) (n int) {
	for _, x := range rows {
		if x.State == idempotency.Ended && x.Outcome == idempotency.Done {
			n++
		}
	}
	return n
}

// fleet is three replicas in one process, each with a proxy of its own before the server.
type fleet struct {
	*site
	due time.Time
	wg  sync.WaitGroup

	mu       sync.Mutex
	started  int
	effected int
	struck   chan struct{} // closed at the effect at which the fault strikes
}

// job is the fleet's, without its handler.
func (f *fleet) job() jobs.Job {
	keys := make([]string, fleetKeys)
	for i := range keys {
		keys[i] = fmt.Sprintf("customer-%03d", i)
	}
	return jobs.Job{
		Name: job, Schedule: jobs.At(f.due), Keys: jobs.KeyList(keys...), Retry: jobs.Retry{Attempts: 10, First: 100 * time.Millisecond},
	}
}

// openJob makes the job's entry, with a due that has come: replicas that start however late find it to be opened.
func (f *fleet) openJob(t *testing.T, s idempotency.Store) {
	t.Helper()
	session, told, err := s.OpenSession(t.Context(), opening("watcher"))
	if err != nil {
		t.Fatal(err)
	}
	f.due = told.Now.Truncate(time.Second)
	j := f.job()
	_, err = s.Declare(t.Context(), session, 1, []idempotency.Declaration{{
		Definition: idempotency.Definition{Job: job, Schedule: j.Schedule.String(), Hash: j.Definition()},
		Opened:     f.due.Add(-time.Second), Next: f.due,
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// start starts a replica, and returns its proxy.
func (f *fleet) start(t *testing.T, ctx context.Context, name string) *faultproxy.Proxy {
	t.Helper()
	at := &site{dialect: f.dialect, db: f.db}
	p := at.through(t)
	h := f.dialect.open(t, at.dsn(f.admin), plenty)
	s, err := scheduler.New(scheduler.Config{
		Namespace: namespace, Store: h, Members: membership.NewStatic(name, "a", "b", "c"), Concurrency: 4,
		Ring: &ring.Options{Partitions: partitions}, MissedAfter: time.Hour,
		Lease: 6 * time.Second, Grace: 500 * time.Millisecond, Sweep: 200 * time.Millisecond, Drain: 20 * time.Second,
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	j := f.job()
	j.Run = func(ctx context.Context, o jobs.Occurrence) error { return f.handle(ctx, h, o) }
	if err := s.Add(j); err != nil {
		t.Fatal(err)
	}
	f.wg.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Errorf("replica %s: %v", name, err)
		}
	})
	return p
}

func (f *fleet) handle(ctx context.Context, h *handle, o jobs.Occurrence) error {
	f.mu.Lock()
	f.started++
	f.mu.Unlock()
	select {
	case <-time.After(working):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := h.effect(ctx, o); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()

	if f.effected++; f.effected == struckAt {
		close(f.struck)
	}
	return nil
}
