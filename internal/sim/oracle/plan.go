package oracle

import (
	"fmt"
	"slices"
	"time"
)

// Choice is what a process says of the dues of a job, beside their schedule.
type Choice struct {
	Keep   int           // so many of its late dues run, the newest
	Reason string        // why the others of them do not
	MaxAge time.Duration // how old a late due may be and still run; 0: as old as it likes
	Spread time.Duration // over how long the starts of a due are spread
}

// chosen is what a process has of a job.
type chosen struct{ boot, job, hash string }

// Has tells that a process has a job in a definition, and what it chose beside that. Where it is told so twice the process has changed
// the choice, and what it decided before may come to the store later.
func (o *Oracle) Has(boot, job, hash string, c Choice) {
	id := chosen{boot, job, hash}
	if !slices.Contains(o.choices[id], c) {
		o.choices[id] = append(o.choices[id], c)
	}
}

// fate is what becomes of a due.
type fate struct {
	outcome Outcome // None: it runs
	reason  string
}

// String says what becomes of the due, behind its name.
func (f fate) String() string {
	if f.outcome == None {
		return "runs"
	}
	return fmt.Sprintf("is %v (%s)", f.outcome, f.reason)
}

var paused = fate{Skipped, "paused"}

// planned demands that a decision speaks of each due of its stretch once, and of nothing else, and that each has the fate which one of
// the choices of its process has for it.
func (o *Oracle) planned(j *job, d *Decision) {
	s, known := o.schedules[d.SeenHash]
	choices := o.choices[chosen{o.boot(d.Session), d.Job, d.Hash}]
	switch {
	case !known:
		o.fail("I2", "job %s: a decision by the unknown definition %q", d.Job, d.SeenHash)
		return
	case len(choices) == 0:
		o.fail("I2", "job %s: session %d decides for the definition %q, which its process never had", d.Job, d.Session, d.Hash)
		return
	}
	dues := s.dues(o.room.dues[:0], d.SeenOpened.Unix(), d.Open.Unix())
	o.room.dues = dues
	told, ok := o.fatesOf(d, dues)
	if !ok {
		return
	}
	var law, text string
	for _, c := range choices {
		if law, text = o.wrong(j, d, c, dues, told); law == "" {
			return
		}
	}
	o.fail(law, "job %s: %s", d.Job, text)
}

// planning is room for what planned makes of each decision.
type planning struct {
	dues       []int64
	said       []bool // whether the decision speaks of each of them
	told, want []fate
}

// fatesOf are those that a decision gives to the dues.
func (o *Oracle) fatesOf(d *Decision, dues []int64) (fates []fate, ok bool) {
	before := len(o.violations)
	fates = append(o.room.told[:0], make([]fate, len(dues))...)
	said := append(o.room.said[:0], make([]bool, len(dues))...)
	o.room.told, o.room.said = fates, said
	for _, t := range d.Run {
		i, due := slices.BinarySearch(dues, t)
		if !due || said[i] {
			o.fail("I2", "job %s: due %d runs; it is none of (%v, %v], or was decided twice", d.Job, t, d.SeenOpened, d.Open)
			continue
		}
		said[i] = true
	}
	for _, r := range d.Ranges {
		var n int64
		for i, t := range dues {
			if t >= r.From && t <= r.To && !said[i] {
				said[i], fates[i] = true, fate{r.Outcome, r.Reason}
				n++
			}
		}
		if n != r.Count {
			o.fail("I2", "job %s: range [%d, %d] counts %d dues, it covers %d", d.Job, r.From, r.To, r.Count, n)
		}
		if !slices.Contains(dues, r.From) || !slices.Contains(dues, r.To) {
			o.fail("I2", "job %s: range [%d, %d] begins or ends at no due", d.Job, r.From, r.To)
		}
	}
	if i := slices.Index(said, false); i >= 0 {
		o.fail("I2", "job %s: due %d was passed over", d.Job, dues[i])
	}
	return fates, len(o.violations) == before
}

