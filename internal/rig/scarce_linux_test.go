package rig

import (
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// F64: a replica has no descriptor left for anything new, and hardly any memory before it collects. It degrades, and goes on
// when there is more; nothing is lost and nothing runs twice.
func TestScarce(t *testing.T) {
	t.Parallel()
	f := newFleet(t, spec{Works: mix()})
	f.three()
	for range times(1) {
		p := f.anyone(nil)
		before := f.descriptors(p, 3) // its standard ones: all others it has stay, and no new one can be had
		f.order(p, order{Memory: 1 << 20})
		f.pass(4 * time.Second)
		f.descriptors(p, before)
		f.order(p, order{Memory: -1})
		f.ready()
	}
	f.settle(law{})
}

// descriptors sets how many a process may have, and returns how many it might have before.
func (f *fleet) descriptors(p *proc, n uint64) uint64 {
	f.Helper()
	var before unix.Rlimit
	if err := unix.Prlimit(p.Pid(), unix.RLIMIT_NOFILE, nil, &before); err != nil {
		f.Fatal(err)
	}
	if err := unix.Prlimit(p.Pid(), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: before.Max}, nil); err != nil {
		f.Fatal(err)
	}
	return before.Cur
}
