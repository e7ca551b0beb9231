package core

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// leader is what this replica knows of who leads, and its own part in it.
//
// Who leads is the leader's row of the store, whoever elects: it is bound to a session, so that what ends the session ends the
// leadership, here in the same Step. A call of Lead that is answered with our own session begins a term; nothing else does. There is one call about
// the row under way at a time, so that no answer is older than what was done since; but one that was not answered may still happen. So the row is looked at
// for as long as the session lives that has ever called Lead: where it names us and we do not lead, we take the term, or resign it.
//
// With an elector only whom it has elected calls Lead, in the elector's term; the others read. Without a store the elector's
// word is enough. A store that has anything for a leader to do knows leaders.
type leader struct {
	jobs  []*job // of the leader, by name
	roles bool   // it has something to do beside jobs

	term int64              // in which we lead; 0: we do not
	row  idempotency.Leader // who leads, as read last; without a row, our own last term
	read time.Duration      // when that was asked for

	nobody bool          // leads, since noneAt, as far as read
	noneAt time.Duration // when that was asked for first

	standing bool  // the elector may elect us
	elected  int64 // the term in which it has; 0: none, or one that is over for it too. Where we do not stand it is only waited out
	pause    time.Duration

	asking     bool // a call about the row is under way
	asksToLead bool // it is a Lead
	asked      time.Duration
	next       time.Duration // when to make the next one
	yields     int           // how often what the leader does beside jobs was ended and has not answered
	yielding   int           // which of these is waited for; 0: none
	resign     *resigning

	told          ledAs
	alone, others *share // of the leader's jobs: where we lead, and where we do not
	lacks         lacks
}

// resigning is a term that we have given up, and that the store does not know of yet.
type resigning struct {
	term    int64
	why     string
	tries   int
	calling bool
}

// ledAs is what of an observation makes it a new one.
type ledAs struct {
	term, session int64
	over, mine    bool
}

func (j *job) ofLeader() bool { return j.Placement == jobs.Leader }

// setLeader takes note of what there is to do for a leader.
func (c *Core) setLeader(roles bool) {
	l := &c.leader
	l.jobs, l.roles = nil, roles
	for _, j := range c.sortedJobs() {
		if j.handed = j.handed && j.ofLeader(); j.ofLeader() {
			l.jobs = append(l.jobs, j)
		}
	}
	c.dropHeld()
}

// cannotLead says why this replica cannot lead; empty: it can.
func (c *Core) cannotLead() string {
	l := &c.leader
	switch {
	case c.draining:
		return c.stopping
	case len(l.jobs) == 0 && !l.roles:
		return "it has nothing for a leader to do"
	case len(c.ranks) == 0 || empty(c.ranks[0]):
		return "it owns nothing in the ring"
	case c.cfg.Store && c.session == nil:
		return "its session ended"
	}
	return c.inName()
}

// inName says which call of the store, of those that a leader needs, has failed for a Lease; empty: none has. Who renews its session
// and gets Lead answered, but not that call, would lead in name only, and for ever.
//
// It is made again and again, whoever leads, and until it is answered we do not stand again. So a replica that ails leaves the lead to the others; and
// where a call fails for all of them, each leads for a Lease, and then nobody does: they do not pass it around.
func (c *Core) inName() string {
	call := ""
	switch s := c.session; {
	case s == nil:
	case !s.declared && c.now.Mono-s.since >= c.cfg.Lease:
		call = "Declare"
	case c.sweeper.ails(c):
		call = "Lagging"
	case c.decides.ails(c):
		call = c.decides.name
	case c.claims.ails(c):
		call = c.claims.name
	case c.saves.ails(c):
		call = c.saves.name
	}
	if call == "" {
		return ""
	}
	return fmt.Sprintf("the store has not answered its %s for %v", call, c.cfg.Lease)
}

// mayLead says that this replica would lead if it were the one.
func (c *Core) mayLead() bool {
	l := &c.leader
	return c.cannotLead() == "" && l.yielding == 0 && l.resign == nil &&
		(!c.cfg.Elector || l.standing && l.elected != 0)
}

