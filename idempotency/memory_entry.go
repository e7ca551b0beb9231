package idempotency

import (
	"context"
	"slices"
	"time"
)

// entry is an entry's row, with the nonce under which each session last won a
// decision of it.
type entry struct {
	Entry
	won         map[int64]int64
	unannounced time.Duration // as Retire has counted
}

// Declare announces definitions; see Entries.
func (m *Memory) Declare(ctx context.Context, s Session, nonce int64, d []Declaration) (entries []Entry, err error) {
	if err := CheckDeclarations(d); err != nil {
		return nil, err
	}
	err = m.with(ctx, s, func(c *call) error {
		if nonce >= c.by.declared {
			c.by.declared = nonce
			c.by.defs = make(map[string]Definition, len(d))
			for _, x := range d {
				c.declare(x)
			}
			c.census.outdated = true
		}
		entries = make([]Entry, len(d))
		for i, x := range d {
			entries[i] = c.entry(x.Job)
		}
		return nil
	})
	return entries, err
}

func (c *call) declare(d Declaration) {
	c.by.defs[d.Job] = d.Definition
	if at := (jobHash{d.Job, d.Hash}); c.seen[at] == 0 {
		c.seen[at] = c.m.draw()
	}
	opened := instant(d.Opened)
	if opened.After(c.now.Add(c.by.Tolerance)) {
		opened = c.now
	}
	if e := c.entries[d.Job]; e != nil {
		c.redeclare(e, opened, instant(d.Next))
		return
	}
	e := &entry{Entry: Entry{Definition: d.Definition, Opened: opened}, won: make(map[int64]int64)}
	c.entries[d.Job] = e
	c.offer(e, instant(d.Next))
}

// redeclare is for a job that has an entry. Opened never moves back here either.
func (c *call) redeclare(e *entry, opened, next time.Time) {
	was := e.Opened
	e.unannounced = 0
	if (was.IsZero() || !e.Retired.IsZero()) && opened.After(was) {
		e.Opened = opened
		c.offer(e, next)
	}
	from := was.Add(time.Second).Truncate(time.Second) // a due at its old Opened was decided
	if !e.Retired.IsZero() && !was.IsZero() && !from.After(e.Opened) {
		c.record(Range{Job: e.Job, From: from, To: e.Opened, Count: 1, Outcome: Missed, Reason: "retired"})
	}
	e.Retired = time.Time{}
}

// entry returns the job's entry as callers see it.
func (c *call) entry(job string) Entry {
	c.count(c.now)
	e := c.entries[job]
	if e == nil {
		return Entry{}
	}
	return e.Entry
}

// Decide moves entries on; see Entries.
func (m *Memory) Decide(ctx context.Context, s Session, nonce int64, d []Decision) (decided []Decided, err error) {
	if err := CheckDecisions(d); err != nil {
		return nil, err
	}
	err = m.with(ctx, s, func(c *call) error {
		decided = make([]Decided, len(d))
		for i, x := range d {
			decided[i] = c.decide(x, holder{c.by.id, nonce})
		}
		return nil
	})
	return decided, err
}

func (c *call) decide(d Decision, by holder) Decided {
	e := c.entries[d.Job]
	won := e != nil
	if won {
		nonce, again := e.won[by.session]
		switch {
		case again && nonce == by.nonce:
		case c.wins(e, d):
			c.write(e, d, by)
		default:
			won = false
		}
	}
	x := Decided{Won: won, Entry: c.entry(d.Job)}
	if won && !d.Keyed {
		x.Runs = c.decidedRuns(e, d, by)
	}
	return x
}

// wins tests what a decision is conditional on.
func (c *call) wins(e *entry, d Decision) bool {
	seen := d.Seen
	return e.Key == seen.Key && e.Hash == seen.Hash && e.Opened.Equal(instant(seen.Opened)) &&
		e.PausedFrom.Equal(instant(seen.PausedFrom)) && e.PausedUntil.Equal(instant(seen.PausedUntil)) &&
		(instant(d.Opened).Equal(e.Opened) || d.Opened.After(e.Opened) && !d.Opened.After(c.now.Add(c.by.Tolerance))) &&
		c.by.announced(d.Job, d.Hash) && (d.Hash == e.Hash || d.Hash == c.entry(d.Job).InForce)
}

// write writes a decision that is won.
func (c *call) write(e *entry, d Decision, by holder) {
	e.won[by.session] = by.nonce
	c.census.outdated = c.census.outdated || d.Hash != e.Hash
	e.Definition, e.Opened = d.Definition, instant(d.Opened)
	c.offer(e, instant(d.Next))
	for _, r := range d.Ranges {
		c.record(r)
	}
	if d.Keyed {
		for _, due := range d.Run {
			if c.keyed[jobDue{d.Job, due.Unix()}] == nil { // one that a person skipped stays so
				c.openKeyed(d.Job, instant(due), c.now, d.CatchUp)
			}
		}
		return
	}
	c.writeRuns(e, d, by)
}

// writeRuns writes the runs of a decision about a job without keys.
func (c *call) writeRuns(e *entry, d Decision, by holder) {
	id := ID{Job: d.Job, Key: e.runKey()}
	holder := c.exclusive[keyOf(id)] // before this decision wrote any
	held := holder != nil
	others := slices.Clone(c.waiting[keyOf(id)])
	overtakes := held && !d.CatchUp && d.Overlap == OverlapCancel
	skips := held && !d.CatchUp && (d.Overlap == OverlapSkip || d.Overlap == OverlapQueue && len(others) > 0)
	parallel := d.Overlap == OverlapAllow && !(held && d.CatchUp)
	claims := 0
	for _, due := range d.Run {
		id.Due = due
		if c.row(id) != nil {
			continue
		}
		r := c.insert(id, by)
		newer := held && holder.ID.Due.After(due)
		switch {
		case skips && !newer:
			c.apply(r, Finish{Outcome: Skipped, Reason: "overlap"}, c.now)
		case claims < d.Claim && (parallel || !held && !c.busy(id)):
			c.run(r, by.nonce, !parallel, d.Term)
			claims++
		default:
			c.apply(r, Finish{Outcome: Wait, Wake: c.now}, c.now)
			if overtakes && !newer {
				c.overtake(id, others, c.now)
			}
		}
	}
}

// decidedRuns are the rows that the decision wrote and nobody claimed since.
func (c *call) decidedRuns(e *entry, d Decision, by holder) []Run {
	id := ID{Job: d.Job, Key: e.runKey()}
	var runs []Run
	for _, due := range d.Run {
		id.Due = due
		if r := c.row(id); r != nil && r.by == by {
			runs = append(runs, r.Run)
		}
	}
	return runs
}

// runKey is the key of the entry's runs, and what its partition comes from.
func (e *Entry) runKey() string {
	if e.Key != "" {
		return e.Key
	}
	return e.Job
}
