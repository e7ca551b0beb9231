package membership

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/belfry-go/belfry/internal/sim"
	"github.com/belfry-go/belfry/internal/sim/oracle"
	"github.com/belfry-go/belfry/jobs"
)

// trialJob is a job of a trial, as the replicas have it and as the oracle judges it.
type trialJob struct {
	every, phase, spread time.Duration
	keys                 int
	overlap              jobs.Overlap
	crash                jobs.Crash
	policy               oracle.Policy
}

var trialJobs = map[string]trialJob{
	"plain":  {every: 30 * time.Second, policy: oracle.Policy{Attempts: 3}},
	"keyed":  {every: 5 * time.Minute, phase: 7 * time.Second, keys: 8, policy: oracle.Policy{Attempts: 3}},
	"spread": {every: 10 * time.Minute, spread: time.Minute, keys: 4, policy: oracle.Policy{Attempts: 3}},
	"queued": {every: time.Minute, phase: time.Second, overlap: jobs.OverlapQueue, policy: oracle.Policy{Attempts: 3}},
	"latest": {every: time.Minute, phase: 2 * time.Second, overlap: jobs.OverlapCancel, policy: oracle.Policy{Attempts: 3}},
	"beside": {every: time.Minute, phase: 3 * time.Second, overlap: jobs.OverlapAllow, policy: oracle.Policy{Attempts: 3, Parallel: true}},
	"once":   {every: time.Minute, phase: 4 * time.Second, crash: jobs.CrashAbandon, policy: oracle.Policy{Attempts: 1, Once: true}},
}

func (j trialJob) names() []string {
	var all []string
	for i := range j.keys {
		all = append(all, splitKey(i))
	}
	return all
}

func (j trialJob) brute() (oracle.Schedule, oracle.Choice) {
	return oracle.Schedule{Period: int64(j.every / time.Second), Phase: int64(j.phase / time.Second)},
		oracle.Choice{Keep: 1, Reason: "late", MaxAge: 24 * time.Hour, Spread: j.spread}
}

func (j trialJob) job(name string, lease time.Duration, run jobs.Handler) jobs.Job {
	x := jobs.Job{
		Name: name, Schedule: jobs.Every(j.every).Phase(j.phase), Run: run, Spread: j.spread, Overlap: j.overlap, Crash: j.crash,
		Retry: jobs.Retry{Attempts: j.policy.Attempts, First: time.Second, Max: 5 * time.Second}, Timeout: lease * 5 / 4,
	}
	if j.policy.Attempts == 1 {
		x.Retry = jobs.Retry{Attempts: -1}
	}
	if j.keys > 0 {
		x.Keys = jobs.KeyList(j.names()...)
	}
	return x
}

var errWork = errors.New("declined")

// deed is what a handler does with one attempt.
type deed struct {
	takes       time.Duration
	deaf        bool // it does not heed its context
	fail, panic bool
	exit        bool // it ends its goroutine
}

// deedOf draws it by the occurrence and the attempt, so that each replica that gets it does the same.
func (c *trial) deedOf(o jobs.Occurrence) deed {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s %d", o.ID(), o.Attempt)
	r := rand.New(rand.NewPCG(c.seed, h.Sum64()))
	d := deed{takes: time.Duration(r.Int64N(int64(300 * time.Millisecond)))}
	switch n := r.IntN(100); {
	case n < 8:
		d.fail = true
	case n < 11:
		d.panic = true
	case n < 12:
		d.exit = true
	case n < 24:
		d.takes = time.Duration(r.Int64N(int64(c.lease * 3 / 2))) // and past its timeout
	case n < 26:
		d.takes, d.deaf = time.Duration(r.Int64N(int64(c.lease*2))), true
	}
	return d
}

// handler runs the jobs of one process.
func (c *trial) handler(p *post) jobs.Handler {
	return func(ctx context.Context, o jobs.Occurrence) error {
		if p.dead.Load() {
			<-ctx.Done() // the process is gone: nobody sees what its goroutines do
			return ctx.Err()
		}
		c.store.Started(o)
		p.enter(ctx, o.Fence)
		overdue := context.AfterFunc(ctx, func() {
			c.store.Returned(o, sim.EndOf(context.Cause(ctx))) // it may not heed that
		})
		defer overdue()
		end := oracle.Panic // or it ends its goroutine
		defer func() {
			p.leave(o.Fence)
			c.store.Returned(o, end|sim.EndOf(context.Cause(ctx)))
		}()
		if now := time.Now(); now.Before(o.Due) {
			c.blame("%s starts %s early", o.ID(), o.Due.Sub(now))
		}
		c.mu.Lock()
		c.runs++
		c.mu.Unlock()
		err := c.deedOf(o).do(ctx)
		end = sim.ReturnOf(err)
		return err
	}
}

func (d deed) do(ctx context.Context) error {
	if d.deaf {
		<-time.After(d.takes)
	} else {
		select {
		case <-time.After(d.takes):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	switch {
	case d.fail:
		return errWork
	case d.panic:
		panic("the handler panics")
	case d.exit:
		runtime.Goexit()
	}
	return nil
}

func (p *post) enter(ctx context.Context, fence int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[fence] = ctx
}

func (p *post) leave(fence int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, fence)
}

// blind cuts a process off from the store, and demands that the contexts of its handlers end in time (F14).
func (c *trial) blind(p *post) {
	p.way.Cut(true)
	p.unseen.comes()
	since := p.cut.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	for fence, ctx := range p.running {
		time.AfterFunc(c.lease*7/10+time.Millisecond, func() {
			p.mu.Lock()
			_, at := p.running[fence]
			p.mu.Unlock()
			if at && ctx.Err() == nil && p.cut.Load() == since {
				c.blame("%s is cut off from the store, and after 0.7 of its lease the handler of fence %d has a context that lives", p.name, fence)
			}
		})
	}
}

func (p *post) sees() {
	p.cut.Add(1)
	p.way.Cut(false)
	p.unseen.goes()
}
