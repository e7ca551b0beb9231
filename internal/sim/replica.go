package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/core"
	"github.com/belfry-go/belfry/internal/sim/oracle"
	"github.com/belfry-go/belfry/jobs"
)

// Replica is a host and the process that runs there, if one does.
type Replica struct {
	Name string

	// Version is that of the code; Lacks are jobs that it does not have. They count from the next start.
	Version int
	Lacks   []string

	w     *World
	index int
	life  int // counts the processes
	up    bool
	core  *core.Core
	clock clock
	lag   time.Duration // of the copy that it reads keys from

	mood    Fault         // beside the world's, those that chance does to this replica now
	frozen  time.Duration // until when the process stands still
	slept   span          // when the host was suspended last
	setBack time.Duration // when its wall clock was set back last
	blind   time.Duration // until when it does not reach the store
	stale   time.Duration // until when gossip does not reach it
	omits   []string      // replicas that it does not hear of

	inbox   []core.Event
	taken   []core.Event // room for the next inbox
	alarm   moment       // when the core wants to be woken
	armed   bool
	spins   int
	works   map[int64]*work
	back    map[int64]int64 // fences of handlers that have returned, by handle: what the loop has not heard yet
	streams map[int64]*stream
	heard   map[string]rumour
	said    rumour // of itself
	onStop  func()

	leads   int64 // the term in which it was told to lead; 0: none
	stands  bool  // for the elector
	elected int64 // the term that it was told of; 0: none, or its end too
}

// Up is whether its process runs.
func (r *Replica) Up() bool { return r.up }

// boot is the id of the process that runs.
func (r *Replica) boot() string { return fmt.Sprintf("%s.%d", r.Name, r.life) }

// Start starts a process, unless one runs.
func (r *Replica) Start() {
	if r.up {
		return
	}
	w := r.w
	r.up = true
	r.life++
	r.onStop = nil
	c := w.cfg.Timing
	c.Elector = w.faults(Elector)
	c.Replica, c.Boot = r.Name, r.boot()
	c.Rand = rand.New(rand.NewPCG(w.cfg.Seed, uint64(r.index)<<32|uint64(r.life)))
	r.core = core.New(c)
	r.inbox = nil
	r.leads, r.stands, r.elected = 0, false, 0
	r.works, r.back, r.streams, r.heard = map[int64]*work{}, map[int64]int64{}, map[int64]*stream{}, map[string]rumour{}
	w.note(r.Name, "starts", c.Boot, r.Version, fmt.Sprint(r.Lacks))
	r.tell(core.JobsChanged{Jobs: r.jobs()})
	r.after(w.between(100*time.Millisecond, 400*time.Millisecond), r.learnAll)
}

func (r *Replica) jobs() []jobs.Job {
	var list []jobs.Job
	for _, j := range r.w.cfg.Jobs {
		if !slices.Contains(r.Lacks, j.Name) && !j.plan(r.Version).Gone {
			spec := j.spec(r.Version)
			r.w.Oracle.Has(r.boot(), j.Name, spec.Definition(), j.choice(r.Version, r.w.cfg.Timing.Horizon))
			list = append(list, spec)
		}
	}
	return list
}

// Change tells the running process of another version of its jobs.
func (r *Replica) Change(version int) {
	r.Version = version
	r.w.note(r.Name, "changes jobs", version)
	if r.up {
		r.after(0, func() { r.tell(core.JobsChanged{Jobs: r.jobs()}) })
	}
}

// Kill ends the process at once, as SIGKILL does.
func (r *Replica) Kill() {
	if !r.up {
		return
	}
	r.w.note(r.Name, "is killed", len(r.works))
	r.w.Stats.Killed++
	r.w.Oracle.Disturbed()
	r.gone()
}

func (r *Replica) gone() {
	r.tellOracle(func(o *oracle.Oracle) { o.Gone(r.boot()) })
	r.up, r.armed, r.core = false, false, nil
	r.life++
	r.works, r.streams = nil, nil
	r.frozen, r.leads, r.stands, r.elected = 0, 0, false, 0
	r.w.elector.died(r)
	r.say(rumour{})
}

// Restart starts a process after a while.
func (r *Replica) Restart(after time.Duration) { r.w.After(after, r.Start) }

