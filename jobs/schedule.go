package jobs

import (
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/belfry-go/belfry/jobs/internal/zone"
)

const (
	// maxTimes bounds the instants of one At.
	maxTimes = 1000
	// The instants a schedule can name: years 1 to 9999, which is what RFC 3339,
	// and so an occurrence's ID, can write.
	minUnix = -62135596800
	maxUnix = 253402300799
)

// errNone is what the zero Schedule reports.
var errNone = errors.New("no schedule; set Schedule, to jobs.Manual() for a job that only runs when it is triggered")

// Schedule decides the dues of a job: an immutable value, one pointer wide, safe
// for concurrent use. Those with the same text share one compiled form and are
// equal by ==, save what holds a Custom: it equals only itself. The zero value is
// no schedule and is refused. A mistake travels inside (Err), through whatever is
// made of the schedule, so that Job.Validate reports it with all others.
//
// Its methods read no clock, do not block, and come to an end whatever they are
// asked. Only the function of a Custom may spoil that.
type Schedule struct{ c *compiled }

type compiled struct {
	text string
	err  *mistake // then rule is nil
	rule rule
}

// Cron is a crontab line: five fields (minute, hour, day of month, month, day of
// week) or six with seconds first, or one of @hourly, @daily, @midnight,
// @weekly, @monthly, @yearly, @annually. A prefix "TZ=Europe/Berlin " (or
// "CRON_TZ=") names the zone whose wall clock it follows; without it see In. The
// package comment says what happens when clocks change.
//
// A field is a list of values, ranges a-b, and steps a-b/n or */n; months and
// weekdays have names too, in any case, and Sunday is 0 or 7. A day of the month
// may be L (the last), L-3, 15W (the weekday next to the 15th) or LW; a day of
// the week 5L (the last Friday) or 5#2 (the second one). H, H(0-29) and H/10 take
// a value from the job's name, the same on every replica, so that jobs spread
// over the hour; see For. A step as wide as its field (*/60) is an error.
//
// A day field is unrestricted by * or ?, bare or with a step of 1, alone or in a
// list: "0 0 */1 * 1" is Mondays only. Where both day fields are restricted, either
// may match. What can never happen (0 0 30 2 *) is an error.
func Cron(spec string) Schedule { return parseCron(spec) }

// Every fires each d, whole seconds and at least one, counted from the Unix
// epoch and not from when the process started: every replica computes the same
// instants. See Phase.
func Every(d time.Duration) Schedule { return newEvery(d, 0) }

// At fires at the given instants, whole seconds, at most 1,000; doubles count
// once.
func At(times ...time.Time) Schedule {
	if len(times) == 0 || len(times) > maxTimes {
		return broken("@at", fmt.Errorf("%d instants; give 1 to %d", len(times), maxTimes))
	}
	secs := make(atRule, 0, len(times))
	for _, t := range times {
		if err := checkInstant(t); err != nil {
			return broken("@at", err)
		}
		secs = append(secs, t.Unix())
	}
	slices.Sort(secs)
	secs = slices.Compact(secs)
	return intern("@at "+secs.String(), func() rule { return secs })
}

// Custom is the user's own calendar. next returns the first instant later than
// after, or the zero time for never. It must be a pure function that every replica
// computes alike: a later question never has an earlier answer. It must be safe
// for concurrent use, and quick: it is called on the loop that does everything
// else, and one that does not return stops a replica. Fractions of a second are
// rounded up. A panic counts as never. So does an answer that is not later than
// after, or past the year 9999: time cannot stand still, and so no walk over the
// dues can either. To tell such an end from one that is meant, Job.Validate asks it
// once, what comes after 1 January 2026, and reports a panic and an answer that is not
// later; one that comes up at other instants ends the schedule.
//
// name, as for a job, is all that the text and Job.Definition know of it: give a
// changed calendar a new one.
func Custom(name string, next func(after time.Time) time.Time) Schedule {
	text := "@custom " + name
	if err := checkName("name", name, MaxName); err != nil {
		return broken(text, err)
	}
	if next == nil {
		return broken(text, errors.New("nil function; give one that returns the next instant"))
	}
	// Functions have no identity, so two of the same name cannot be told apart
	// and are not interned.
	return Schedule{&compiled{text: text, rule: customRule(next)}}
}

// In sets the zone whose wall clock a Cron schedule follows, by its IANA name,
// where the schedule's own text names none: a prefix wins. Without either it is
// UTC. Of a combined schedule it sets that of each Cron inside. An Every, an At
// and a Custom follow no wall clock and stay as they are, and so do the instants
// of From and Until.
func (s Schedule) In(name string) Schedule {
	if s.fault() != nil {
		return s
	}
	if _, err := zone.Load(name); err != nil {
		return broken(s.c.text, err)
	}
	return s.mapped(func(leaf Schedule) Schedule {
		if r, ok := leaf.cron(); ok && r.zone == "" {
			return parseCron("TZ=" + name + " " + leaf.c.text)
		}
		return leaf
	})
}

// For is the schedule with each H of its text replaced by what name hashes to.
// Job.WithDefaults does it with the job's name. Before it, a schedule that has an
// H has no dues at all. One without an H stays as it is.
func (s Schedule) For(name string) Schedule {
	if s.fault() != nil {
		return s
	}
	return s.mapped(func(leaf Schedule) Schedule {
		r, ok := leaf.cron()
		if !ok || !r.Hashed() {
			return leaf
		}
		text := r.Resolve(name).String()
		if r.zone != "" {
			text = "TZ=" + r.zone + " " + text
		}
		return parseCron(text)
	})
}

