package ring

// Move is one partition that changes hands. From or To is "" where that ring
// has no members.
type Move struct {
	Partition int
	From, To  string
}

// Plan is what would move if to followed from, by ascending partition; nil if
// nothing does. A nil or zero Ring owns nothing, so Plan(nil, r) is all of r.
// Where the two have unlike numbers of partitions, Partition counts in the
// larger one.
func Plan(from, to *Ring) []Move {
	var zero Ring
	if from == nil {
		from = &zero
	}
	if to == nil {
		to = &zero
	}
	var moves []Move
	for p := range max(from.Partitions(), to.Partitions()) {
		if a, b := from.at(p), to.at(p); a != b {
			moves = append(moves, Move{Partition: p, From: a, To: b})
		}
	}
	return moves
}

// at is the owner of the partition that holds slot p.
func (r *Ring) at(p int) string {
	if i := uint64(p) & r.mask; i < uint64(len(r.table)) {
		return r.members[r.table[i]]
	}
	return ""
}
