package scheduler

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/core"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

// ErrUnknown is wrapped by errors about a job that was not added to a Scheduler, and by a Client's about one that the store does not know.
var ErrUnknown = errors.New("scheduler: unknown job")

// Scheduler is one replica. Its methods are safe for concurrent use. Those of its Client read and steer the whole cluster
// through Config.Store, before, during and after Run; without a store that can, they return an error that wraps ErrNoStore.
type Scheduler struct {
	*Client
	cfg        Config
	alone      bool
	partitions int
	layout     string
	roles      roles

	mu    sync.Mutex
	jobs  map[string]jobs.Job
	mail  *mailbox // while Run runs
	ran   bool
	ended bool
	ready error
}

var (
	errNotRunning = errors.New("scheduler: not ready: Run has not been called")
	errEnded      = errors.New("scheduler: Run has returned; a Scheduler runs once, make a new one and add the jobs and roles to that")
)

// New checks the configuration and returns a replica that does nothing until
// Run. It starts no goroutine and does no I/O.
func New(c Config) (*Scheduler, error) {
	cfg := c.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	s := &Scheduler{cfg: cfg, jobs: map[string]jobs.Job{}, ready: errNotRunning}
	if cfg.Members == nil {
		s.alone = true
		s.cfg.Members = solitary{name: hostName()}
		if cfg.Store == nil {
			s.cfg.Store = idempotency.NewMemory(nil)
		}
	}
	s.Client = newClient(cfg.Namespace, s.cfg.Store)
	r, err := ring.New([]string{s.cfg.Members.Self()}, cfg.Ring)
	if err != nil {
		return nil, fmt.Errorf("scheduler: Config.Ring, or the name of Config.Members: %w", err)
	}
	if s.partitions = r.Partitions(); s.partitions < minPartitions {
		return nil, fmt.Errorf("scheduler: Config.Ring: %d partitions are too few; use %d or more", s.partitions, minPartitions)
	}
	s.layout = r.Layout()
	return s, nil
}

// minPartitions is one byte of a bitmap.
const minPartitions = 8

// Add adds jobs, before or during Run; all of them, or with an error none. It
// reports every problem of every job, joined. A name that was added before is refused: Remove it first. So is what Config
// rules out: a Correctness job without a Store, a Missed.MaxAge above Horizon, and a Spread that leaves less than MissedAfter +
// Lease of the Horizon (Correctness jobs) or covers 100 dues or more (jobs with Keys), a Posture where the Members cannot tell who is missing, a job of
// jobs.Leader where nobody can be elected, or a Store cannot keep who leads (idempotency.Leaders), and HandOverAfter without a Store.
// It logs the first three dues of each job after now, by the host's clock; of the first 50 where there are more.
func (s *Scheduler) Add(list ...jobs.Job) error {
	added, err := s.add(list)
	if err != nil {
		return err
	}
	s.logAdded(added)
	return nil
}

// add returns the jobs with their defaults.
func (s *Scheduler) add(list []jobs.Job) ([]jobs.Job, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		return nil, errEnded
	}
	added := maps.Clone(s.jobs)
	var errs []error
	complete := make([]jobs.Job, 0, len(list))
	for _, j := range list {
		if err := s.checkLocked(j, added); err != nil {
			errs = append(errs, err)
			continue
		}
		j = j.WithDefaults()
		for _, wrap := range slices.Backward(s.cfg.Middleware) {
			j.Run = wrap(j.Run)
		}
		added[j.Name] = j
		complete = append(complete, j)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	s.jobs = added
	s.tellLocked()
	return complete, nil
}

func (s *Scheduler) checkLocked(j jobs.Job, added map[string]jobs.Job) error {
	if err := j.Validate(); err != nil {
		return fmt.Errorf("scheduler: %w", err)
	}
	if _, had := added[j.Name]; had {
		return fmt.Errorf("scheduler: job %q was added already; give it another name, or Remove the first", j.Name)
	}
	if j.Guarantee == jobs.Correctness && s.cfg.Store == nil {
		return fmt.Errorf("scheduler: job %q: Correctness needs a store that all replicas share; set Config.Store, or Guarantee: jobs.Efficiency", j.Name)
	}
	if j.Missed.MaxAge > s.cfg.Horizon {
		return fmt.Errorf("scheduler: job %q: Missed.MaxAge %v is above Config.Horizon %v, past which nothing is claimed; lower it, or raise Horizon (and Retention above that)",
			j.Name, j.Missed.MaxAge, s.cfg.Horizon)
	}
	if err := s.cfg.checkPosture(j); err != nil {
		return err
	}
	if err := s.cfg.checkLeader(j); err != nil {
		return err
	}
	return s.cfg.checkSpread(j)
}

