package core

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// wall is what the host's wall clock did. Efficiency jobs run by it, and it may be set at any time: by a time
// service after the start, by hand, or for a moment to a wrong century. While it goes evenly it makes a span; each
// step begins another.
type wall struct {
	span
	looked time.Duration // when it was looked at last
	past   []span        // earlier ones, newest last; at most maxSpans
}

// span is wall time that went by evenly: every due in (from, to] was looked at here when it came, of
// each job that was there then.
type span struct {
	from, to time.Time
	origin   time.Time     // what the wall clock says when the monotonic one says 0
	began    time.Duration // by the monotonic clock; after a step forward that is later than from
}

const (
	// wallStep is by how much the wall clock may leave the monotonic one before that counts as a step. What it
	// steps back by less than this moves no due: a job's next due stays as it was computed.
	wallStep = time.Second

	// maxSpans bounds what is remembered of a clock that steps all the time; the oldest is forgotten first.
	maxSpans = 16
)

// watchWall looks whether the wall clock was set. Steps forward, and the end of a suspension, need no more than to
// be known: what was due meanwhile is late. After a step back the next dues lie too far ahead, and are computed anew.
func (c *Core) watchWall() {
	w, now := &c.wall, c.now.Wall
	origin, looked := now.Add(-c.now.Mono), w.looked
	w.looked = c.now.Mono
	if w.origin.IsZero() {
		w.span = span{from: now, to: now, origin: origin, began: c.now.Mono}
		return
	}
	step := origin.Sub(w.origin)
	if step.Abs() < wallStep {
		if now.After(w.to) {
			w.to = now
		}
		return
	}
	if w.past = append(w.past, w.span); len(w.past) > maxSpans {
		w.past = slices.Delete(w.past, 0, 1)
	}
	from := w.to // after a step on, what has come since runs if it is not too late
	if step < 0 {
		from = now.Add(looked - c.now.Mono) // it was set since then
	} else if late := now.Add(-c.cfg.MissedAfter); late.After(from) {
		from = late
	}
	w.span = span{from: from, to: now, origin: origin, began: c.now.Mono}
	c.emit(WallStepped{By: step.Round(time.Millisecond)})
	if step > 0 {
		return
	}
	for _, j := range c.jobs {
		if j.efficient() {
			c.wallDues.set(j, c.nextLocal(j, from))
		}
	}
}

// covered is up to where the dues from due on have been looked at already, for a job that is there since then; zero:
// due has not been.
func (w *wall) covered(due time.Time, since time.Duration) (until time.Time) {
	for _, s := range w.past {
		from := s.from
		if since > s.began {
			from = s.origin.Add(since)
		}
		if due.After(from) && !due.After(s.to) && s.to.After(until) {
			until = s.to
		}
	}
	return until
}

// nextLocal is when to look at an efficiency job next: at its first start after an instant that has not had its time
// here; zero: never. A replica that was not the owner then leaves it out as well: the owner of then ran it.
func (c *Core) nextLocal(j *job, after time.Time) time.Time {
	for range maxSpans + 1 {
		start := j.look(after)
		if start.IsZero() {
			return start
		}
		until := c.wall.covered(start, j.since)
		if until.IsZero() {
			return start
		}
		after = until
	}
	return time.Time{} // not reached: each turn leaves one span behind
}

// maxSkew is how far the host's clock may be from the store's without a word; it is fine again below skewFine.
// While it is not, that is said each skewEvery.
const (
	maxSkew   = time.Second
	skewFine  = 3 * time.Second / 4
	skewEvery = 10 * time.Minute
)

// skew is what was said of the difference between the two clocks.
type skew struct {
	told bool
	next time.Duration // when to say it again
}

// compare looks at the difference after an answer of the store. That was read at an unknown instant between the sending
// and the receiving, so the difference is only known to lie between two bounds: it counts as large where both are, as
// small where both are, and a slow answer proves nothing.
func (c *Core) compare(r idempotency.Renewal, sent Instant) {
	low, high := c.offset(), r.Now.Sub(sent.Wall)
	surely := max(low, -high, 0) // at least so far apart
	s := &c.skew
	switch {
	case surely > maxSkew && (!s.told || c.now.Mono >= s.next):
		s.told, s.next = true, c.now.Mono+skewEvery
		c.emit(Skewed{Offset: c.offset()})
	case s.told && max(-low, high) < skewFine:
		s.told = false
		c.emit(Skewed{Offset: c.offset(), Fine: true})
	}
}

// maxNamed bounds how many jobs one text names.
const maxNamed = 10

// tellAhead tells of jobs that are opened up to an instant which the store's clock has not reached: it was ahead when
// they were. Their dues up to there count as decided, and what is decided never is again, since the rows which would
// tell what ran may be gone. So they are silent until then, and somebody has to know. Each is told once.
func (c *Core) tellAhead() {
	var names []string
	var until time.Time
	limit := c.storeNow().Add(c.cfg.Lease) // the estimate may be behind by what a call takes
	for _, j := range c.sortedJobs() {
		if j.efficient() || !j.entry.Opened.After(limit) || j.entry.Opened.Equal(j.told) {
			continue
		}
		j.told = j.entry.Opened
		names = append(names, j.Name)
		if j.told.After(until) {
			until = j.told
		}
	}
	if len(names) == 0 {
		return
	}
	more := ""
	if n := len(names); n > maxNamed {
		names, more = names[:maxNamed], fmt.Sprintf(" and %d more", n-maxNamed)
	}
	c.emit(Problem{Err: fmt.Errorf("the store's clock was ahead, or is behind now: it says %s, and up to %s all dues count as decided of the jobs %s%s, which are silent until then; "+
		"set that clock right if it is behind; if it was ahead, for less time than Retention, put opened and next in these jobs' rows of belfry_entry back to now",
		c.storeNow().Format(time.RFC3339), until.Format(time.RFC3339), strings.Join(names, ", "), more)})
}
