//go:build unix

package rig

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/membership"
)

// slowly is the setting of a cluster in production: profile LAN, and the default timing of the store.
var slowly = spec{Profile: membership.LAN, Lease: 10 * time.Second, Sweep: time.Second}

// T12: nothing happens to five replicas, and they see nothing happen. It runs beside no other test: a machine that has
// no time for a replica is no calm one.
func TestCalm(t *testing.T) {
	f := newFleet(t, slowly)
	f.three()
	f.start("d", nil)
	f.start("e", nil)
	f.ready()
	before := f.states()
	f.pass(*calmly)
	gone, came, moves := 0, 0, 0
	for name, s := range f.states() {
		gone, came, moves = gone+s.Gone-before[name].Gone, came+s.Came-before[name].Came, moves+s.Moves-before[name].Moves
	}
	t.Logf("5 replicas idle for %v: they saw %d members go and %d come, and the owners change %d times", *calmly, gone, came, moves)
	if gone+came+moves != 0 {
		t.Error("want none of these")
	}
	f.settle(law{})
}
