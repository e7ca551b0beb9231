package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/belfry-go/belfry/internal/sim/oracle"
	"github.com/belfry-go/belfry/jobs"
)

// Jobs of a trial with a meaning of their own.
const (
	local = "local" // an efficiency job
	sick  = "sick"  // its handlers fail, panic and hang, even in the calm
	led   = "led"   // the leader's
)

// jobNames are those of a trial's jobs.
var jobNames = []string{"keyed", "plain", "calendar", "spread", "choosy", led, local, sick}

func (w *World) has(job string) bool {
	return slices.ContainsFunc(w.cfg.Jobs, func(j Job) bool { return j.Name == job })
}

// The versions of a trial's code: the first ones have all jobs, and are what a calm may bring back.
const (
	whole    = 2
	versions = 5
)

// jobs are about fifty runs a minute, of all sorts.
func (x *trial) jobs() []Job {
	source := func(n int) *Source {
		s := NewSource(n)
		s.Unordered, s.Whole, s.Batch = x.dice.IntN(3) == 0, x.dice.IntN(4) == 0, x.dice.IntN(6)
		s.Flow = func(*Replica, time.Duration, int) (Flow, bool) { return Flow{Hang: true}, x.hangs > x.w.now }
		x.sources = append(x.sources, s)
		return s
	}
	list := []Job{
		{Name: "keyed", Plans: x.plans(Plan{Every: time.Minute}), Source: source(12)},
		{Name: "plain", Plans: x.plans(Plan{Every: 6 * second})},
		{Name: "calendar", Plans: x.plans(Plan{Minutes: []int{0, 7, 11, 14, 22, 25, 31, 38, 40, 43, 51, 59}})},
		{Name: "spread", Plans: x.plans(Plan{Every: time.Minute, Spread: 20 * second}), Source: source(8)},
		{Name: "choosy", Plans: x.plans(Plan{Every: 30 * second}), Source: source(4)},
		{Name: led, Plans: x.plans(Plan{Every: 10 * second}), Leader: true, HandOverAfter: []time.Duration{0, 5 * second, 20 * second}[x.dice.IntN(3)]},
		{Name: local, Plans: []Plan{{Every: 10 * second}}, Local: true},
		{Name: sick, Plans: []Plan{{Every: time.Minute}}},
	}
	list[4].choose(x.dice)
	list[4].StallAfter *= 4
	if x.dice.IntN(2) == 0 {
		list[1].choose(x.dice)
	}
	for i := range list {
		list[i].Timeout = 10 * second
		list[i].Work = x.work
	}
	return list
}

// plans are those of all versions of a job.
func (x *trial) plans(p Plan) []Plan {
	list := []Plan{p}
	for v := 1; v < versions; v++ {
		p := p
		if p.Every > 0 && x.dice.IntN(2) == 0 {
			p.Every = []time.Duration{p.Every / 2, p.Every, 2 * p.Every}[x.dice.IntN(3)]
			p.Phase = time.Duration(x.dice.Int64N(int64(p.Every/second))) * second
		}
		p.Missed = []jobs.Missed{{}, {Policy: jobs.MissedSkip}, {Policy: jobs.MissedAll, Max: 3}, {MaxAge: 2 * time.Minute}}[x.dice.IntN(4)]
		p.Gone = v >= whole && x.dice.IntN(4) == 0
		list = append(list, p)
	}
	return list
}

// poison is a key whose next run kills its process.
type poison struct {
	job, key string
	from     int64
	due      int64 // of that run; 0: not known yet
}

// work is what a handler does. It depends on its run alone, not on what happens elsewhere.
func (x *trial) work(r *Replica, o jobs.Occurrence) Work {
	w := x.w
	d := rand.New(rand.NewPCG(w.cfg.Seed, xxhash.Sum64String(fmt.Sprint(idOf(o), o.Attempt))))
	long := func(low, high time.Duration) time.Duration { return low + time.Duration(d.Int64N(int64(high-low))) }
	may := func(f Fault, p float64) bool { return d.Float64() < p && (w.mood|r.mood)&f != 0 && !w.calm }
	y := Work{Takes: long(millis, 400*millis), Quiet: d.IntN(10) == 0}
	switch {
	case o.Job == sick:
		return x.sickWork(d)
	case o.Job != local && x.dies(idOf(o)):
		y.Fatal = true
	case x.jammed == r.index && !w.calm:
		y.Takes, y.Deaf = long(5*second, 9*second), true
	case may(Long, .3):
		y.Takes, y.Deaf = long(second, 12*second), d.IntN(3) == 0
	case may(Hang, .1):
		y.Takes, y.Deaf = long(12*second, 40*second), true
	case may(Error, .3):
		y.Err, y.Panic = errWork, d.IntN(4) == 0
		y.Err = []error{errWork, jobs.Skip("nothing to do"), jobs.RetryAfter(long(0, 5*second), errWork)}[d.IntN(3)]
	}
	return y
}

// sickWork is that of a handler that fails in all ways that harm no process.
func (x *trial) sickWork(d *rand.Rand) Work {
	switch d.IntN(4) {
	case 0:
		return Work{Takes: millis, Err: errWork}
	case 1:
		return Work{Takes: millis, Err: errWork, Panic: true}
	case 2:
		return Work{Takes: -1} // until its timeout
	}
	return Work{Takes: 13 * second, Deaf: true}
}

// dies is whether a run kills its process.
func (x *trial) dies(id oracle.ID) bool {
	for _, p := range x.poisons {
		if p.job == id.Job && p.key == id.Key && id.Due >= p.from && (p.due == 0 || p.due == id.Due) {
			p.due = id.Due
			x.fatal[id] = true
		}
	}
	return x.fatal[id] && !x.w.calm
}
