//go:build unix

package etcdrig

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/sqlite"
)

// The points that a leader can be struck at.
const (
	decided  = "decided"  // it has decided a due, and has not sent that to the store
	answered = "answered" // the store has answered that it has the run
	handler  = "handler"  // the effect is applied, the handler has not returned
	looking  = "looking"  // it is about to look whether its term is over
	anywhere = "anywhere" // at no point in particular: the parent strikes
)

// fault is what a process is to do to itself.
type fault struct {
	Point string
	Act   syscall.Signal // SIGKILL or SIGSTOP
}

func (f fault) String() string { return f.Point + " " + f.Act.String() }

// trap waits for the process to come to a fault's point.
type trap struct {
	ledger *ledger
	calls  sync.RWMutex // held to read by calls that write to the store

	mu    sync.Mutex
	fault fault // of no point: none
}

func (t *trap) arm(f fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.fault = f
}

// hit is a point that the process is at, with a due or 0.
func (t *trap) hit(point string, due int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fault.Point != point {
		return
	}
	// Not in the middle of a transaction, if it can be helped: SQLite's lock would stop the others too.
	t.calls.Lock()
	defer t.calls.Unlock()
	t.ledger.write(line{Phase: faulted, Text: t.fault.String(), Due: due})
	began := mono()
	_ = syscall.Kill(os.Getpid(), t.fault.Act) // cannot fail
	t.fault = fault{}
	for mono()-began < standing.Nanoseconds() { // the signal may take a moment to come
	}
}

// standing is less than any time that the rig has a process stand still. What the process does behind it, it does before anything in it can have noticed
// that time has passed.
const standing = 500 * time.Millisecond

// door is a replica's way to the store, with the points at which it may be struck, and none in the calls that write most.
type door struct {
	*sqlite.Store
	*trap
}

// Decide has two points, where the leader decides to run dues.
func (d *door) Decide(ctx context.Context, s idempotency.Session, nonce int64, q []idempotency.Decision) ([]idempotency.Decided, error) {
	var due int64
	for _, x := range q {
		if x.Term > 0 && x.Claim > 0 && len(x.Run) > 0 {
			due = x.Run[0].Unix()
		}
	}
	if due != 0 {
		d.hit(decided, due)
	}
	d.calls.RLock()
	answers, err := d.Store.Decide(ctx, s, nonce, q)
	d.calls.RUnlock()
	for _, a := range answers {
		if due != 0 && a.Won {
			d.hit(answered, due)
		}
	}
	return answers, err
}

// Finish writes down what was written.
func (d *door) Finish(ctx context.Context, namespace string, f []idempotency.Finish) ([]idempotency.FinishAnswer, error) {
	d.calls.RLock()
	answers, err := d.Store.Finish(ctx, namespace, f)
	d.calls.RUnlock()
	for i, a := range answers {
		if a == idempotency.Finished && f[i].Outcome != idempotency.Wait {
			d.ledger.write(line{Phase: committed, Due: f[i].ID.Due.Unix(), Fence: f[i].Fence})
		}
	}
	return answers, err
}

func (d *door) Claim(ctx context.Context, s idempotency.Session, nonce int64, c []idempotency.Claim) ([]idempotency.Answer, error) {
	d.calls.RLock()
	defer d.calls.RUnlock()
	return d.Store.Claim(ctx, s, nonce, c)
}

func (d *door) RenewSession(ctx context.Context, s idempotency.Session) (idempotency.Renewal, error) {
	d.calls.RLock()
	defer d.calls.RUnlock()
	return d.Store.RenewSession(ctx, s)
}
