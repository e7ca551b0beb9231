package ring

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/buraksezer/consistent"
	"github.com/cespare/xxhash/v2"
)

// member is an index into the sorted names, dressed for consistent.
type member struct {
	name  string
	index uint16
}

func (m member) String() string { return m.name }

// recorder is the hash consistent is given. It keeps each sum in the order
// asked: first VirtualNodes points of each member in turn, then each partition.
// That is how the points, which consistent keeps to itself, become known for
// the successors without a second copy of its key format.
type recorder struct{ sums []uint64 }

func (r *recorder) Sum64(b []byte) uint64 {
	h := xxhash.Sum64(b)
	r.sums = append(r.sums, h)
	return h
}

// sorted returns a sorted copy of names, or all that is wrong with them.
func sorted(names []string, partitions int) ([]string, error) {
	switch n := len(names); {
	case n == 0:
		return nil, errors.New("ring: no members; a replica is always in its own ring, so list at least that one")
	case n > maxMember:
		return nil, fmt.Errorf("ring: %d members: more than %d; split the fleet into several namespaces", n, maxMember)
	case n > partitions:
		return nil, fmt.Errorf("ring: %d members: not enough room in %d partitions; raise Partitions to at least the number of members",
			n, partitions)
	}
	s := slices.Clone(names)
	slices.Sort(s)
	var errs []error
	for i, name := range s {
		if err := checkName(name); err != nil {
			errs = append(errs, err)
		} else if i > 0 && s[i-1] == name {
			errs = append(errs, fmt.Errorf("ring: member %s: listed twice; give each replica a name of its own", quote(name)))
		}
	}
	return s, errors.Join(errs...)
}

func checkName(name string) error {
	switch {
	case name == "":
		return errors.New(`ring: member "": empty name; give each replica a name, such as its host name`)
	case len(name) > maxName:
		return fmt.Errorf("ring: member %s: name of %d bytes; use at most %d", quote(name), len(name), maxName)
	case strings.ContainsRune(name, 0):
		return fmt.Errorf("ring: member %s: name holds a NUL byte; take it out", quote(name))
	}
	return nil
}

// quote quotes a name for an error, cut so that a hostile one cannot flood it.
func quote(name string) string {
	const cut = 40
	if len(name) > cut {
		return fmt.Sprintf("%q…", name[:cut])
	}
	return fmt.Sprintf("%q", name)
}

// assign computes the table by consistent, from scratch and from sorted names:
// its Add and Remove depend on history. Whatever it panics with is an error.
func assign(names []string, o Options) (table []uint16, sums []uint64, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("ring: %d members in layout %s: %v; raise Load or Partitions", len(names), o, p)
		}
	}()
	members := make([]consistent.Member, len(names))
	for i, name := range names {
		members[i] = member{name, uint16(i)}
	}
	rec := &recorder{sums: make([]uint64, 0, len(names)*o.VirtualNodes+o.Partitions)}
	c := consistent.New(members, consistent.Config{
		Hasher: rec, PartitionCount: o.Partitions, ReplicationFactor: o.VirtualNodes, Load: o.Load,
	})
	table = make([]uint16, o.Partitions)
	for p := range table {
		table[p] = c.GetPartitionOwner(p).(member).index
	}
	return table, rec.sums, nil
}

// circle lays the recorded sums out as a circle: the member at each point in
// ascending order, and for each partition the point of its owner that lies
// first at or after it. It is there that the walk for a place ended.
func circle(table []uint16, sums []uint64, o Options) (points []uint16, start []uint32) {
	type point struct {
		hash  uint64
		index uint16
	}
	all := make([]point, len(sums)-o.Partitions)
	for i := range all {
		all[i] = point{sums[i], uint16(i / o.VirtualNodes)}
	}
	slices.SortFunc(all, func(a, b point) int {
		return cmp.Or(cmp.Compare(a.hash, b.hash), cmp.Compare(a.index, b.index))
	})
	points = make([]uint16, len(all))
	for i, pt := range all {
		points[i] = pt.index
	}
	start = make([]uint32, o.Partitions)
	for p, hash := range sums[len(all):] {
		at, _ := slices.BinarySearchFunc(all, hash, func(a point, h uint64) int { return cmp.Compare(a.hash, h) })
		if at == len(all) {
			at = 0
		}
		for points[at] != table[p] {
			at = (at + 1) % len(points)
		}
		start[p] = uint32(at)
	}
	return points, start
}
