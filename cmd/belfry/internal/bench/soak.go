package bench

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/fleet"
	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
)

// SoakOptions are how long to soak, and on what.
type SoakOptions struct {
	Minutes int          // 1 to 1440
	Store   storeurl.URL // zero: a SQLite file of its own
}

// The times of a soak. Those of the store are as short as they may be, so that what is kept stops growing within minutes.
const (
	soakTold      = 3 * time.Second  // until all replicas have the jobs
	soakCalm      = 10 * time.Second // before the first due, and after the last has ended: what is held then is compared
	soakSample    = 2 * time.Second  // a replica's figures; longer soaks have fewer, see soakPlan.sample
	soakMissed    = 60 * time.Second
	soakHorizon   = 75 * time.Second
	soakRetention = 120 * time.Second
	soakUpkeep    = 60 * time.Second // the engine's, between two looks for what is old
	soakSettle    = 75 * time.Second // by then a due has ended, or never will
	soakAccount   = 5 * time.Second
	soakAway      = 5 * time.Second // between a replica's end and its return
	soakChurn     = 60 * time.Second
	soakTimeout   = time.Second // of a handler
	soakWorkers   = 64
)

// soakTiming is what a replica takes by default, with a Drain that a machine which is busy with other things can keep.
var soakTiming = fleet.Timing{Lease: 10 * time.Second, Grace: time.Second, Sweep: time.Second, Drain: 20 * time.Second}

// soak is one soak. One goroutine runs it.
type soak struct {
	length time.Duration
	churn  time.Duration
	calm   time.Duration
	plan   soakPlan
	fleet  *fleet.Fleet
	at     *soakSite
	ledger *soakLedger
	census *soakCensus
	report *SoakReport
	log    io.Writer

	todo []soakStep   // in the order of when
	left map[int]bool // processes that were let go, and have not ended yet
}

// soakStep is something to do at a moment.
type soakStep struct {
	at time.Time
	do func() error
}

// Soak runs three replicas as processes of their own, with all that a minute of an hourly schedule would bring each second: jobs of each
// second, with keys, of the leader, whose handlers panic, hang and fail. Each minute a replica is killed or leaves, and comes back; a job is
// edited; keys come and go. It holds the store's record to what each occurrence had to become, and what the replicas hold to
// what they held. It starts this program again, with the arguments "bench soaker NAME", which must lead to Soaker. When
// it returns, those processes have ended and nothing is left in the store.
func Soak(ctx context.Context, o SoakOptions, log io.Writer) (SoakReport, error) {
	if err := between("minutes", o.Minutes, 1, 1440); err != nil {
		return SoakReport{}, err
	}
	s := &soak{length: time.Duration(o.Minutes) * time.Minute, churn: soakChurn, calm: soakCalm, left: map[int]bool{}, log: log}
	return s.run(ctx, o.Store)
}

func (s *soak) run(ctx context.Context, u storeurl.URL) (r SoakReport, err error) {
	s.report = &r
	r.Replicas, r.Seconds = replicas, s.length.Seconds()
	err = withNoise(&r.Timer, func() error {
		return withSite(ctx, u, func(at *soakSite) error {
			s.at = at
			r.Store = at.kind
			return s.withReplicas(ctx)
		})
	})
	return r, err
}

func (s *soak) withReplicas(ctx context.Context) (err error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never fails, by its documentation
	s.fleet = fleet.New(s.at.dir, fleet.Spec{Namespace: s.at.namespace, Store: s.at.client.URL().Secret(), Secrets: [][]byte{key},
		Concurrency: soakWorkers, Timing: soakTiming}, "bench", "soaker")
	defer func() {
		if end := s.fleet.Close(); ctx.Err() == nil {
			err = errors.Join(err, end)
		}
	}()
	if s.census, err = newSoakCensus(ctx, s.at, s.report); err != nil {
		return err
	}
	defer s.census.summarise()
	if err := s.begin(ctx); err != nil {
		return err
	}
	s.schedule()
	return s.live(ctx)
}

// begin starts the replicas without jobs, and gives them these once all are ready: what was due before could be late for
// the start's sake.
func (s *soak) begin(ctx context.Context) error {
	sample := sampleEvery(s.length)
	if err := start(ctx, s.fleet, soakPlan{Sample: sample}); err != nil {
		return err
	}
	ready := map[string]bool{}
	err := s.fleet.Await(ctx, func(e fleet.Event) { ready[e.Replica] = ready[e.Replica] || e.Kind == soakReady },
		func() bool {
			return len(ready) == replicas && !slices.Contains(slices.Collect(maps.Values(ready)), false)
		})
	if err != nil {
		return err
	}
	now := time.Now()
	first := now.Add(soakTold + s.calm).Truncate(time.Second)
	s.plan = soakPlan{First: first, Last: first.Add(s.length - time.Second), Sample: sample}
	s.ledger = newSoakLedger(s.plan, s.report)
	s.census.told, s.census.began = now.Add(soakTold), first
	return s.fleet.Go(s.plan)
}