// lead does what there is to do about who leads. It comes after the events of a Step, and before anything starts.
func (c *Core) lead() {
	l := &c.leader
	switch why := c.cannotLead(); {
	case why != "" && l.term != 0:
		c.giveUp(why)
	case why != "":
		c.stand(false)
	case l.yielding == 0 && l.resign == nil && l.elected == 0 && c.now.Mono >= l.pause && (c.ready() || !c.cfg.Store):
		c.stand(true)
	}
	if !c.cfg.Store && l.term == 0 && c.cfg.Elector && c.mayLead() {
		c.beginLead(idempotency.Leader{Term: l.elected, Replica: c.cfg.Replica, Since: c.now.Wall})
	}
	c.askLeader()
	c.handOver()
}

func (c *Core) stand(on bool) {
	if l := &c.leader; c.cfg.Elector && l.standing != on {
		l.standing = on
		c.emit(Stand{On: on})
	}
}

// chosen takes a term of the elector.
func (c *Core) chosen(e Elected) {
	l := &c.leader
	if l.term != 0 { // Deposed was to come first
		c.giveUp("it was elected anew")
	}
	l.elected, l.next = e.Term, c.now.Mono
}

func (c *Core) deposed(e Deposed) {
	l := &c.leader
	if l.elected != e.Term {
		return
	}
	l.elected = 0
	if l.term != 0 {
		c.giveUp(shorten(e.Why, maxReason))
	}
}

// looksForLeader says that the row matters here.
func (c *Core) looksForLeader() bool {
	l, s := &c.leader, c.session
	return s != nil && (s.askedToLead || c.ready() && (len(l.jobs) > 0 || l.roles))
}

// askLeader asks who leads, each Sweep and when a hint says so; and so as to be the one, where we may.
func (c *Core) askLeader() {
	l, s := &c.leader, c.session
	if l.asking || l.resign != nil || c.now.Mono < l.next || !c.looksForLeader() {
		return
	}
	l.asking, l.asked, l.next = true, c.now.Mono, c.now.Mono+c.cfg.Sweep
	l.asksToLead = c.ready() && c.mayLead()
	name, term := "Leader", l.elected
	if l.asksToLead {
		name, s.askedToLead = "Lead", true
	}
	asksToLead := l.asksToLead
	c.emit(newCall(name,
		func(ctx context.Context, st idempotency.Store) (idempotency.Leader, error) {
			if asksToLead {
				return st.(idempotency.Leaders).Lead(ctx, s.Session, term)
			}
			return st.(idempotency.Leaders).Leader(ctx, s.Namespace)
		},
		func(row idempotency.Leader, err error) {
			if c.session != s {
				return
			}
			l.asking = false
			switch {
			case errors.Is(err, idempotency.ErrSessionDead):
				c.lose("the store says it is dead")
			case err == nil:
				c.sawLeader(s, row)
			}
			c.tryResign()
		}))
}

// hintLeader has the row looked at soon, but like a sweep not more often than hints matter.
func (c *Core) hintLeader() {
	l := &c.leader
	l.next = min(l.next, max(c.now.Mono, l.asked+HintEvery))
}

// sawLeader takes the row as the store has just answered it.
func (c *Core) sawLeader(s *session, row idempotency.Leader) {
	l := &c.leader
	before := l.row
	l.row, l.read = row, l.asked
	lives := row.Term != 0 && row.Until.IsZero()
	ours := lives && row.Session == s.ID
	if lives == l.nobody {
		l.nobody, l.noneAt = !lives, l.asked
	}
	switch {
	case ours && l.term == row.Term:
	case ours && l.term == 0 && c.mayLead():
		if row.Term < l.elected { // that Lead was of an earlier term, and came late
			l.next = c.now.Mono
			return
		}
		c.beginLead(row)
	case ours:
		if l.term == 0 && l.resign == nil {
			l.resign = &resigning{term: row.Term, why: c.cannotLead()}
		}
		return // it is as good as over
	case l.term != 0:
		c.endLead()
		c.standAgain()
	case lives && row.Term >= l.elected:
		c.standAgain()
	}
	if row.Session != before.Session || !row.Until.Equal(before.Until) {
		c.leaderChanged()
	}
	c.tellLed(row)
}

