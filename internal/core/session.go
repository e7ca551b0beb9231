package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// session is our lease in the store. It is used once: what looks lost is given
// up and never used again, even if the store still holds it for live.
type session struct {
	idempotency.Session

	sent     Instant       // when the last confirmed opening or renewal was sent
	until    Instant       // how long it is trusted by that
	declared bool          // our definitions are announced
	since    time.Duration // when they were to be announced, where they are not
	again    bool          // the jobs changed while declaring
	controls int64         // of the store, as of when our runs were last listed for it
	answered int64         // the latest Declare that was

	askedToLead bool // it has called Lead
	touching    bool // its passes are touched

	spare *renewCall
}

func (c *Core) openSession() {
	if !c.cfg.Store || c.opening || c.session != nil || c.draining || c.rolledBack != "" {
		return
	}
	c.opening = true
	sent, before := c.now, c.witness
	type opened struct {
		s idempotency.Session
		r idempotency.Renewal
	}
	ask := idempotency.Opening{
		Namespace: c.cfg.Namespace, Replica: c.cfg.Replica, Boot: c.cfg.Boot,
		Partitions: c.cfg.Partitions, Lease: c.cfg.Lease,
		Horizon: c.cfg.Horizon, Retention: c.cfg.Retention, Tolerance: c.cfg.Tolerance,
	}
	c.emit(newCall("OpenSession",
		func(ctx context.Context, st idempotency.Store) (opened, error) {
			s, r, err := st.OpenSession(ctx, ask)
			return opened{s, r}, err
		},
		func(o opened, err error) {
			switch {
			case errors.Is(err, idempotency.ErrRefused):
				c.refuse(err)
			case err != nil:
				c.openAgain(c.cfg.callTimeout() / 2)
			default:
				c.opened(o.s, o.r, sent, before)
			}
		}))
}

// openAgain makes the next attempt after a pause; until then none is made.
func (c *Core) openAgain(pause time.Duration) {
	c.after(pause, func() {
		c.opening = false
		c.openSession()
	})
}

func (c *Core) opened(s idempotency.Session, r idempotency.Renewal, sent Instant, before witness) {
	if c.store == "" {
		c.store = r.Store
	}
	if r.Store != c.store {
		c.replaced(r.Store)
		c.closeSession(s, func() {})
		c.openAgain(c.cfg.Lease)
		return
	}
	c.opening, c.foreign = false, ""
	if c.wentBack(r, before) {
		c.closeSession(s, func() {})
		c.announce()
		return
	}
	c.sample(r, sent)
	c.session = &session{Session: s, since: c.now.Mono}
	c.session.confirmed(sent, c.cfg.trustFor())
	c.emit(Renewed{Session: s.ID, Opened: true, Offset: c.offset()})
	c.compare(r, sent)
	if c.draining {
		return // checkDrained closes it
	}
	mine := c.session
	c.declare()
	c.every(c.cfg.callTimeout(), func() bool { return c.renew(mine) })
	c.every(c.cfg.Lease/2, func() bool { return c.listMine(mine) })
	c.every(c.cfg.upkeepEvery(), func() bool { return c.upkeep(mine) })
	c.every(rosterEvery, func() bool { return c.watchRoster(mine) })
}

func (c *Core) closeSession(s idempotency.Session, then func()) {
	c.emit(newCall("CloseSession",
		func(ctx context.Context, st idempotency.Store) (struct{}, error) {
			return struct{}{}, st.CloseSession(ctx, s)
		},
		func(struct{}, error) { then() })) // unanswered, the session lapses by itself
}

// maxStep is how far the store's clock may step back unnoticed.
const maxStep = time.Second

// sample takes the store's time from an answer. Where that has stepped back,
// every due waits until it has come again: safe, but somebody has to know.
func (c *Core) sample(r idempotency.Renewal, sent Instant) {
	if step := c.clock.sample(r.Now, sent.Mono, c.now.Mono); step < -maxStep {
		c.emit(SteppedBack{By: -step})
		if c.session != nil && c.session.declared { // else they are read soon anyway
			c.declare() // to see which jobs it makes wait
		}
	}
}

// offset is the store's clock minus the host's wall clock.
func (c *Core) offset() time.Duration {
	return c.storeNow().Sub(c.now.Wall).Truncate(time.Microsecond)
}

// every does f each d, until f returns false.
func (c *Core) every(d time.Duration, f func() bool) {
	var t *timer
	t = c.after(d, func() {
		if f() {
			c.set(t, d)
		}
	})
}

func (c *Core) renew(s *session) bool {
	if c.session != s {
		return false
	}
	x := s.spare
	if s.spare = nil; x == nil {
		x = &renewCall{}
	}
	*x = renewCall{Call: Call{Name: "RenewSession", call: x}, c: c, s: s, sent: c.now, before: c.witness}
	c.emit(&x.Call)
	return true
}

// renewCall renews a session, many times in its life: one is used again and again.
type renewCall struct {
	Call
	reply[idempotency.Renewal]
	c      *Core
	s      *session
	sent   Instant
	before witness
}

func (x *renewCall) do(ctx context.Context, st idempotency.Store) *Replied {
	r, err := st.RenewSession(ctx, x.s.Session)
	return x.put(&x.Call, r, err)
}