// cron is the rule of a crontab line.
func (s Schedule) cron() (cronRule, bool) {
	switch r := s.c.rule.(type) {
	case cronRule:
		return r, true
	case hashedRule:
		return r.line, true
	}
	return cronRule{}, false
}

// Phase moves an Every by d, whole seconds, any sign, taken modulo its interval:
// Every(time.Hour).Phase(10*time.Minute) fires at ten past. It replaces an
// earlier phase. On any other schedule it is an error.
func (s Schedule) Phase(d time.Duration) Schedule {
	if s.fault() != nil {
		return s
	}
	switch r := s.c.rule.(type) {
	case everyRule:
		return newEvery(time.Duration(r.step)*time.Second, d)
	case *treeRule:
		return broken(s.c.text, errors.New("only Every has a phase; give it to each Every before they are combined"))
	}
	return broken(s.c.text, errors.New("only Every has a phase; write the minute and second into the spec"))
}

// Err is what is wrong with the schedule, or nil. The zero Schedule is wrong.
func (s Schedule) Err() error { return prefix(s.fault()) }

// fault is Err without the package prefix.
func (s Schedule) fault() error {
	if s.c == nil {
		return errNone
	}
	if s.c.err == nil {
		return nil
	}
	return s.c.err
}

// String is the schedule's text, which ParseSchedule reads back, save for a
// Custom. It is "" for the zero value, and the text as given for a wrong one.
func (s Schedule) String() string {
	if s.c == nil {
		return ""
	}
	return s.c.text
}

// Next returns the first due strictly after the given instant, UTC and whole
// seconds; false means never, which is also the answer of a wrong schedule.
func (s Schedule) Next(after time.Time) (time.Time, bool) {
	if s.fault() != nil {
		return time.Time{}, false
	}
	sec, ok := s.c.next(after.Unix())
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(sec, 0).UTC(), true
}

// next holds every rule to its promise: later than after, and within the years
// that can be written.
func (c *compiled) next(after int64) (int64, bool) {
	if after >= maxUnix {
		return 0, false
	}
	after = max(after, minUnix-1)
	sec, ok := c.rule.next(after)
	return sec, ok && sec > after && sec <= maxUnix
}

// Prev returns the last due strictly before the given instant, UTC and whole
// seconds; false where there is none. A Custom is asked some 60 times for it.
func (s Schedule) Prev(before time.Time) (time.Time, bool) {
	if s.fault() != nil {
		return time.Time{}, false
	}
	sec := before.Unix()
	if before.Nanosecond() > 0 && sec < maxUnix {
		sec++
	}
	if sec <= minUnix {
		return time.Time{}, false
	}
	sec, ok := s.c.rule.prev(min(sec, maxUnix+1))
	if !ok || sec < minUnix {
		return time.Time{}, false
	}
	return time.Unix(sec, 0).UTC(), true
}

// All yields the dues in (from, to], ascending: nothing where from is not before to,
// or the schedule is wrong.
func (s Schedule) All(from, to time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for due, ok := s.Next(from); ok && !due.After(to) && yield(due); {
			due, ok = s.Next(due)
		}
	}
}

// Count is the number of dues in (from, to]: 0 where from is not before to, or the
// schedule is wrong. What walks for it walks them all; see Tally.
func (s Schedule) Count(from, to time.Time) int64 {
	n, _ := s.Tally(from, to, math.MaxInt)
	return n
}

// Tally counts the dues in (from, until]. A Custom, and some combinations of
// many dues, have to walk their dues, and those that are excluded: they give up
// after about that many steps, one or more, and until is how far they came, always
// later than from. All others take no step for a due, and so until is to. So it is
// where from is not before to, or the schedule is wrong: n is 0 then.
func (s Schedule) Tally(from, to time.Time, steps int) (n int64, until time.Time) {
	if s.fault() != nil {
		return 0, to
	}
	first, last := bounded(from), bounded(to)
	if first >= last {
		return 0, to
	}
	n, sec := s.c.rule.tally(first, last, steps)
	if sec < last {
		return n, time.Unix(sec, 0).UTC()
	}
	return n, to
}

// bounded is the second that the instant is in, within the years that can be written.
func bounded(t time.Time) int64 { return min(max(t.Unix(), minUnix-1), maxUnix) }

// checkInstant says what is wrong with an instant given for a schedule.
func checkInstant(t time.Time) error {
	if sec := t.Unix(); t.Nanosecond() != 0 || sec < minUnix || sec > maxUnix {
		return fmt.Errorf("%v is not a whole second of the years 1 to 9999; truncate it", t)
	}
	return nil
}

// ZoneVersion names the zone data that Cron schedules follow, such as 2025c; it is
// zoneinfo- and 12 digits of a hash where ZONEINFO names other data. Replicas with
// another version may differ in their dues where a country changed its clocks.
//
// The data is the program's own. The variable ZONEINFO may name newer: a directory
// or a zip file of zones, which are laid over it. All is read from disk once, when a
// zone or the version is first needed, and kept.
func ZoneVersion() string { return zone.Version() }

// ZoneErr is why the data that ZONEINFO names could not be read, so that the
// program's own is in use; nil where it was read, or ZONEINFO is not set.
func ZoneErr() error { return prefix(zone.Err()) }