// standAgain has the elector elect anew, where somebody leads in a term that is not below ours: so a later one has a higher term.
func (c *Core) standAgain() {
	l := &c.leader
	if l.elected != 0 && l.standing {
		l.pause = c.now.Mono + c.cfg.callTimeout()
		c.stand(false)
	}
}

func (c *Core) beginLead(row idempotency.Leader) {
	l := &c.leader
	l.term, l.row = row.Term, row
	c.emit(Lead{Term: l.term})
	c.leaderChanged()
	c.tellLed(row)
}

// endLead ends our term here. What the leader does beside jobs ends too, for which the next leader is kept waiting, but not for long.
func (c *Core) endLead() {
	l := &c.leader
	l.term = 0
	l.yields++
	l.yielding = l.yields
	c.emit(Lead{})
	mine := l.yielding
	c.after(c.cfg.Lease/2, func() {
		if l.yielding == mine {
			c.yieldedAll()
		}
	})
	c.leaderChanged()
}

// giveUp ends our term, and lets another replica have the next one.
func (c *Core) giveUp(why string) {
	l := &c.leader
	over := l.row
	over.Why, over.Until = "resigned: "+why, c.now.Wall
	if c.cfg.Store {
		over.Until = c.storeNow()
		l.resign = &resigning{term: l.term, why: why}
	}
	c.endLead()
	c.stand(false)
	if !c.cfg.Store {
		l.row = over
	}
	c.tellLed(over)
}

// loseLead ends our term with our session: there is nothing to resign, for the store ends it too.
func (c *Core) loseLead() {
	l := &c.leader
	l.asking, l.resign = false, nil
	if l.term != 0 {
		over := l.row
		over.Why, over.Until = "its session ended", c.storeNow()
		c.endLead()
		c.tellLed(over)
	}
	c.stand(false)
}

// yielded takes the end of what the leader did beside jobs. After a term in which that took too long, the answers for the
// terms before it come late.
func (c *Core) yielded() {
	l := &c.leader
	if l.yields--; l.yields == 0 {
		c.yieldedAll()
	}
}

func (c *Core) yieldedAll() {
	c.leader.yielding = 0
	c.tryResign()
}

// tryResign tells the store that our term is over, once nothing of it goes on: no role, and no Lead that might be answered yet.
func (c *Core) tryResign() {
	l, s := &c.leader, c.session
	r := l.resign
	if r == nil || s == nil || r.calling || l.asking || l.yielding != 0 {
		return
	}
	r.calling = true
	c.emit(newCall("Resign",
		func(ctx context.Context, st idempotency.Store) (struct{}, error) {
			return struct{}{}, st.(idempotency.Leaders).Resign(ctx, s.Session, r.term, r.why)
		},
		func(_ struct{}, err error) {
			if c.session != s {
				return
			}
			if r.calling = false; err != nil {
				r.tries++
				c.after(c.retryPause(), c.tryResign)
				return
			}
			l.resign = nil
			l.next = c.now.Mono
			c.hintAll()
		}))
}

// leftLead says that nothing of our last term keeps us from leaving. Where the store does not take that we resign, the end of our session
// says the same.
func (c *Core) leftLead() bool {
	l := &c.leader
	return l.term == 0 && l.yielding == 0 && !(l.asking && l.asksToLead) && (l.resign == nil || l.resign.tries >= enough)
}

// tellLed tells who leads, or led last, where that is news.
func (c *Core) tellLed(row idempotency.Leader) {
	l := &c.leader
	as := ledAs{row.Term, row.Session, !row.Until.IsZero(), l.term != 0}
	if row.Term != 0 && as != l.told {
		l.told = as
		c.emit(Led{Leader: row, Mine: as.mine})
	}
}