// Remove makes this replica forget a job; what runs of it here runs on. Other replicas
// that have it keep running it. An unknown name is an error that wraps ErrUnknown.
func (s *Scheduler) Remove(name string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, had := s.jobs[name]; !had {
		return fmt.Errorf("%w %q; it was not added, or was removed already", ErrUnknown, name)
	}
	s.jobs = maps.Clone(s.jobs)
	delete(s.jobs, name)
	s.tellLocked()
	return nil
}

func (s *Scheduler) tellLocked() {
	if s.mail != nil {
		s.mail.post(s.jobsLocked())
	}
}

func (s *Scheduler) jobsLocked() core.JobsChanged {
	list := make([]jobs.Job, 0, len(s.jobs))
	for _, name := range slices.Sorted(maps.Keys(s.jobs)) {
		list = append(list, s.jobs[name])
	}
	return core.JobsChanged{Jobs: list, Roles: s.roles.any()}
}

// Ready is nil while this replica takes its share: its session is open, the
// store answers, and it owns keys. Else the error says why not: the state that was announced with its reason, or what
// the members say where they overrule it. It never blocks; use it for a readiness probe.
func (s *Scheduler) Ready() error {
	s.mu.Lock()
	err := s.ready
	s.mu.Unlock()
	if err == errOverruled { // by what the members say now: their reason changes while their owners do not
		return fmt.Errorf("%w%s", err, s.why())
	}
	return err
}

func (s *Scheduler) setReady(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ready = err
}

// Run runs this replica until ctx ends, and then drains: it announces that it
// leaves, claims nothing more, lets running handlers finish for up to
// Config.Drain, or until Hurry, cancels the others, releases their runs and closes its session. A program ends ctx at the first
// SIGTERM, and calls Hurry at the second.
// It returns nil after a clean drain, else an error that names what was cut
// off, or why the store refused this replica for good. It closes nothing that
// it was given, and can be called once. A store that cannot be reached is no reason to return: it waits and says so.
func (s *Scheduler) Run(ctx context.Context) error {
	s.mu.Lock()
	if s.ran {
		s.mu.Unlock()
		return errors.New("scheduler: Run was called before; a Scheduler runs once, make a new one")
	}
	s.ran = true
	s.mail = newMailbox()
	s.mail.post(s.jobsLocked())
	s.mu.Unlock()
	if s.alone {
		s.cfg.Logger.Warn("running alone: no Members are configured, so other replicas are not known", "replica", s.cfg.Members.Self())
	}
	err := newRunner(s).run(ctx)
	s.mu.Lock()
	s.mail, s.ended = nil, true
	s.ready = errors.New("scheduler: not ready: stopped")
	s.mu.Unlock()
	return err
}

// Hurry ends the wait of a Run that drains for its handlers at once: those that are still at work are canceled, and what
// returns is released, as when Config.Drain is over. Run's error says how many runs were cut off, and names the first. Before ctx has ended it makes the drain that comes not wait. Without a
// Run it does nothing. It never blocks.
func (s *Scheduler) Hurry() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mail != nil {
		s.mail.post(core.Hurry{})
	}
}

// solitary is the membership of a replica that knows of no others.
type solitary struct{ name string }

func (s solitary) Self() string { return s.name }

func (s solitary) Watch() ([]string, <-chan struct{}) { return []string{s.name}, nil }

func (s solitary) Announce(context.Context, string, string, string, map[string]string) error {
	return nil
}

// Missing is nobody: who is alone misses none.
func (s solitary) Missing() []string { return nil }

func (s solitary) Facts() map[string]map[string]string { return nil }

func hostName() string {
	if name, err := os.Hostname(); err == nil && name != "" {
		return name
	}
	return "alone"
}