// Freeze stops the process for a while, as SIGSTOP does: what is meant for it waits.
func (r *Replica) Freeze(d time.Duration) {
	r.frozen = max(r.frozen, r.w.now+d)
	r.w.Oracle.Disturbed()
	r.tellOracle(func(o *oracle.Oracle) { o.Still(r.boot(), d) })
	r.w.note(r.Name, "is frozen for", d)
}

// Suspend stops the whole host: its monotonic clock stands still as well.
func (r *Replica) Suspend(d time.Duration) {
	r.Freeze(d)
	r.clock.slept += d
	r.slept = span{r.w.now, r.w.now + d}
	r.misled()
}

// misled tells of a host that was suspended about when its wall clock was set back: then neither of its clocks says how long, and its
// process trusts its session for as long as it may without a word of the store.
func (r *Replica) misled() {
	if lease := r.w.cfg.Timing.Lease; r.slept.to > 0 && r.setBack > r.slept.from-lease && r.setBack < r.slept.to+lease {
		r.tellOracle(func(o *oracle.Oracle) { o.Misled(r.boot(), max(r.slept.to-r.w.now, 0)+lease*7/10) })
	}
}

// Blind cuts the replica off from the store for a while.
func (r *Replica) Blind(d time.Duration) {
	r.blind = max(r.blind, r.w.now+d)
	r.w.note(r.Name, "is blind for", d)
}

// SetClock changes the host's clock: by how much its wall clock is wrong, and how many millionths it runs fast.
func (r *Replica) SetClock(offset time.Duration, drift int64) {
	if offset < r.clock.offset {
		r.setBack = r.w.now
		r.misled()
	}
	before := r.clock.mono(r.w.now)
	r.clock.offset, r.clock.drift = offset, drift
	r.clock.base += before - r.clock.mono(r.w.now) // the monotonic clock never jumps
	r.w.note(r.Name, "clock", offset, drift)
}

// Lag makes the replica read keys from a copy that is behind.
func (r *Replica) Lag(d time.Duration) { r.lag = min(d, maxLag) }

// Drain tells the process to leave, and does then once it has; nil: nothing.
func (r *Replica) Drain(then func()) {
	if !r.up || r.onStop != nil {
		return
	}
	r.onStop = func() {
		if then != nil {
			then()
		}
	}
	r.w.note(r.Name, "drains")
	r.after(0, func() { r.tell(core.Stop{Why: "the scene says so"}) })
}

// tell brings an event to the process's loop; now and then the loop is busy, and
// takes it in one turn with those that follow.
func (r *Replica) tell(e core.Event) {
	r.inbox = append(r.inbox, e)
	if r.w.cfg.Faults != 0 && r.w.chance(.1) {
		r.after(r.w.between(0, 3*time.Millisecond), r.step)
		return
	}
	r.step()
}

// step is one turn of the process's loop, with all that came since the last.
func (r *Replica) step() {
	now, events := r.clock.at(r.w.now), r.inbox
	r.inbox, r.taken = r.taken[:0], events
	actions := r.core.Step(now, events...)
	clear(events)
	for _, a := range actions {
		r.act(a)
		if !r.up {
			return
		}
	}
	clear(r.back)
	r.arm(now)
}

// arm sets the alarm at which the core wants to be woken.
func (r *Replica) arm(now core.Instant) {
	at := r.core.Wake()
	if r.spins++; at > now.Mono {
		r.spins = 0
	}
	if r.spins > 100 {
		r.w.fail("%s spins: it wants to be woken at once, again and again", r.Name)
	}
	r.alarm, r.armed = r.w.moment(max(r.clock.when(at), r.w.now)), true
}

func (r *Replica) act(a core.Action) {
	switch a := a.(type) {
	case *core.Call:
		r.send(a)
	case core.Start:
		r.start(a)
	case core.Cancel:
		r.cancel(a)
	case core.OpenStream:
		r.openStream(a)
	case core.Pull:
		r.pull(a)
	case core.CloseStream:
		delete(r.streams, a.Stream)
	case core.Announce:
		r.w.note(r.Name, "announces", a.State, a.Reason)
		r.w.loss.announced(r, a)
		r.say(rumour{state: a.State, store: a.Store, fence: a.Fence, back: a.RolledBack})
	case core.Stand:
		r.w.note(r.Name, "stands for the elector", a.On)
		r.stand(a.On)
	case core.Lead:
		r.w.note(r.Name, "is told to lead", a.Term)
		r.lead(a.Term)
	case core.Hint:
		r.w.note(r.Name, "hints", a.Members)
		r.hint(a.Members)
	case core.Failed:
		r.w.fail("%s gives up: %w", r.Name, a.Err)
	case core.Stopped:
		r.w.note(r.Name, "stops", a.Cut)
		then := r.onStop
		r.gone()
		then()
	default:
		r.observe(a)
	}
}

