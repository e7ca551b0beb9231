package etcdelector

import (
	"context"
	"errors"
)

// Why a term ends, or a candidacy; context.Cause of lead's context has it, or what ended Lead's.
var (
	errTrust    = errors.New("etcdelector: no renewal was confirmed in time, so another leader cannot be ruled out")
	errSession  = errors.New("etcdelector: the lease has ended or could not be kept alive")
	errDeleted  = errors.New("etcdelector: the leader's key was deleted, with its lease or by hand")
	errOlder    = errors.New("etcdelector: another replica's key is older")
	errReturned = errors.New("etcdelector: lead has returned")
)

// errShort is a lease that leaves less than the margin asked for. etcd never grants one; what stands before it might.
var errShort = errors.New("a lease was granted for a shorter time than asked")

// term is the context of lead: that of the candidacy, and over as soon as the trust is by the clocks, which it looks at whenever it is asked. A process
// that was frozen, or a machine that was suspended, finds the end before a timer has fired. All else passes through, so contexts that are
// derived from it need no goroutine.
type term struct {
	context.Context // of the candidacy
	trust           *trust
	lose            context.CancelCauseFunc // ends Context
}

func (t *term) Err() error {
	if err := t.Context.Err(); err != nil {
		return err
	}
	if t.trust.left() == 0 {
		t.lose(errTrust)
	}
	return t.Context.Err()
}
