//go:build unix

package rig

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/membership"
)

// slowly is the setting of a cluster in production: profile LAN, and the default timing of the store.
var slowly = spec{Profile: membership.LAN, Lease: 10 * time.Second, Sweep: time.Second}

// T12: nothing happens to five replicas, and they see nothing happen. It runs beside no other test: a replica that
// the machine has no time for is no member in the others' eyes, and that is no mistake of theirs.
func TestCalm(t *testing.T) {
	f := newFleet(t, slowly)
	began := time.Now()
	f.three()
	f.start("d", nil)
	f.start("e", nil)
	f.ready()
	formed := time.Since(began)
	before := f.states()
	f.pass(*calmly)
	s := f.seen(before)
	t.Logf("5 replicas, one cluster after %v and then idle for %v: they saw %d members go and %d come, and the owners change %d times; the machine let them wait %d times",
		formed.Round(100*time.Millisecond), *calmly, s.Gone, s.Came, s.Moves, s.Stalls)
	if s.Gone+s.Came+s.Moves != 0 && s.Stalls == 0 {
		t.Error("want none of these")
	}
	f.settle(law{})
}
