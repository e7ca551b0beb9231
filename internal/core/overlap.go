package core

import (
	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// holdsKey says whether a run of the job keeps the others of its key from starting.
func (j *job) holdsKey() bool { return j.Overlap != jobs.OverlapAllow }

// overlap is the job's policy as the store knows it.
func (j *job) overlap() idempotency.Overlap {
	switch j.Overlap {
	case jobs.OverlapQueue:
		return idempotency.OverlapQueue
	case jobs.OverlapAllow:
		return idempotency.OverlapAllow
	case jobs.OverlapCancel:
		return idempotency.OverlapCancel
	}
	return idempotency.OverlapSkip
}

// claimable is how many of the n dues of a decision may be claimed at once.
func (c *Core) claimable(j *job, n int) int {
	if j.holdsKey() {
		n = min(n, 1) // all are of one key
	}
	return min(c.roomToOpen(j), n)
}

// insertion claims a key of a pass for the first time. Where another run holds the key, the run waits, is skipped, or
// overtakes that one, as the policy says; but what catches up waits, and so does who comes late for a run of a newer due. Which
// holds the key is known to the store alone, at the instant of the claim: that may be long after this.
func (c *Core) insertion(p *pass, key string) idempotency.Claim {
	j := p.job
	claim := idempotency.Claim{
		ID: idempotency.ID{Job: j.Name, Key: key, Due: p.due}, Hash: j.hash, Exclusive: j.holdsKey(), Term: c.termOf(j),
		OnExpired: &idempotency.Finish{Outcome: idempotency.Missed, Reason: reasonExpired},
	}
	wait := idempotency.Finish{Outcome: idempotency.Wait, Reason: reasonOverlap, Wake: c.storeNow()}
	skip := idempotency.Finish{Outcome: idempotency.Skipped, Reason: reasonOverlap}
	switch {
	case j.Overlap == jobs.OverlapAllow:
	case p.catchUp:
		claim.OnBusy = &wait
	case j.Overlap == jobs.OverlapQueue:
		claim.OnBusy, claim.OnQueued, claim.OnNewer = &wait, &skip, &wait
	case j.Overlap == jobs.OverlapCancel:
		claim.OnBusy, claim.OnNewer, claim.Overtake = &wait, &wait, true
	default:
		claim.OnBusy, claim.OnNewer = &skip, &wait
	}
	return claim
}

// refusal is the cause that is told of an insertion which was not won: overlap where the store has recorded that the run is skipped.
func refusal(a idempotency.Answer) string {
	if a.Recorded == idempotency.Skipped {
		return reasonOverlap
	}
	return cause(a.Verdict)
}
