package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// sweeper looks for what was left lying, and hands it to free workers.
type sweeper struct {
	next    time.Duration // when to ask
	asking  bool
	failed  int           // sweeps in a row
	failing time.Duration // since when, where they do
	full    bool          // the last answer left something out
	won     bool          // something of it was won

	spare    *sweepCall
	excluded []string // jobs that are ours to run but were not asked for, since they had no room
	taking   map[idempotency.ID]bool

	hinted  bool          // somebody says that there is something
	hintEnd time.Duration // until when no further sweep is made for a hint
}

// sweepSoon makes the next sweep happen within d.
func (c *Core) sweepSoon(d time.Duration) { c.sweeper.next = min(c.sweeper.next, c.now.Mono+d) }

// sweep asks the store what this replica may take, each Sweep and whenever something may be there.
func (c *Core) sweep() {
	w := &c.sweeper
	c.roomAgain()
	if w.hinted && c.now.Mono >= w.hintEnd {
		w.hinted, w.hintEnd = false, c.now.Mono+HintEvery
		c.sweepSoon(0)
	}
	if c.now.Mono < w.next || w.asking { // what was asked for meanwhile is asked after the answer
		return
	}
	w.next = c.now.Mono + c.cfg.Sweep
	for _, p := range slices.Clone(c.passes) {
		c.checkStalled(p)
	}
	if !c.ready() {
		return
	}
	w.asking = true
	x := w.spare
	if w.spare = nil; x == nil {
		x = &sweepCall{}
	}
	*x = sweepCall{Call: Call{Name: "Lagging", call: x}, c: c, s: c.session, sent: c.now.Mono}
	x.q, x.excluded = c.lagQuery()
	c.emit(&x.Call)
}

// sweepCall is the question of a sweep. Most of a replica's calls are of these, so that one is used again and again.
type sweepCall struct {
	Call
	reply[idempotency.Lag]
	c        *Core
	s        *session
	sent     time.Duration
	q        idempotency.LagQuery
	excluded []string
}

func (x *sweepCall) do(ctx context.Context, st idempotency.Store) *Replied {
	lag, err := st.Lagging(ctx, x.s.Session, x.q)
	return x.put(&x.Call, lag, err)
}

func (x *sweepCall) then(r *Replied) {
	c, w := x.c, &x.c.sweeper
	if r == &x.Replied { // it was made, and is over
		w.spare = x
	}
	if c.session != x.s {
		return
	}
	w.asking = false
	switch l, err := x.get(r); {
	case errors.Is(err, idempotency.ErrSessionDead):
		c.lose("the store says it is dead")
	case err != nil:
		w.sweepFailed(c, err)
	case !c.draining:
		w.failed = 0
		c.swept(x, l)
	}
}

// swept takes in what a sweep has found.
func (c *Core) swept(x *sweepCall, l idempotency.Lag) {
	w := &c.sweeper
	c.control(x.s, l.Controls)
	if most := x.q.Limit; most > 0 {
		w.full, w.won = len(l.Waiting) >= most || len(l.Orphaned) >= most, false
		w.excluded = x.excluded
		c.backlog.swept(l.Waiting, x.excluded)
	}
	c.forgetClosed(l.Open, x.sent)
	c.act(l)
}

// lagQuery is what a sweep asks, and the jobs that are ours to run but that it does not ask for.
func (c *Core) lagQuery() (q idempotency.LagQuery, excluded []string) {
	q.Ranks, q.Grace = c.ranks, c.cfg.Grace
	if c.workers.free(c) > 0 {
		q.Limit = min(4*c.cfg.Concurrency, idempotency.MaxBatch)
		q.Full, excluded = c.full()
	}
	return q, excluded
}

// sweepFailed tells of sweeps that fail in a row. Other calls may succeed meanwhile, so that the replica looks healthy.
func (s *sweeper) sweepFailed(c *Core, err error) {
	const each = 60
	if s.failed++; s.failed == 1 {
		s.failing = c.now.Mono
	}
	if s.failed%each == enough {
		c.emit(Problem{Err: fmt.Errorf("%d sweeps in a row failed; until one succeeds nothing is opened, and nothing of others taken up: %w", s.failed, err)})
	}
}

// ails says that sweeps have failed for a Lease, several in a row.
func (s *sweeper) ails(c *Core) bool {
	return s.failed >= enough && c.now.Mono-s.failing >= c.cfg.Lease
}

// act starts what a sweep found: orphans first, then what waits, then openings and passes.
func (c *Core) act(l idempotency.Lag) {
	c.takeOrphans(l.Orphaned)
	c.openEntries(l)
	for _, o := range l.Open {
		c.actOpen(l.Now, o)
	}
}

