package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// noter says where a clock that was changed had to do with a due.
type noter struct {
	loc *time.Location
	// wall is the schedule by a clock that is never changed, which tells what readings it names. Only a lone crontab line
	// has one.
	wall jobs.Schedule
}

func newNoter(s jobs.Schedule, loc *time.Location) noter {
	n := noter{loc: loc}
	if line, ok := strings.CutPrefix(s.String(), "TZ="+loc.String()+" "); ok {
		n.wall = jobs.Cron(line)
	}
	return n
}

// longGap is more than a day and all that a clock was ever set by: a longer gap says nothing by its length.
const longGap = 49 * time.Hour

// note is about the due t, which follows the due before.
func (n noter) note(before, t time.Time) string {
	switch was, is := n.offset(t.Add(-time.Second)), n.offset(t); {
	case is > was:
		return n.jumped(t, was, is)
	case n.otherReading(t, -1):
		return fmt.Sprintf("the second %s, after the clock was set back", n.reading(t))
	case n.otherReading(t, 1):
		return fmt.Sprintf("the first %s, before the clock is set back", n.reading(t))
	}
	shift := n.offset(t) - n.offset(before)
	if shift == 0 {
		return ""
	}
	how := "forward"
	if shift < 0 {
		how = "back"
	}
	text := fmt.Sprintf("the clock was set %s by %s", how, brief(shift.Abs()))
	if gap := t.Sub(before); gap <= longGap {
		return fmt.Sprintf("%s after the one before: %s", brief(gap), text)
	}
	return text + " since the one before"
}

// jumped is the note on a due at the very instant at which the clock jumps.
func (n noter) jumped(t time.Time, was, is time.Duration) string {
	from, to := wallOf(t, was), wallOf(t, is)
	jump := fmt.Sprintf("jumps from %s to %s", short(from, to), short(to, from))
	if n.wall.Err() != nil {
		return "the clock " + jump
	}
	real, ok := n.wall.Next(to.Add(-time.Second))
	if ok && real.Equal(to) {
		return "the clock " + jump
	}
	skipped, _ := n.wall.Next(from.Add(-time.Second))
	text := "in place of " + short(skipped, to)
	if more := n.wall.Count(skipped, to.Add(-time.Second)); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text + ": the clock " + jump
}

// otherReading says whether the clock shows the same once more: earlier, for -1, or later.
func (n noter) otherReading(t time.Time, direction int) bool {
	// Clocks are set back by a day at most.
	other := t.Add(n.offset(t) - n.offset(t.Add(time.Duration(direction)*25*time.Hour)))
	return !other.Equal(t) && wallOf(other, n.offset(other)).Equal(wallOf(t, n.offset(t)))
}

func (n noter) offset(t time.Time) time.Duration {
	_, seconds := t.In(n.loc).Zone()
	return time.Duration(seconds) * time.Second
}

func (n noter) reading(t time.Time) string {
	w := wallOf(t, n.offset(t))
	return short(w, w)
}

// wallOf is what a clock shows, as if it were UTC.
func wallOf(t time.Time, offset time.Duration) time.Time { return t.UTC().Add(offset) }

// short writes a reading, with its date if that is another one than that of beside.
func short(wall, beside time.Time) string {
	text := wall.Format("15:04")
	if wall.Second() != 0 {
		text = wall.Format("15:04:05")
	}
	if wall.Format(time.DateOnly) != beside.Format(time.DateOnly) {
		text = wall.Format(time.DateOnly) + " " + text
	}
	return text
}

// brief writes 1h, 23h30m and 45s.
func brief(d time.Duration) string {
	text := d.String()
	if d%time.Minute == 0 {
		text = strings.TrimSuffix(text, "0s")
	}
	if d%time.Hour == 0 {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}
