package bench

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// The load, which parent and replicas know by the same rules.
const (
	soakTicks     = 10 // jobs of each second, "tick-0" and so on
	soakLeaderJob = "leader"
	soakEditedJob = "edited" // due each second or each second one, by the plan's edition
	soakEachJob   = "each"   // with keys
	soakEachEvery = 10 * time.Second
	soakKeys      = 300
	soakFickle    = 100 // of them come and go by the minute
)

// soakPlan is what a replica is told, and told anew where its job is edited.
type soakPlan struct {
	First, Last time.Time // dues
	Sample      time.Duration
	Edition     int
}

// ill is what is wrong with an occurrence.
type ill int

const (
	sound ill = iota
	panics
	hangs // until its context ends
	fails
)

// fate is what an occurrence does. It follows from its name, so that the record can be held to it.
type fate struct {
	ill      ill
	recovers bool // at the second attempt
	deaf     bool // where it hangs: it does not return when its context ends
}

func fateOf(key string, due time.Time) fate {
	h := xxhash.Sum64String(fmt.Sprintf("%s@%d", key, due.Unix()))
	f := fate{recovers: h>>32&1 == 1, deaf: h>>33&7 == 0}
	switch n := h % 10000; {
	case n < 500:
		f.ill = panics
	case n < 1000:
		f.ill = hangs
	case n < 1500:
		f.ill = fails
	}
	return f
}

// end is how the record must say that it ended.
func (f fate) end() (outcome idempotency.Outcome, reason string, attempts int) {
	switch {
	case f.ill == sound:
		return idempotency.Done, "", 1
	case f.recovers:
		return idempotency.Done, "", 2
	}
	return idempotency.Failed, map[ill]string{panics: "panic", hangs: "timeout", fails: "exhausted"}[f.ill], 2
}

// handle does what the occurrence's fate says.
func (f fate) handle(ctx context.Context, o jobs.Occurrence) error {
	if o.Attempt > 1 && f.recovers {
		return nil
	}
	switch f.ill {
	case panics:
		panic("soak: " + o.Key)
	case hangs:
		<-ctx.Done()
		if f.deaf {
			<-time.After(3 * soakTimeout / 2)
		}
		return context.Cause(ctx)
	case fails:
		return errors.New("soak: " + o.Key)
	}
	return nil
}

func soakKey(i int) string { return fmt.Sprintf("customer-%04d", i) }

// present are the keys of a due: the same for whoever asks.
func present(due time.Time) iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range soakKeys {
			key := soakKey(i)
			if i >= soakKeys-soakFickle && xxhash.Sum64String(fmt.Sprintf("%s/%d", key, due.Unix()/60))&1 == 0 {
				continue
			}
			if !yield(key) {
				return
			}
		}
	}
}

func soakSource(ctx context.Context, r jobs.KeyRange) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for key := range present(r.Due) {
			if key > r.After && r.Contains(key) && !yield(key, ctx.Err()) {
				return
			}
		}
	}
}

// jobs are all but the one that is edited.
func (p soakPlan) jobs(run jobs.Handler) []jobs.Job {
	list := []jobs.Job{
		p.job(soakLeaderJob, time.Second, run),
		p.job(soakEachJob, soakEachEvery, run),
	}
	list[0].Placement = jobs.Leader
	list[1].Keys = jobs.KeyFunc(soakSource)
	for i := range soakTicks {
		list = append(list, p.job(fmt.Sprintf("tick-%d", i), time.Second, run))
	}
	return list
}

// edited is the job of this edition.
func (p soakPlan) edited(run jobs.Handler) jobs.Job {
	j := p.job(soakEditedJob, time.Duration(1+p.Edition%2)*time.Second, run)
	j.Revision = int64(p.Edition)
	return j
}

func (p soakPlan) job(name string, every time.Duration, run jobs.Handler) jobs.Job {
	return jobs.Job{
		Name: name, Schedule: jobs.Every(every).From(p.First).Until(p.Last.Add(time.Second)), Run: run,
		Overlap: jobs.OverlapAllow, // a run that hangs and is tried again may outlast the next due
		Timeout: soakTimeout, Retry: jobs.Retry{Attempts: 2, First: 100 * time.Millisecond, Max: 200 * time.Millisecond},
	}
}
