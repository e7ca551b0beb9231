package ring

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
)

// Bounds of a layout and of a member set. The last three keep the time of New
// bounded: it grows with members² × virtual nodes.
const (
	maxPartition = 65536 // the range of Slot
	maxVirtual   = 512
	maxMember    = 1024
	maxName      = 255 // bytes
)

// revision is raised whenever the same names and the same numbers would give
// another table or other successors, so that replicas of two versions see that
// they disagree.
const revision = "r1"

// Options is the layout of a ring. Every replica of a cluster must use the same
// one; [Ring.Layout] is what they compare. Zero fields take their default, a
// nil *Options is all defaults, and negative values are refused.
type Options struct {
	// Partitions is the number of partitions, a power of two from 1 to 65536.
	// More of them spread keys more evenly and make a pass over all of them
	// longer. There cannot be more members than partitions. Default 4096.
	Partitions int

	// VirtualNodes is the number of points each member has on the ring, 2 to
	// 512. More of them move less at a join or leave; the time of New grows in
	// proportion. With 200, up to 30 members, a join or leave moves at most 1.12
	// times the ideal share on average over who it is, and seldom 1.3 times;
	// with 100, 1.23 and 1.5. Default 200.
	VirtualNodes int

	// Load bounds a member's share: no member owns more than
	// ceil(Partitions / members × Load) partitions. Finite and above 1; nearer
	// to 1 is more even and moves more at a join or leave. Default 1.10.
	Load float64
}

// filled returns a copy with the defaults in place of zeros.
func (o *Options) filled() Options {
	var c Options
	if o != nil {
		c = *o
	}
	if c.Partitions == 0 {
		c.Partitions = 4096
	}
	if c.VirtualNodes == 0 {
		c.VirtualNodes = 200
	}
	if c.Load == 0 {
		c.Load = 1.10
	}
	return c
}

// check returns all that is wrong with a filled layout.
func (o Options) check() error {
	var errs []error
	if o.Partitions < 1 || o.Partitions > maxPartition || bits.OnesCount(uint(o.Partitions)) != 1 {
		errs = append(errs, fmt.Errorf("ring: Partitions %d: not a power of two from 1 to %d; use 4096, or 0 for the default",
			o.Partitions, maxPartition))
	}
	if o.VirtualNodes < 2 || o.VirtualNodes > maxVirtual {
		errs = append(errs, fmt.Errorf("ring: VirtualNodes %d: not from 2 to %d; use 200, or 0 for the default",
			o.VirtualNodes, maxVirtual))
	}
	// Written so that NaN fails too.
	if !(o.Load > 1) || math.IsInf(o.Load, 1) {
		errs = append(errs, fmt.Errorf("ring: Load %v: not a finite number above 1; use 1.10, or 0 for the default", o.Load))
	}
	return errors.Join(errs...)
}

// String is the layout in a few characters, equal for equal layouts: r1:4096:200:1.1.
func (o Options) String() string {
	return revision + ":" + strconv.Itoa(o.Partitions) + ":" + strconv.Itoa(o.VirtualNodes) + ":" +
		strconv.FormatFloat(o.Load, 'g', -1, 64)
}
