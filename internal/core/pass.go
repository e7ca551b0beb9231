package core

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// pass is one stream through the keys of a fixed set of partitions, for one due.
// It speaks only for these: partitions gained meanwhile wait for the next one.
// One over a due of an efficiency job claims nothing and is known here alone, unless a person asked for that due.
type pass struct {
	job     *job
	due     time.Time
	local   bool   // no store knows of it
	catchUp bool   // a busy key waits, and is not skipped
	past    past   // of its runs
	mask    []byte // the partitions
	hedge   []byte // of these, those in which we are not the owner
	turn    int64  // when a key of it last got a worker
	kept    []byte // partitions that a later pass of ours will take; nil: none

	saved   bool  // the pass row exists: only then may a claim be made
	queued  bool  // its first stream is still to be opened
	stream  int64 // 0: none is open
	asked   time.Duration
	asking  bool
	buf     []string
	out     int  // keys not settled yet
	dirty   bool // a key could not be settled: the set is not finished by this pass
	ended   bool // the stream ended without error
	last    string
	mixed   bool // the keys did not ascend: a cursor would mean nothing
	moved   time.Duration
	count   int64
	ending  bool // its finished bits are on their way
	dropped bool
	told    bool            // that its source is silent
	seen    map[string]bool // of a local one, whose keys no store remembers
}

func (p *pass) key() dueKey { return keyOf(p.job.Name, p.due) }

// mine is the partitions that the pass speaks for to others.
func (p *pass) mine() []byte {
	if p.kept == nil {
		return p.mask
	}
	return union(p.kept, p.mask)
}

// openStream begins the stream, or begins it anew after the last settled key.
func (c *Core) openStream(p *pass) {
	c.seq++
	p.stream = c.seq
	var parts []int
	for i := range c.cfg.Partitions {
		if has(p.mask, i) {
			parts = append(parts, i)
		}
	}
	c.emit(OpenStream{Stream: p.stream, Job: &p.job.Job,
		Range: jobs.KeyRange{Due: p.due, Partitions: parts, Count: c.cfg.Partitions, After: p.last}})
	c.pull(p)
}

// pull asks for keys where the workers could soon run out of them.
func (c *Core) pull(p *pass) {
	if p.stream == 0 || p.asking || len(p.buf) >= c.cfg.Concurrency {
		return
	}
	p.asking, p.asked = true, c.now.Mono
	c.emit(Pull{Stream: p.stream, Max: min(max(2*c.cfg.Concurrency, 64), idempotency.MaxBatch)})
}

// stall is how long a source may take to yield its next key before it is given up
// and asked again; the job's timeout where that is shorter, but at least a lease.
const stall = 5 * time.Minute

var errStalled = errors.New("no key came for too long; its context is ended")

// checkStalled gives up a stream whose source has hung.
func (c *Core) checkStalled(p *pass) {
	limit := stall
	if p.job.Timeout > 0 {
		limit = min(limit, p.job.Timeout)
	}
	silent := c.now.Mono - p.asked
	if p.asking && silent > c.cfg.Lease && !p.told {
		p.told = true
		c.emit(Problem{Job: p.job.Name, Due: p.due, Err: fmt.Errorf("its KeySource has yielded nothing for %v", silent.Round(time.Second))})
	}
	if p.asking && silent > max(limit, c.cfg.Lease) {
		c.closeStream(p)
		c.failedStream(p, errStalled)
	}
}

func (c *Core) closeStream(p *pass) {
	if p.stream != 0 {
		c.emit(CloseStream{Stream: p.stream})
		p.stream, p.asking = 0, false
	}
}

