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
	f.five()
	formed := time.Since(began)
	before := f.states()
	f.pass(*calmly)
	s := f.seen(before)
	t.Logf("T12: 5 replicas, one cluster after %v and then idle for %v: %d false removals, %d came, the owners changed %d times; the machine let them wait %d times",
		formed.Round(100*time.Millisecond), *calmly, s.Gone, s.Came, s.Moves, s.Stalls)
	if s.Gone+s.Came+s.Moves != 0 && s.Stalls == 0 {
		t.Error("want none of these")
	}
	f.settle(law{})
}

// five starts as many replicas and waits until they are ready.
func (f *fleet) five() {
	f.Helper()
	f.three()
	f.start("d", nil)
	f.start("e", nil)
	f.ready()
}

// T12, F11: each of five replicas has a fifth of a processor, and shares it with a process that takes all it gets. Removals are
// counted, and nothing is lost or done twice.
func TestThrottled(t *testing.T) {
	recorded(t)
	base := slowly
	base.Works = mix()
	var quotas []*quota
	for range 5 {
		quotas = append(quotas, newQuota(t))
	}
	f := newFleet(t, base)
	f.five()
	for i, name := range f.names() {
		p := f.proc(name)
		f.paused[p.Pid()] = true
		quotas[i].add(p.Pid())
		quotas[i].add(greedy(t).Pid())
	}
	before := f.states()
	for _, q := range quotas {
		q.set(20)
	}
	f.pass(*calmly)
	var stood time.Duration
	for _, q := range quotas {
		stood += q.stood()
		q.set(-1)
	}
	s := f.seen(before)
	f.merged("all were throttled")
	t.Logf("T12: 5 replicas with 20 %% of a processor each, shared with a busy neighbour, for %v: %d removals, which is %.2f per replica-hour; they were throttled for %v, summed over the processors",
		*calmly, s.Gone, float64(s.Gone)/5/calmly.Hours(), stood.Round(time.Second))
	if stood < *calmly {
		t.Errorf("they were throttled for %v only", stood)
	}
	f.settle(law{})
}
