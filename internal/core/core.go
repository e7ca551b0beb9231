package core

import (
	"math/rand/v2"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/ring"
)

// Config is what a Core needs to know; all of it is set by the caller, checked already.
type Config struct {
	Namespace, Replica, Boot string

	Partitions  int
	Concurrency int // workers

	Lease, Grace, Sweep, Drain                 time.Duration
	MissedAfter, Horizon, Retention, Tolerance time.Duration

	// Store is false where there is none: then only efficiency jobs run.
	Store bool

	// Elector says that there is one, which elects the leader: see Elected, Deposed and Stand. Else the store does, where it can (idempotency.Leaders).
	Elector bool

	// Rand gives the jitter of retries, nothing else. Never nil.
	Rand *rand.Rand
}

// callTimeout is the deadline of a store call: lease/5, so that several
// renewals fit into a lease.
func (c Config) callTimeout() time.Duration { return c.Lease / 5 }

// declareTimeout is Declare's. That one is as large as the program has jobs, and
// made once a session: it may take longer, as long as the session can be renewed beside it.
func (c Config) declareTimeout() time.Duration { return c.Lease / 2 }

// trustFor is how long after the last confirmed renewal was sent a replica
// still believes in its session: less than the lease, so that it stops before others start.
func (c Config) trustFor() time.Duration { return c.Lease * 7 / 10 }

// Core is one replica. It is not safe for concurrent use: one loop owns it.
type Core struct {
	cfg    Config
	now    Instant
	out    []Action
	given  []Action // what the last Step returned
	timers timers
	seq    int64 // timers, handles and streams
	nonce  int64

	ring  *ring.Ring
	ranks [][]byte // bitmaps of the partitions by our rank; the last one: that rank or a later one
	jobs  map[string]*job

	storeDues dues // correctness jobs, by the store's time
	wallDues  dues // efficiency jobs, by the host's

	session *session
	opening bool
	store   string // the identity of the store that we began with
	foreign string // why the store that answers now is another one; empty: it is not
	witness witness
	refused string // why the store will never take us; empty: it may

	rolledBack string // why the store is not what it was; empty: it is

	clock  clock
	wall   wall
	skew   skew
	health health
	said   Announce // last

	lanes

	workers  workers
	sweeper  sweeper
	backlog  backlog
	hints    hinter
	passes   []*pass // by due, then start
	setbacks map[dueKey]setback
	closing  map[dueKey]bool
	finished map[dueKey]finished // of this session, through open dues
	waking   map[dueKey]*timer   // when more of an open due starts
	local    []localRun          // efficiency runs that wait for a worker, by priority, then as they came
	loads    map[string]*load    // by job
	bounded  bool                // there is a job that may have no room though nothing runs: by its rate, or by who else there is
	ranked   bool                // jobs differ in priority
	level    int                 // the priority of one of them
	turns    int64               // that workers were given in
	tokenAt  time.Duration       // when the next start is allowed that something waits for; 0: nothing does
	roster   roster
	leader   leader
	members  MissingChanged

	orphans map[string]time.Duration // jobs that nobody has, and when that was told last

	draining bool
	hurried  bool   // nobody waits for handlers
	cutting  bool   // they are told to end
	stopping string // why
	leaving  bool
	stopped  bool
}

// New returns a replica that has not done anything yet.
func New(c Config) *Core {
	core := &Core{
		cfg: c, jobs: map[string]*job{},
		setbacks: map[dueKey]setback{}, closing: map[dueKey]bool{}, finished: map[dueKey]finished{}, waking: map[dueKey]*timer{},
		loads: map[string]*load{},
	}
	core.workers = workers{
		held: map[int64]*held{}, byFence: map[int64]*held{},
		known: map[int64]ended{}, asked: map[idempotency.ID]asked{}, queues: map[localKey]*keyQueue{},
	}
	core.sweeper.taking = map[idempotency.ID]bool{}
	core.backlog.reset()
	core.hints.to = map[string]bool{}
	core.makeLanes()
	core.leader.makeShares(c)
	return core
}

// Step tells the core what happened, and that it is now; it returns what is to
// be done, in a list that is good until the next Step. Without events it only lets time pass.
func (c *Core) Step(now Instant, events ...Event) []Action {
	c.now = now
	if c.stopped {
		return nil
	}
	c.watchWall()
	c.checkLease() // before anything else: a process that was paused must not act on a lost session
	for _, e := range events {
		c.handle(e)
	}
	c.lead()
	c.fireTimers()
	c.fireDues()
	c.sweep()
	c.fill()
	c.checkDrained()
	c.decides.flush(c)
	c.claims.flush(c)
	c.saves.flush(c)
	c.finishes.flush(c)
	c.flushHints()
	clear(c.given)
	c.out, c.given = c.given[:0], c.out
	return c.given
}