// openEntries decides what nobody has opened, as many as can be in the time of a step. The others wait for the next one,
// or, where we are not the owner, for the next sweep.
func (c *Core) openEntries(l idempotency.Lag) {
	if c.ranked {
		slices.SortStableFunc(l.Entries, func(a, b idempotency.Entry) int {
			return descending(c.levelOf(a.Job), c.levelOf(b.Job))
		})
	}
	spent := 0
	for _, e := range l.Entries {
		j := c.jobs[e.Job]
		switch {
		case j == nil || j.deciding:
		case c.held(j) && e.Hash == j.hash:
			j.entry = e // for when we lead
			c.overdue()
		case spent >= maxSteps || c.unstarted(l.Now, j, e):
			c.see(j, e)
		default:
			j.entry = e
			spent += c.decide(j)
		}
	}
}

// takeOrphans marks the dead sessions, and then lets free workers take their runs up.
func (c *Core) takeOrphans(runs []idempotency.Run) {
	if len(runs) == 0 {
		return
	}
	var dead []int64
	for _, r := range runs {
		if !slices.Contains(dead, r.Session) {
			dead = append(dead, r.Session)
		}
	}
	s := c.session
	c.emit(newCall("MarkDead",
		func(ctx context.Context, st idempotency.Store) (struct{}, error) {
			return struct{}{}, st.MarkDead(ctx, s.Session, dead)
		},
		func(_ struct{}, err error) {
			if err == nil && c.session == s && !c.draining {
				c.backlog.left = append(slices.Clone(runs), c.backlog.left...)
			}
		}))
}

// take takes a waiting or orphaned run up.
func (c *Core) take(r idempotency.Run) {
	j, w := c.jobs[r.ID.Job], &c.workers
	orphan := r.State == idempotency.Running
	suspect := r.Crashes >= suspectCrashes || orphan && r.Crashes >= suspectCrashes-1
	if j == nil || c.sweeper.taking[r.ID] || suspect && w.suspects > 0 {
		return // where it matters, a later sweep brings it again
	}
	k, alone := keyOfJob{r.ID.Job, r.ID.Key}, j.holdsKey()
	if alone && c.backlog.taken[k] > 0 {
		c.backlog.behind[k] = append(c.backlog.behind[k], r)
		return
	}
	if alone {
		c.backlog.take(k)
	}
	w.asked[r.ID] = asked{pastOf(r), c.now.Mono}
	c.turned(j)
	c.sweeper.taking[r.ID] = true
	c.reserve(j, 1)
	if suspect {
		w.suspects++
	}
	settle := func() {
		delete(c.sweeper.taking, r.ID)
		c.reserve(j, -1)
		if suspect {
			w.suspects--
		}
	}
	free := func() {
		if alone {
			c.backlog.free(k)
		}
	}
	hedged := !orphan && !c.shareOf(j).few() && c.rank(c.partition(r.ID.Key)) > 0
	r.Term = c.termOf(j)
	c.claims.add(idempotency.Claim{ID: r.ID, Hash: j.hash, Exclusive: alone, TakeUp: true, Seen: r.Fence, Term: r.Term},
		func(_ idempotency.Claim, a idempotency.Answer) {
			settle()
			if a.Verdict == idempotency.Busy { // by another replica; what waits behind it, sweeps show
				delete(c.backlog.behind, k)
			}
			c.took(j, r, a, orphan, hedged)
			free()
		}, func(idempotency.Claim) {
			settle()
			free()
		})
}

func (c *Core) took(j *job, r idempotency.Run, a idempotency.Answer, orphan, hedged bool) {
	if a.Verdict != idempotency.Won {
		c.emit(Refused{Occurrence: c.occurrence(j, r.ID, r.Fence, r.Attempt, r.Payload), Cause: cause(a.Verdict)})
		return
	}
	c.sweeper.won = true
	before := pastOf(r)
	r.Fence, r.Attempt, r.Crashes = a.Fence, a.Attempt, a.Crashes
	if a.Payload != nil {
		r.Payload = a.Payload
	}
	if orphan {
		o := c.occurrence(j, r.ID, r.Fence, r.Attempt, r.Payload)
		o.Term = r.Term
		c.emit(TakenUp{Occurrence: o, Crashes: r.Crashes})
	}
	c.begin(j, r, before, hedged)
}

var causes = map[idempotency.Verdict]string{
	idempotency.Taken: "taken", idempotency.Busy: "busy", idempotency.Early: "early",
	idempotency.Expired: "expired", idempotency.Closed: "closed", idempotency.StaleDefinition: "stale definition",
}

func cause(v idempotency.Verdict) string { return causes[v] }