func (x *renewCall) then(r *Replied) {
	c, s := x.c, x.s
	if r == &x.Replied { // it was made, and is over
		s.spare = x
	}
	switch r, err := x.get(r); {
	case c.session != s: // given up meanwhile
	case errors.Is(err, idempotency.ErrSessionDead):
		c.lose("the store says it is dead")
	case err == nil && r.Store != c.store:
		c.lose("it is of another store")
		c.replaced(r.Store)
	case err == nil && c.wentBack(r, x.before):
		c.lose("the store was rolled back")
		c.announce()
	case err != nil:
		c.after(c.retryPause(), c.askTime) // in vain, unless a run awaits it
	case x.sent.Mono >= s.sent.Mono:
		s.confirmed(x.sent, c.cfg.trustFor())
		c.sample(r, x.sent)
		c.emit(Renewed{Session: s.ID, Offset: c.offset()})
		c.compare(r, x.sent)
		c.admitAwaiting()
	}
}

// confirmed notes when the last confirmed opening or renewal was sent. The session is trusted for a while from then, by whichever
// of the clocks comes to that first: the monotonic one stands still while a machine is suspended.
func (s *session) confirmed(sent Instant, trust time.Duration) {
	s.sent, s.until = sent, Instant{Mono: sent.Mono + trust, Wall: sent.Wall.Add(trust)}
}

// checkLease gives the session up when its last confirmed renewal is too old.
func (c *Core) checkLease() {
	s := c.session
	if s == nil {
		return
	}
	if s.until.Reached(c.now) {
		age := max(c.now.Mono-s.sent.Mono, c.now.Wall.Sub(s.sent.Wall))
		c.lose(fmt.Sprintf("not renewed for %v", age.Round(time.Millisecond)))
	}
}

// Trusted is until when this replica believes in its session, by whichever of the clocks comes to that first, unless a renewal is
// confirmed; nil: it has none.
func (c *Core) Trusted() *Instant {
	if c.session == nil {
		return nil
	}
	until := c.session.until
	return &until
}

// lose gives the session up: its handlers are canceled, its calls forgotten.
// Its runs come back as orphans, or are released by their fence when the handlers return.
func (c *Core) lose(why string) {
	s := c.session
	if s == nil {
		return
	}
	c.session = nil
	c.emit(Lost{Session: s.ID, Why: why})
	c.decides.reset()
	c.claims.reset()
	c.saves.reset()
	c.dropPasses()
	clear(c.workers.asked)
	clear(c.finished)
	clear(c.closing)
	c.sweeper.asking, c.sweeper.failed = false, 0
	c.backlog.reset()
	c.loseLead()
	c.cancelSession(s)
	c.after(0, c.openSession)
}

// declare announces our definitions and reads their entries.
func (c *Core) declare() {
	s := c.session
	c.nonce++ // an older call that comes late must not undo this one
	nonce := c.nonce
	now := c.storeNow()
	var mine []*job
	var d []idempotency.Declaration
	for _, j := range c.sortedJobs() {
		mine = append(mine, j)
		x := idempotency.Declaration{Definition: j.definition()}
		if !j.efficient() {
			x.Opened, x.Next = now, j.offerAt(now)
		}
		d = append(d, x)
	}
	call := newCall("Declare",
		func(ctx context.Context, st idempotency.Store) ([]idempotency.Entry, error) {
			return st.Declare(ctx, s.Session, nonce, d)
		},
		func(e []idempotency.Entry, err error) {
			switch {
			case c.session != s:
			case errors.Is(err, idempotency.ErrSessionDead):
				c.lose("the store says it is dead")
			case err != nil:
				c.emit(Problem{Err: fmt.Errorf("announcing %d jobs to the store failed; it is tried again, and nothing runs until it succeeds: %w", len(d), err)})
				c.after(c.retryPause(), func() {
					if c.session == s {
						c.declare()
					}
				})
			case s.again:
				s.again = false
				c.declare()
			case nonce > s.answered: // else what a later call read was seen already
				s.answered = nonce
				c.declared(s, mine, e)
			}
		})
	call.Within = c.cfg.declareTimeout()
	c.emit(call)
}

func (c *Core) declared(s *session, mine []*job, entries []idempotency.Entry) {
	s.declared = true
	for i, j := range mine {
		if c.jobs[j.Name] == j {
			c.see(j, entries[i])
		}
	}
	c.emit(Declared{Session: s.ID})
	c.tellAhead()
	c.askRoster()
	c.leader.next = c.now.Mono
	c.sweepSoon(0)
	c.announce()
}

// pruneBatch is how much of what is older than the retention is removed at a time.
const pruneBatch = 1000

// upkeepEvery is how often one replica of a cluster cleans up. Since Retire counts two minutes at most, a lease above
// that makes retiring take longer, which harms nobody; and in users' tests, where only the days matter, it costs less.
func (c Config) upkeepEvery() time.Duration { return max(time.Minute, c.Lease) }

// upkeep lets the owner of partition 0 clean up, so that one replica does.
func (c *Core) upkeep(s *session) bool {
	if c.session != s {
		return false
	}
	if !c.draining && c.rank(0) == 0 {
		c.prune(s)
		c.retire(s)
	}
	return true
}

// prune removes what is older than the retention, a batch after the other.
func (c *Core) prune(s *session) {
	if c.session != s || c.draining || c.rank(0) != 0 {
		return
	}
	c.emit(newCall("Prune",
		func(ctx context.Context, st idempotency.Store) (int, error) {
			return st.Prune(ctx, s.Session, pruneBatch)
		},
		func(n int, err error) {
			if err == nil && n >= pruneBatch && c.session == s {
				c.after(c.retryPause(), func() { c.prune(s) })
			}
		}))
}
