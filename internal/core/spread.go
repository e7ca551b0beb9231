package core

import (
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// maxStrides bounds how many passes a replica makes over one due because its starts are spread: each asks the
// KeySource and saves its row. A long Spread costs no more than that, and its starts come up to Spread/maxStrides late.
const maxStrides = 1024

// starts is when the partitions of a due start: partition p of P at Spread x p / P after it, rounded down to the
// nanosecond. So at any instant those that have started are the first ones. All of it is exact: 24 h x 65,536 fits.
type starts struct {
	spread     time.Duration
	partitions int

	// stride is how many partitions are begun together, once the last of them has started: as many as start within a
	// sweep, or within Spread/maxStrides where that is longer.
	stride int
}

func newStarts(spread, sweep time.Duration, partitions int) starts {
	s := starts{spread, partitions, partitions}
	if spread > 0 {
		pace := min(max(sweep, spread/maxStrides), spread)
		s.stride = max(int((pace*time.Duration(partitions)+spread-1)/spread), 1)
	}
	return s
}

// delay is how long after a due a partition of it starts.
func (s starts) delay(p int) time.Duration {
	return s.spread * time.Duration(p) / time.Duration(s.partitions)
}

// started is how many partitions have started when so much time has passed since the due. Where nothing is spread it is
// all of them: the store says whether the due itself has come.
func (s starts) started(since time.Duration) int {
	switch {
	case s.spread == 0 || since >= s.spread:
		return s.partitions
	case since < 0:
		return 0
	}
	return int(((since+1)*time.Duration(s.partitions) + s.spread - 1) / s.spread)
}

// ready is how many of those that have started are begun: whole strides.
func (s starts) ready(since time.Duration) int {
	n := s.started(since)
	if n < s.partitions {
		n -= n % s.stride
	}
	return n
}

// next is how long after the due more than n partitions are ready; n is what ready says, and not all.
func (s starts) next(n int) time.Duration { return s.delay(min(n+s.stride, s.partitions) - 1) }

// coarse is how late a partition may be begun, at most, because the others of its stride have not started; the nanosecond
// is for what delay rounds down.
func (s starts) coarse() time.Duration { return s.delay(s.stride-1) + 1 }

// below has the bits of byte i that stand for the first n partitions.
func below(n, i int) byte {
	switch n -= 8 * i; {
	case n <= 0:
		return 0
	case n >= 8:
		return 0xff
	}
	return 1<<n - 1
}

// spreadStarts takes note of when a job's runs start, and reports whether that has changed.
func (j *job) spreadStarts(c Config) bool {
	before := j.starts
	j.starts, j.delay = newStarts(j.Spread, c.Sweep, c.Partitions), 0
	if !j.keyed() {
		j.delay = storeWait(j.starts.delay(j.partition))
	}
	return j.starts != before
}

// storeWait rounds a delay up to what the store's time, which has whole microseconds, can come to.
func storeWait(d time.Duration) time.Duration {
	return (d + time.Microsecond - 1).Truncate(time.Microsecond)
}

// startOf is when a key's run of a due starts.
func (c *Core) startOf(j *job, key string, due time.Time) time.Time {
	return due.Add(j.starts.delay(c.partition(key)))
}

// firstStart is when the first due after an instant is opened; zero: never.
func (j *job) firstStart(after time.Time) time.Time {
	due, ok := j.Schedule.Next(after)
	if !ok {
		return time.Time{}
	}
	return due.Add(j.delay)
}

// look is when to look at a job next: at the first start that is still to come.
func (j *job) look(now time.Time) time.Time { return j.firstStart(now.Add(-j.delay)) }

// offerAt is what the store is told of when to offer an entry: a whole second, so that sweeps bring no entry all the while
// from its due to its start.
func (j *job) offerAt(opened time.Time) time.Time {
	at := j.firstStart(opened)
	if s := at.Truncate(time.Second); s.Before(at) {
		return s.Add(time.Second)
	}
	return at
}

// notYet says whether an entry of our definition has nothing to be decided up to an instant. When its Next came
// before our own schedule says so, the entry is decided and put right, unless it was another Spread that said when to look.
func (j *job) notYet(upTo time.Time) bool {
	e := j.entry
	start := j.firstStart(e.Opened)
	if !start.IsZero() && !start.After(upTo.Add(j.delay)) {
		return false
	}
	return j.delay > 0 || e.Next.IsZero() || e.Next.After(upTo)
}

// reach is up to when the dues of a job are decided now, and how much older they may be and still always run. A job
// without keys is opened when it starts, so that its missed and overlap policies judge the start. With keys the due is
// opened at once, and is late when its last partition is. Where another definition ends now, all its dues are decided,
// those too that have not started: they start at once, for nobody would know of them later.
func (c *Core) reach(j *job) (now time.Time, missedAfter time.Duration) {
	now, missedAfter = c.storeNow(), c.cfg.MissedAfter
	switch {
	case j.keyed():
		return now, missedAfter + j.starts.delay(c.cfg.Partitions-1)
	case j.entry.Hash != j.hash:
		return now, missedAfter + max(j.delay, c.delayBefore(j))
	}
	return now.Add(-j.delay), missedAfter + max(c.delayBefore(j)-j.delay, 0)
}

// delayBefore is how long after its due the entry's first start was to be, by the Spread of who decided it last: what
// waits for that is not late.
func (c *Core) delayBefore(j *job) time.Duration {
	s, e := j.Schedule, j.entry
	if e.Hash != j.hash {
		s, _ = jobs.ParseSchedule(e.Schedule)
	}
	due, ok := s.Next(e.Opened)
	if !ok || e.Next.IsZero() {
		return 0
	}
	return min(max(e.Next.Sub(due), 0), c.cfg.Horizon)
}

// unstarted says whether an entry that a sweep brought is left alone: a version of the job with a shorter Spread, or none,
// has told the store when to offer it; or only some members own the job, and it is their turn.
func (c *Core) unstarted(now time.Time, j *job, e idempotency.Entry) bool {
	wait := time.Duration(c.turnOf(j)) * c.cfg.Grace
	return (j.delay > 0 || c.shareOf(j).few()) && e.Hash == j.hash && now.Before(j.firstStart(e.Opened).Add(wait))
}

// awaitStart begins the next pass over an open due when more of it has started. A sweep would begin it too, but later.
func (c *Core) awaitStart(j *job, o idempotency.OpenDue) {
	k, s := keyOf(o.Job, o.Due), c.session
	c.stopTimer(c.waking[k])
	delete(c.waking, k)
	n := j.starts.ready(c.storeNow().Sub(o.Due))
	if n == c.cfg.Partitions {
		return
	}
	at := o.Due.Add(storeWait(j.starts.next(n)))
	c.waking[k] = c.after(at.Sub(c.storeNow()), func() {
		delete(c.waking, k)
		if c.session == s && c.ready() && c.jobs[j.Name] == j && c.ranks != nil {
			// What the others moved is not known as of now.
			ranks := c.ranksOf(j)
			c.beginPass(c.storeNow(), j, o, ranks[:min(1, len(ranks))])
			c.awaitStart(j, o)
		}
	})
}