// sampleEvery is some thousand samples at most.
func sampleEvery(length time.Duration) time.Duration { return max(soakSample, length/1200) }

// schedule notes what is to come: churn, from half a period on until shortly before the end. The first replica is left
// alone, so that what it holds can be compared over the whole soak.
func (s *soak) schedule() {
	for i, at := 0, s.plan.First.Add(s.churn/2); at.Before(s.plan.Last.Add(-s.churn / 3)); i, at = i+1, at.Add(s.churn) {
		end := []func(string) error{s.kill, s.leave}[i%2]
		name := nth("replica", []int{1, 2, 2, 1}[i%4]) // each is killed and leaves in turn; the first never
		s.todo = append(s.todo, soakStep{at, func() error { return errors.Join(s.edit(), end(name)) }})
	}
}

// kill ends a replica at once, which comes back.
func (s *soak) kill(name string) error {
	s.report.Kills++
	s.fleet.Kill(name)
	s.comesBack(name)
	return nil
}

// leave lets a replica drain, which comes back.
func (s *soak) leave(name string) error {
	s.report.Leaves++
	s.release(name)
	s.comesBack(name)
	return nil
}

func (s *soak) release(name string) {
	s.left[s.fleet.Pid(name)] = true
	s.fleet.Release(name)
}

func (s *soak) comesBack(name string) {
	at := time.Now().Add(soakAway)
	s.todo = append([]soakStep{{at, func() error {
		_, err := s.fleet.Start(name)
		return err
	}}}, s.todo...)
}

// edit gives one job another schedule, on all replicas.
func (s *soak) edit() error {
	s.report.Edits++
	s.plan.Edition++
	s.ledger.edits = append(s.ledger.edits, time.Now())
	return s.fleet.Go(s.plan)
}

// live reads what the replicas tell, and does what is to be done, until all has ended.
func (s *soak) live(ctx context.Context) error {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case e := <-s.fleet.Events():
			if err := errors.Join(s.fleet.Note(e), s.note(e)); err != nil {
				return err
			}
		case now := <-tick.C:
			over, err := s.step(ctx, now)
			if err != nil || over {
				return errors.Join(err, s.stop(ctx))
			}
		}
	}
}

func (s *soak) note(e fleet.Event) error {
	switch e.Kind {
	case fleet.Started, soakEnded:
		var o soakEvent
		if err := json.Unmarshal(e.Doc, &o); err != nil {
			return fmt.Errorf("bench: replica %q: %w", e.Replica, err)
		}
		s.ledger.note(e.Kind, o)
	case soakSampled, soakClosed:
		var f soakFigures
		if err := json.Unmarshal(e.Doc, &f); err != nil {
			return fmt.Errorf("bench: replica %q: %w", e.Replica, err)
		}
		s.census.note(e, f)
	case fleet.Exited:
		if released := s.left[e.Pid]; released && e.Err != nil {
			return fmt.Errorf("bench: replica %q did not leave in order: %w", e.Replica, e.Err)
		}
		delete(s.left, e.Pid)
	}
	return nil
}

// step does what its moment has come for, and reports whether the soak is over.
func (s *soak) step(ctx context.Context, now time.Time) (over bool, err error) {
	if len(s.todo) > 0 && !now.Before(s.todo[0].at) {
		do := s.todo[0].do
		s.todo = s.todo[1:]
		if err := do(); err != nil {
			return false, err
		}
	}
	if now.Unix()%int64(soakAccount/time.Second) != 0 {
		return false, nil
	}
	if err := errors.Join(s.ledger.account(ctx, s.at.store, s.at.namespace, now), s.census.look(ctx)); err != nil {
		return false, err
	}
	if now.Unix()%60 < int64(soakAccount/time.Second) {
		fmt.Fprintf(s.log, "%v of %v: %s\n", now.Sub(s.plan.First).Round(time.Second), s.length, s.census.line())
	}
	if !s.ledger.over(now) {
		return false, nil
	}
	if s.census.calmSince.IsZero() {
		s.census.calmSince = now
	}
	return now.Sub(s.census.calmSince) >= s.calm, nil
}

// stop lets all replicas go, and waits for what they say last.
func (s *soak) stop(ctx context.Context) error {
	for _, name := range s.fleet.Live() {
		s.release(name)
	}
	var errs []error
	err := s.fleet.Await(ctx, func(e fleet.Event) { errs = append(errs, s.note(e)) }, func() bool { return len(s.left) == 0 })
	return errors.Join(append(errs, err)...)
}

// soakName is a namespace that nobody else has.
func soakName() string { return "soak-" + strings.ToLower(rand.Text()[:8]) }
