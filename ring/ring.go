package ring

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Ring is an immutable table from partition to member, safe for concurrent use
// by any number of goroutines; no method blocks. It is made by [New]. The zero
// Ring has no partitions and no members: its owner of every key is "".
type Ring struct {
	members     []string // sorted
	table       []uint16 // partition -> index of its owner in members
	mask        uint64   // partitions - 1
	points      []uint16 // the members' points around the circle, clockwise
	start       []uint32 // partition -> the point of its owner that holds it
	layout      string
	fingerprint string
}

// New builds the ring of a set of members. The order of names does not matter;
// neither names nor o is kept or changed. A name is 1 to 255 bytes, any but
// NUL, and listed once; there are 1 to 1024 of them and no more than
// partitions. Whatever breaks these bounds, or those of [Options], is in the
// error, all of it.
//
// New is pure computation. It took 6 ms for 10 members, 94 ms for 100 and
// 0.9 s for 300 at the default layout, growing with members² × VirtualNodes:
// build off the path of readers.
func New(names []string, o *Options) (*Ring, error) {
	layout := o.filled()
	if err := layout.check(); err != nil {
		return nil, err
	}
	members, err := sorted(names, layout.Partitions)
	if err != nil {
		return nil, err
	}
	table, sums, err := assign(members, layout)
	if err != nil {
		return nil, err
	}
	r := &Ring{members: members, table: table, mask: uint64(layout.Partitions - 1), layout: layout.String()}
	r.points, r.start = circle(table, sums, layout)
	r.fingerprint = r.digest()
	return r, nil
}

// digest hashes all that the ring answers from. Names hold no NUL, so the parts
// cannot run into each other.
func (r *Ring) digest() string {
	h := xxhash.New()
	h.WriteString(r.layout + "\x00" + strings.Join(r.members, "\x00") + "\x00")
	b := make([]byte, 0, 2*len(r.table))
	for _, i := range r.table {
		b = binary.LittleEndian.AppendUint16(b, i)
	}
	h.Write(b)
	return fmt.Sprintf("%016x", h.Sum64())
}

// Slot is the xxhash64 of key (seed 0) modulo 65536. It is stable for ever:
// applications store it beside their keys. A key's partition is its slot modulo
// the number of partitions, whatever that is. It does not allocate.
func Slot(key string) int {
	return int(xxhash.Sum64String(key) % maxPartition)
}

// Partition is Slot(key) modulo the number of partitions.
func (r *Ring) Partition(key string) int {
	return int(xxhash.Sum64String(key) & r.mask)
}

// Owner is the member that goes first for key, any key, "" included. It costs
// one hash of the key and two array reads, and does not allocate.
func (r *Ring) Owner(key string) string {
	// The test stands in for a bounds check and answers for the zero Ring.
	if p := xxhash.Sum64String(key) & r.mask; p < uint64(len(r.table)) {
		return r.members[r.table[p]]
	}
	return ""
}

// Owned is the partitions name owns, ascending; nil if it is no member or owns
// none. The caller may keep and change it.
func (r *Ring) Owned(name string) []int {
	i, ok := slices.BinarySearch(r.members, name)
	if !ok {
		return nil
	}
	var owned []int
	for p, owner := range r.table {
		if int(owner) == i {
			owned = append(owned, p)
		}
	}
	return owned
}

// Members is the names, sorted. The caller may keep and change it.
func (r *Ring) Members() []string { return slices.Clone(r.members) }

// Partitions is the number of partitions.
func (r *Ring) Partitions() int { return len(r.table) }

// Layout is the layout alone, in a few characters: "r1:4096:200:1.1" is
// revision 1 of the algorithm, 4096 partitions, 200 virtual nodes, load 1.1.
// Rings of the same members agree if and only if it is the same on all
// replicas, so that is what they announce to each other.
func (r *Ring) Layout() string { return r.layout }

// Fingerprint is 16 hexadecimal digits over members, layout and table: equal on
// two replicas when their rings are (but for one chance in 2^64).
func (r *Ring) Fingerprint() string { return r.fingerprint }
