package membership

import (
	"bytes"
	"fmt"
	"time"
)

// expectMost is how long a replica waits for those that it expects. Where replicas are started one after the other, each
// when the one before is ready, it is what the first of them waits.
const expectMost = 30 * time.Second

// expectSettle is how long a replica that was held back goes on owning nothing when it has seen enough: the others hear
// of it now, and say themselves that they serve. Without it each would own everything for a moment.
const expectSettle = 500 * time.Millisecond

// speakLocked makes what the others are told of what was announced. A replica is joining until it has
// seen as many replicas as it expects: nobody counts it as an owner before, itself included. It reports whether there is
// something new to be sent.
func (v *view) speakLocked() (changed bool) {
	if v.expect > 0 && v.seenLocked() >= v.expect {
		v.expect = 0
		v.together = time.Now().Add(expectSettle)
		time.AfterFunc(expectSettle, v.poke)
	}
	now := v.said
	held := v.expect > 0 && now.state != Joining
	if held && now.state == Serving {
		now.reason = fmt.Sprintf("owns nothing before it has seen %d replicas (%d so far), or waited %s for them", v.expect, v.seenLocked(), expectMost)
	}
	if held { // also one that is unfit or drains: where nobody serves, those would own
		now.state = Joining
	}
	if bytes.Equal(now.encode(), v.self.encode()) {
		return false
	}
	v.self.meta = now
	v.retell()
	return true
}

// seenLocked returns how many replicas live, this one included.
func (v *view) seenLocked() int {
	names := map[string]bool{v.said.name: true}
	for _, p := range v.others {
		names[p.name] = true
	}
	return len(names)
}

// release ends the wait for more replicas.
func (v *view) release() {
	v.mu.Lock()
	wanted, seen := v.expect, v.seenLocked()
	v.expect = 0
	v.mu.Unlock()
	if wanted > 0 {
		v.logger.Warn("fewer replicas than expected; not waiting any longer", "expect", wanted, "seen", seen, "waited", expectMost)
		v.publish()
	}
}
