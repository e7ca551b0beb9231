package sim

import (
	"fmt"
	"slices"
	"strings"
)

// Fault is a set of kinds of faults.
type Fault uint

// The kinds of faults.
const (
	Loss          Fault = 1 << iota // calls and answers are lost
	Late                            // calls happen after their sender gave up
	Slow                            // answers come late
	Kill                            // processes are killed
	Freeze                          // processes stand still, hosts are suspended
	Blind                           // a replica does not reach the store
	Outage                          // none does
	Drain                           // replicas leave and come back
	View                            // gossip is stale or asymmetric
	Down                            // the whole fleet is down for a while
	StoreClock                      // the store's clock steps, back or on
	HostClock                       // hosts' clocks are wrong, drift and are set
	FailingSource                   // key sources fail half-way
	SlowSource                      // … are slow
	LaggingSource                   // … are read from a copy that is behind
	Churn                           // keys appear and go
	Error                           // handlers fail
	Long                            // … take long
	Hang                            // … never return
	Poison                          // … kill their process
	Jam                             // … take all workers of one replica, for long
	Deploy                          // a version of the code with other schedules, perhaps taken back
	Lack                            // a replica lacks a job
	Edit                            // jobs are edited, removed, added back and renamed, again and again
	Policies                        // jobs have overlap and crash policies, deadlines and a watch for progress
	Steer                           // people pause, resume, trigger, skip, backfill, cancel and retry
	Leader                          // jobs are the leader's, whom the store elects
	Elector                         // … or an elector, whose terms end at any time, and are told of late
	Hint                            // hints are lost, late and doubled, and come in floods that mean nothing

	all Fault = 1<<iota - 1
)

var faultNames = []string{
	"loss", "late", "slow", "kill", "freeze", "blind", "outage", "drain", "view", "down", "storeclock", "hostclock",
	"failingsource", "slowsource", "laggingsource", "churn", "error", "long", "hang", "poison", "jam", "deploy", "lack",
	"edit", "policies", "steer", "leader", "elector", "hint",
}

// String lists the kinds by name, with commas.
func (f Fault) String() string {
	var names []string
	for i, name := range faultNames {
		if f>>i&1 == 1 {
			names = append(names, name)
		}
	}
	return strings.Join(names, ",")
}

// ParseFault reads what String wrote; empty is none.
func ParseFault(text string) (Fault, error) {
	var f Fault
	for _, name := range strings.FieldsFunc(text, func(r rune) bool { return r == ',' }) {
		i := slices.Index(faultNames, name)
		if i < 0 {
			return 0, fmt.Errorf("sim: unknown fault %q; there are %s", name, all)
		}
		f |= 1 << i
	}
	return f, nil
}