// streamed takes the keys of a stream. A key that can be no key spoils its
// pass, since its run could never be recorded; the other keys run.
func (c *Core) streamed(e Streamed) {
	i := slices.IndexFunc(c.passes, func(p *pass) bool { return p.stream == e.Stream && e.Stream != 0 })
	if i < 0 {
		return
	}
	p := c.passes[i]
	p.asking = false
	for _, key := range e.Keys {
		if err := jobs.ValidateKey(key); err != nil {
			p.dirty = true
			c.setBack(p.key())
			c.emit(Problem{Job: p.job.Name, Due: p.due, Err: fmt.Errorf("its KeySource yielded a bad key, which is left out: %w", err)})
			continue
		}
		if !has(p.mask, c.partition(key)) || p.seen[key] {
			continue
		}
		if p.seen != nil {
			p.seen[key] = true
		}
		p.mixed = p.mixed || key <= p.last
		p.last = key
		p.buf = append(p.buf, key)
	}
	switch {
	case e.Err != nil:
		p.stream = 0
		c.failedStream(p, e.Err)
	case e.End:
		p.stream, p.ended = 0, true
	}
}

// failedStream lets the keys that came be settled, and then goes on after
// them where the source is ordered; else the whole set is streamed anew.
func (c *Core) failedStream(p *pass, err error) {
	wait := c.setBack(p.key())
	c.emit(Problem{Job: p.job.Name, Due: p.due, Err: fmt.Errorf("its KeySource failed; it is asked again in %v: %w", wait, err)})
	if p.mixed {
		p.last = ""
	}
	if !p.local && (p.dirty || p.last == "") {
		p.dirty, p.ended = true, true
		return
	}
	c.after(wait, func() {
		if !p.dropped {
			c.openStream(p)
		}
	})
}

// advance gets keys of a pass, and ends it when all are settled.
func (c *Core) advance(p *pass) {
	if !p.saved && !p.local || p.queued && c.streamsOf(p.job) >= maxStreams {
		return
	}
	if p.queued {
		p.queued = false
		c.openStream(p)
	}
	c.pull(p)
	if p.ended && len(p.buf) == 0 && p.out == 0 {
		c.finishPass(p)
	}
}

func (c *Core) claimKey(p *pass, key string) {
	p.out++
	c.reserve(p.job, 1)
	c.claims.add(c.insertion(p, key),
		func(claim idempotency.Claim, a idempotency.Answer) {
			c.reserve(p.job, -1)
			c.claimed(p, claim, a)
			if claim.Overtake && a.Verdict == idempotency.Busy {
				c.sweepSoon(0) // the run that was told to end may be ours
			}
		},
		func(idempotency.Claim) {
			c.reserve(p.job, -1)
			p.out, p.dirty = p.out-1, true
		})
}

// claimed takes the answer for one key of a pass. A key is settled when it was won or
// taken, or when its skip, wait or miss has been recorded; nothing else counts.
func (c *Core) claimed(p *pass, claim idempotency.Claim, a idempotency.Answer) {
	id := claim.ID
	p.out--
	p.moved = c.now.Mono
	if a.Verdict == idempotency.Won {
		p.count++
		run := idempotency.Run{ID: id, Fence: a.Fence, Attempt: a.Attempt, Crashes: a.Crashes, Payload: a.Payload, Term: claim.Term}
		c.begin(p.job, run, c.pastAsked(id, p.past), has(p.hedge, c.partition(id.Key)))
		return
	}
	c.emit(Refused{Occurrence: c.occurrence(p.job, id, 0, 0, nil), Cause: refusal(claim, a.Verdict)})
	switch a.Verdict {
	case idempotency.Taken, idempotency.Busy, idempotency.Expired:
		p.count++
	case idempotency.Early:
		p.out++
		c.after(max(a.Retry, c.retryPause()), func() {
			p.out--
			p.buf = append(p.buf, id.Key)
		})
	case idempotency.Closed:
		c.dropPass(p)
	default:
		p.dirty = true
	}
}

// finishPass says that every key of the set is settled; or, where that is not
// so, forgets the pass, so that a later sweep begins a new one.
func (c *Core) finishPass(p *pass) {
	switch {
	case p.ending:
	case p.local:
		c.dropPass(p)
	case p.dirty:
		c.dropPass(p)
	default:
		p.ending = true
		done := c.finished[p.key()]
		done.keys += p.count
		c.finished[p.key()] = done
		c.savePass(p, idempotency.Pass{Mine: p.mask, Finished: p.mask, Keys: done.keys}, func() {
			done := c.finished[p.key()]
			done.bits, done.saved = union(done.bits, p.mask), c.now.Mono
			c.finished[p.key()] = done
			c.dropPass(p)
			c.recovered(p.key())
			if p.job.starts.ready(c.storeNow().Sub(p.due)) == c.cfg.Partitions {
				c.sweepSoon(0) // it may be the last one
			}
		})
	}
}