// wrong says what of a decision is not as the choice has it, and by what law; or nothing.
func (o *Oracle) wrong(j *job, d *Decision, c Choice, dues []int64, told []fate) (law, text string) {
	want := o.fates(j, d, c, dues)
	for i, t := range dues {
		switch {
		case told[i] == want[i]:
		case told[i] == paused || want[i] == paused:
			p := j.pause
			return "pause", fmt.Sprintf("due %d %v; the pause is from %v to %v", t, told[i], p.from, p.until)
		default:
			return "plan", fmt.Sprintf("due %d %v, want that it %v: it is %v old, and the choice is %+v", t, told[i], want[i], d.Open.Sub(time.Unix(t, 0)), c)
		}
	}
	if next := o.next(d, c); !d.Next.Equal(next) {
		return "I2", fmt.Sprintf("the store is to look at it at %v, want %v", d.Next, next)
	}
	return "", ""
}

// fates are those that the dues of a decision come to by a choice: what came in a pause is skipped; of those that are late, and not
// too old, the newest run; and all others run, but those with keys of which none may start any more.
func (o *Oracle) fates(j *job, d *Decision, c Choice, dues []int64) []fate {
	p, within := j.pause, o.policy(d.Job).Within
	inTime := o.rules.MissedAfter + o.inAdvance(j, d, c)
	list, late := append(o.room.want[:0], make([]fate, len(dues))...), 0
	o.room.want = list
	for i, t := range slices.Backward(dues) {
		switch age := d.Open.Sub(time.Unix(t, 0)); {
		case p.has(t):
			list[i] = paused
		case age > inTime && c.MaxAge > 0 && age > c.MaxAge:
			list[i] = fate{Missed, "age"}
		case age > inTime && late == c.Keep:
			list[i] = fate{Missed, c.Reason}
		case d.Keyed && within > 0 && age > within+o.lastStart(c):
			list[i] = fate{Skipped, "deadline"}
			fallthrough
		default:
			if age > inTime {
				late++
			}
		}
	}
	return list
}

// lastStart is how long after a due of a job with keys the last of them starts.
func (o *Oracle) lastStart(c Choice) time.Duration {
	return c.Spread * time.Duration(o.rules.Partitions-1) / time.Duration(o.rules.Partitions)
}

// ownStart is how long after a due of a job without keys it starts, in whole microseconds.
func (o *Oracle) ownStart(job string, c Choice) time.Duration {
	start := o.Start(ID{Job: job, Key: job}, c.Spread).Sub(time.Unix(0, 0))
	return (start + time.Microsecond - 1).Truncate(time.Microsecond)
}

// inAdvance is how much earlier than MissedAfter before what a decision has opened a due may have come and is not late. A due is late by
// its start: with keys by the last of them. Without keys it is opened when it starts, so that Open lies before the decision by as much;
// but where a definition ends, all up to then is opened, and what waited for its start, by whoever told the store when to look at
// it, is not late either.
func (o *Oracle) inAdvance(j *job, d *Decision, c Choice) time.Duration {
	if d.Keyed {
		return o.lastStart(c)
	}
	own, promised := o.ownStart(d.Job, c), time.Duration(0)
	if due, ok := o.schedules[d.SeenHash].next(d.SeenOpened.Unix()); ok && !j.next.IsZero() {
		promised = min(max(j.next.Sub(time.Unix(due, 0)), 0), o.rules.Horizon)
	}
	if d.SeenHash != d.Hash {
		return max(own, promised)
	}
	return max(promised-own, 0)
}

// next is when the store has to offer the entry after a decision: at the start of the first due that is not opened, in whole seconds.
func (o *Oracle) next(d *Decision, c Choice) time.Time {
	due, ok := o.schedules[d.Hash].next(d.Open.Unix())
	if !ok {
		return time.Time{}
	}
	at := time.Unix(due, 0)
	if !d.Keyed {
		at = at.Add(o.ownStart(d.Job, c))
	}
	return at.Add(time.Second - 1).Truncate(time.Second)
}
