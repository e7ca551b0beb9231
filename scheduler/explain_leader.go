package scheduler

import (
	"context"
	"fmt"
	"slices"
)

// readLeader reads who leads, for a job of the leader.
func (x *explainer) readLeader(ctx context.Context) error {
	if !x.entry.Leader || x.client.leaders == nil {
		return nil
	}
	l, err := x.client.leaders.Leader(ctx, x.client.namespace)
	x.leader = &l
	return err
}

// led says whether somebody leads who runs the job.
func (x *explainer) led() bool { return x.leads() && x.leaderHasCode() }

func (x *explainer) leads() bool {
	return x.leader != nil && x.leader.Term > 0 && x.leader.Until.IsZero()
}

func (x *explainer) leaderHasCode() bool {
	return slices.Contains(replicas(x.overview, x.entry.Job, x.inForce()), x.leader.Replica)
}

// tellWho says who may run it by what is alive in the store: the leader, or the key's owner.
func (x *explainer) tellWho() {
	switch l := x.leader; {
	case !x.entry.Leader:
		x.tellOwner()
	case l == nil:
		x.say("It is a job of the leader (jobs.Leader), and this store does not keep who that is.")
	case x.led():
		x.say("It is a job of the leader (jobs.Leader): that is replica %q since %s, in term %d.", l.Replica, instant(l.Since), l.Term)
	case x.leads():
		x.say("It is a job of the leader (jobs.Leader): that is replica %q since %s, in term %d. It does not have the definition that is in force, so that after a Lease the owners of the job's keys run it.",
			l.Replica, instant(l.Since), l.Term)
		x.tellOwner()
	default:
		last := "nobody has ever led"
		if l.Term > 0 {
			last = fmt.Sprintf("nobody has led since %s: %q was the last, in term %d (%s)", instant(l.Until), l.Replica, l.Term, l.Why)
		}
		meanwhile := "It is held"
		if efficient(x.entry) {
			meanwhile = "Its dues are left out"
		}
		x.say("It is a job of the leader (jobs.Leader), and %s. %s until somebody leads, or until nobody has led for Job.HandOverAfter, if the job sets that: then the owners of its keys run it.", last, meanwhile)
	}
}

// asLeader is what a claim says of its term.
func (x *explainer) asLeader() string {
	if x.run.Term == 0 {
		return ""
	}
	return fmt.Sprintf(", as the leader of term %d", x.run.Term)
}
