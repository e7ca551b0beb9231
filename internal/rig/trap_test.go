//go:build unix

package rig

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// The acts of a fault.
const (
	kill   = "kill"   // the process kills itself with SIGKILL
	stop   = "stop"   // it stops itself with SIGSTOP, and goes on when it is told to
	crash  = "crash"  // a goroutine of the handler panics; K3 only
	throw  = "throw"  // the handler panics; K3 only
	random = "random" // the parent kills it with SIGKILL, at no point in particular
	hang   = "hang"   // the handler ignores its context, until it is told to go on; K3 only
)

// fault is what a process is to do to itself.
type fault struct {
	Point string        // K0 to K7
	Nth   int           // the n-th time, from when it was told
	Act   string        // kill, stop, …
	After time.Duration // K1, K5: how long the call may be in flight
}

func (f fault) String() string { return f.Point + " " + f.Act }

// trap waits for the process to come to a fault's point.
type trap struct {
	ledger *ledger
	ctx    context.Context // of the process
	onward chan struct{}   // receives a word to go on; unbuffered
	calls  sync.RWMutex    // held to read by calls that mostly write to the store

	mu        sync.Mutex
	fault     *fault
	completed map[int64]bool // fences of runs that were completed by their handlers
}

// complete says that a run was completed by its handler, before its finish is sent.
func (t *trap) complete(fence int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.completed[fence] = true
}

// open says that a run is not completed before its finish is sent.
func (t *trap) open(fence int64) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return !t.completed[fence]
}

func (t *trap) arm(f fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fault = &f
}

// due reports a fault that is to happen now, once, and has written it down for the runs that it is about.
func (t *trap) due(point string, runs ...line) *fault { return t.dueTo("", point, runs...) }

// dueTo is due, for the one act; "": for any.
func (t *trap) dueTo(act, point string, runs ...line) *fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	f := t.fault
	if f == nil || f.Point != point || len(runs) == 0 || act != "" && f.Act != act {
		return nil
	}
	if f.Nth--; f.Nth > 0 {
		return nil
	}
	t.fault = nil
	for i := range runs {
		runs[i].Phase, runs[i].Text = faulted, f.String()
	}
	t.ledger.write(runs...)
	return f
}

// hit is a point that the process is at. It returns the act where that is the caller's to do.
func (t *trap) hit(point string, runs ...line) string { return t.hitBy("", point, runs...) }

// hitBy is hit, for the one act; "": for any.
func (t *trap) hitBy(act, point string, runs ...line) string {
	f := t.dueTo(act, point, runs...)
	if f == nil {
		return ""
	}
	t.strike(f)
	return f.Act
}

// strike kills or stops this process.
func (t *trap) strike(f *fault) {
	switch f.Act {
	case kill:
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // cannot fail
		select {}
	case stop:
		// Not in the middle of a transaction, if it can be helped: SQLite's lock would stop the others too. The signal
		// may take a moment to come, so calls are kept back until it is over.
		t.calls.Lock()
		defer t.calls.Unlock()
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) // the same
		t.wait()
	}
}

// wait ends when the parent says to go on.
func (t *trap) wait() {
	select {
	case <-t.onward:
	case <-t.ctx.Done():
	}
}

// flight is a point that the process is at while a call is under way.
func (t *trap) flight(point string, runs []line) {
	if f := t.dueTo(kill, point, runs...); f != nil {
		time.AfterFunc(f.After, func() { t.strike(f) })
	}
}

// door is a replica's way to the store, with the points at which it may be struck.
type door struct {
	idempotency.Store
	*trap
	*pulse
}

// Claim has K0, K1 and K2.
func (d *door) Claim(ctx context.Context, s idempotency.Session, nonce int64, c []idempotency.Claim) ([]idempotency.Answer, error) {
	var asked, won []line
	for _, q := range c {
		asked = append(asked, ofID("", "", q.ID, 0))
	}
	d.hit("K0", asked...)
	d.flight("K1", asked)
	d.calls.RLock()
	answers, err := d.Store.Claim(ctx, s, nonce, c)
	d.calls.RUnlock()
	for i, a := range answers {
		if a.Verdict == idempotency.Won {
			won = append(won, ofID(claimed, "", c[i].ID, a.Fence))
		}
	}
	d.won(won)
	return answers, err
}

// Decide has them too, where it may claim.
func (d *door) Decide(ctx context.Context, s idempotency.Session, nonce int64, q []idempotency.Decision) ([]idempotency.Decided, error) {
	var asked, won []line
	for _, x := range q {
		for _, due := range x.Run[:min(x.Claim, len(x.Run))] {
			asked = append(asked, ofID("", "", idempotency.ID{Job: x.Job, Key: x.Job, Due: due}, 0))
		}
	}
	d.hit("K0", asked...)
	d.flight("K1", asked)
	d.calls.RLock()
	answers, err := d.Store.Decide(ctx, s, nonce, q)
	d.calls.RUnlock()
	for _, a := range answers {
		for _, r := range a.Runs {
			if a.Won && r.State == idempotency.Running {
				won = append(won, ofID(claimed, "", r.ID, r.Fence))
			}
		}
	}
	d.won(won)
	return answers, err
}

func (d *door) won(runs []line) {
	if len(runs) > 0 {
		d.trap.ledger.write(runs...)
		d.hit("K2", runs...)
	}
}

// Finish has K5 and K6. What a process finishes that was stopped at K5 does reach the store: neither the call's
// deadline nor anything else on this side refuses it.
func (d *door) Finish(ctx context.Context, namespace string, f []idempotency.Finish) ([]idempotency.FinishAnswer, error) {
	var asked, done []line
	for _, q := range f {
		if q.Outcome == idempotency.Done && d.open(q.Fence) {
			asked = append(asked, ofID("", "", q.ID, q.Fence))
		}
	}
	if x := d.due("K5", asked...); x != nil && x.Act == stop {
		d.strike(x)
		var end context.CancelFunc
		ctx, end = context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer end()
	} else if x != nil {
		time.AfterFunc(x.After, func() { d.strike(x) })
	}
	d.calls.RLock()
	answers, err := d.Store.Finish(ctx, namespace, f)
	d.calls.RUnlock()
	for i, a := range answers {
		if a != idempotency.Finished {
			continue
		}
		l := ofID(committed, outcomes[f[i].Outcome], f[i].ID, f[i].Fence)
		d.trap.ledger.write(l)
		if f[i].Outcome == idempotency.Done {
			done = append(done, l)
		}
	}
	d.hit("K6", done...)
	return answers, err
}

var outcomes = map[idempotency.Outcome]string{
	idempotency.Done: "done", idempotency.Failed: "failed", idempotency.Skipped: "skipped", idempotency.Missed: "missed", idempotency.Wait: "wait",
}

// SavePass is one of the calls that a process is not stopped in.
func (d *door) SavePass(ctx context.Context, s idempotency.Session, p []idempotency.Pass) ([]idempotency.Verdict, error) {
	d.calls.RLock()
	defer d.calls.RUnlock()
	return d.Store.SavePass(ctx, s, p)
}