// savePass writes to our pass row; then is called once it is answered and the due is still open.
func (c *Core) savePass(p *pass, row idempotency.Pass, then func()) {
	row.Job, row.Due = p.job.Name, p.due
	if row.Finished == nil {
		row.Finished = make([]byte, len(row.Mine))
	}
	c.saves.add(row, func(_ idempotency.Pass, v idempotency.Verdict) {
		switch {
		case p.dropped:
		case v == idempotency.Won:
			p.moved = c.now.Mono
			then()
		default:
			c.dropPass(p)
		}
	}, func(idempotency.Pass) {})
}

// gettingOn says that the workers turn over, so that the job's keys get theirs in
// time: runs of it begin or end here within its timeout, or runs of any job end within a lease. Where the job's own limit keeps
// its keys waiting, the others' runs say nothing, but that its starts are only to be spaced does.
func (c *Core) gettingOn(j *job) bool {
	if c.outOfTokens(j) {
		return true
	}
	if w := c.workers; !c.atLimit(j) && w.turned > 0 && c.now.Mono-w.turned <= c.cfg.Lease {
		return true
	}
	limit := j.Timeout
	if limit <= 0 {
		limit = jobs.DefaultTimeout
	}
	return j.began && c.now.Mono-j.lived <= limit
}

// touchPasses moves passes that only wait: for workers that get on, or for a
// source that has been asked within a lease. So others leave them alone. It looks again when the next one may need it, as
// long as there are any.
func (c *Core) touchPasses(s *session) {
	if c.session != s {
		return
	}
	s.touching = false
	wait := c.cfg.Grace / 2
	for _, p := range c.passes {
		busy := (len(p.buf)+p.out > 0 || p.queued) && c.gettingOn(p.job)
		slow := p.asking && c.now.Mono-p.asked <= c.cfg.Lease
		switch left := p.moved + c.cfg.Grace/2 - c.now.Mono; {
		case p.local:
			continue
		case left > 0:
			wait = min(wait, max(left, c.cfg.Grace/8))
		case p.saved && !p.ending && (busy || slow):
			c.savePass(p, idempotency.Pass{Mine: p.mine()}, func() {})
		}
		s.touching = true
	}
	if s.touching {
		c.after(wait, func() { c.touchPasses(s) })
	}
}

func (c *Core) passesOf(k dueKey) (n int) {
	for _, p := range c.passes {
		if p.key() == k {
			n++
		}
	}
	return n
}

// maxStreams is how many streams of one job begin beside each other: a catch-up opens many dues
// at once, and each stream may be a query. More are open only of those that go on after a failure.
const maxStreams = 4

func (c *Core) streamsOf(j *job) (n int) {
	for _, p := range c.passes {
		if p.job == j && p.stream != 0 {
			n++
		}
	}
	return n
}

// addPass keeps the passes in the order of their dues: older ones get workers first.
func (c *Core) addPass(p *pass) {
	i, _ := slices.BinarySearchFunc(c.passes, p, func(a, b *pass) int {
		if a.due.After(b.due) {
			return 1
		}
		return -1
	})
	c.passes = slices.Insert(c.passes, i, p)
	if s := c.session; s != nil && !s.touching && !p.local {
		s.touching = true
		c.after(c.cfg.Grace/2, func() { c.touchPasses(s) })
	}
}

func (c *Core) dropPass(p *pass) {
	if p.dropped {
		return
	}
	p.dropped = true
	p.buf = nil
	c.closeStream(p)
	c.passes = slices.DeleteFunc(c.passes, func(x *pass) bool { return x == p })
}

// dropPasses forgets the passes of a lost session, or of a replica that leaves.
func (c *Core) dropPasses() {
	for _, p := range slices.Clone(c.passes) {
		if c.draining || !p.local {
			c.dropPass(p)
		}
	}
}