// observe counts what asks for nothing.
func (r *Replica) observe(a core.Action) {
	s := &r.w.Stats
	switch a := a.(type) {
	case core.Finished:
		reason := a.Reason
		if a.Outcome == idempotency.Done {
			reason = "done"
		}
		s.Finished[reason]++
		if a.Occurrence.Fence != 0 && !r.w.unjudged {
			r.w.Oracle.At(r.w.StoreNow())
			r.w.Oracle.ToldFinished(idOf(a.Occurrence), a.Occurrence.Fence, outcome(a.Outcome))
		}
		r.w.noteRun(r.Name, "finished", idOf(a.Occurrence), reason, a.Occurrence.Fence, int64(a.Outcome))
	case core.Refused:
		s.Refused[a.Cause]++
		if a.Cause == "fenced" && !r.w.unjudged {
			r.w.Oracle.At(r.w.StoreNow())
			r.w.Oracle.ToldFenced(idOf(a.Occurrence), a.Occurrence.Fence)
		}
		r.w.noteRun(r.Name, "refused", idOf(a.Occurrence), a.Cause, a.Occurrence.Fence)
	case core.Decided:
		s.Missed[a.Job] += a.Missed
		if !r.w.unjudged {
			r.w.Oracle.ToldDecided(r.boot(), a.Job, unix(a.Dues), a.Missed, a.Paused, a.TooLate)
		}
		r.w.note(r.Name, "decided", a.Job, len(a.Dues), a.Missed, a.Paused, a.TooLate)
	case core.TakenUp:
		s.TakenUp++
		if !r.w.unjudged {
			r.w.Oracle.ToldTakenUp(idOf(a.Occurrence), a.Occurrence.Fence, a.Crashes)
		}
		r.w.note(r.Name, "took up", idOf(a.Occurrence).String(), a.Occurrence.Fence, a.Crashes)
	case core.Hedged:
		s.Hedged++
		if a.Occurrence.Attempt > 1 {
			s.HedgedRetries++
		}
		r.w.note(r.Name, "hedged", idOf(a.Occurrence).String(), a.Occurrence.Fence)
	case core.Led:
		s.Leaders++
		r.w.note(r.Name, "sees who leads", a.Term, a.Session, a.Replica, a.Why, fmt.Sprint(a.Until.IsZero(), a.Mine))
	case core.Lost:
		s.Lost++
		r.w.note(r.Name, "lost session", a.Session, a.Why)
	case core.Renewed:
		if a.Opened {
			r.w.note(r.Name, "opened session", a.Session)
		}
	case core.Declared:
		r.w.note(r.Name, "declared its jobs", a.Session)
	case core.Problem:
		s.Problems++
		r.w.note(r.Name, "problem", a.Job, a.Due, a.Err.Error())
	case core.Orphaned:
		r.w.note(r.Name, "sees a job that nobody has", a.Job)
	case core.NoMoreDues:
		r.w.note(r.Name, "sees no more dues", a.Job)
	case core.WallStepped:
		r.w.note(r.Name, "sees its clock step", a.By)
	case core.Skewed:
		r.w.note(r.Name, "clock differs", a.Offset, a.Fine)
	case core.SteppedBack:
		r.w.note(r.Name, "sees the store's clock step back", a.By)
	case core.Stuck:
		r.w.note(r.Name, "stuck", idOf(a.Occurrence).String(), a.Cause.Error())
	default:
		r.w.fail("%s: unknown action %T", r.Name, a)
	}
}

// tellOracle tells it something, now, unless nothing is judged.
func (r *Replica) tellOracle(what func(*oracle.Oracle)) {
	if !r.w.unjudged {
		r.w.Oracle.At(r.w.StoreNow())
		what(r.w.Oracle)
	}
}

func idOf(o jobs.Occurrence) oracle.ID {
	return oracle.ID{Job: o.Job, Key: o.Key, Due: o.Due.Unix(), Request: o.Request}
}