// Wake is the monotonic instant at which Step has to be called if no event comes before.
func (c *Core) Wake() time.Duration {
	at := c.now.Mono + c.cfg.Sweep
	if len(c.timers) > 0 {
		at = min(at, c.timers[0].at)
	}
	if s := c.session; s != nil {
		at = min(at, s.until.Mono)
		at = c.until(at, s.until.Wall, c.now.Wall)
	}
	if due, ok := c.storeDues.table.First(); ok && c.ready() {
		at = min(at, c.now.Mono+micros(due-c.storeMicro()))
	}
	if due, ok := c.wallDues.first(); ok && !c.draining {
		at = c.until(at, due, c.now.Wall)
	}
	if c.ready() && !c.sweeper.asking {
		at = min(at, c.sweeper.next)
	}
	if c.ready() && c.sweeper.hinted {
		at = min(at, c.sweeper.hintEnd)
	}
	if c.looksForLeader() && !c.leader.asking && c.leader.resign == nil {
		at = min(at, c.leader.next)
	}
	if len(c.hints.to) > 0 {
		at = min(at, c.hints.next)
	}
	if c.tokenAt > 0 {
		at = min(at, c.tokenAt)
	}
	return max(at, c.now.Mono)
}

// micros is so many microseconds, or an hour where they are more: a due may be centuries away.
func micros(n int64) time.Duration {
	return time.Duration(min(n, time.Hour.Microseconds())) * time.Microsecond
}

// until is the instant at which due has come, but not after at: a due may be centuries away.
func (c *Core) until(at time.Duration, due, now time.Time) time.Duration {
	if due.Before(now.Add(at - c.now.Mono)) {
		return c.now.Mono + due.Sub(now)
	}
	return at
}

func (c *Core) handle(e Event) {
	switch e := e.(type) {
	case JobsChanged:
		c.setJobs(e.Jobs, e.Roles)
	case RingChanged:
		c.setRing(e.Ring)
	case *Replied:
		c.hear(e.Call, e.err)
		e.Call.call.then(e)
	case Ended:
		c.ended(e)
	case Streamed:
		c.streamed(e)
	case MissingChanged:
		c.members = e
	case Hinted:
		c.sweeper.hinted = true
		c.hintLeader()
	case Elected:
		c.chosen(e)
	case Deposed:
		c.deposed(e)
	case Yielded:
		c.yielded()
	case Heard:
		c.hearFences(e)
	case Progressed:
		c.progressed(e)
	case Stop:
		c.drain(e.Why)
	case Hurry:
		c.hurry()
	}
}

func (c *Core) emit(a Action) {
	if call, ok := a.(*Call); ok && call.Within == 0 {
		call.Within = c.cfg.callTimeout()
	}
	c.out = append(c.out, a)
}

// storeNow is the store's time as far as known, never ahead of it.
func (c *Core) storeNow() time.Time { return time.UnixMicro(c.storeMicro()).UTC() }

// storeMicro is that in Unix microseconds.
func (c *Core) storeMicro() int64 { return c.clock.micro(c.now.Mono) }

// ready says that new runs of correctness jobs may start.
func (c *Core) ready() bool { return c.session != nil && c.session.declared && !c.draining }

// retryPause is how long to wait before a call that failed is made again.
func (c *Core) retryPause() time.Duration { return c.cfg.callTimeout() / 10 }

// maxRanks bounds how many ranks a replica tells apart; all later ones act as the last.
const maxRanks = 8

func (c *Core) setRing(r *ring.Ring) {
	c.ring, c.ranks = r, nil
	if r != nil {
		c.ranks = lump(r.Ranks(c.cfg.Replica, maxRanks))
	}
	if len(c.ranks) > 0 && !empty(c.ranks[0]) {
		c.hints.lately = r
	}
	c.dropShares()
	c.askRoster()
	c.sweepSoon(0) // what we gained may lie open
	c.announce()
}

// lump makes the last of maxRanks ranks stand for all later ones too.
func lump(ranks [][]byte) [][]byte {
	if len(ranks) == maxRanks {
		last := ranks[maxRanks-1]
		for i := range last {
			last[i] = 0xff
			for _, before := range ranks[:maxRanks-1] {
				last[i] &^= before[i]
			}
		}
	}
	return ranks
}

// rank is ours in a partition; -1 where we have none.
func (c *Core) rank(partition int) int {
	for r, bits := range c.ranks {
		if has(bits, partition) {
			return r
		}
	}
	return -1
}

func (c *Core) partition(key string) int { return ring.Slot(key) % c.cfg.Partitions }

func has(bits []byte, p int) bool { return bits[p/8]>>(p%8)&1 == 1 }
