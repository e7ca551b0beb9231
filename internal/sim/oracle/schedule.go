package oracle

// Schedule names dues by brute force: every instant that is Phase modulo
// Period, every one of At, and the first second of each minute of the hour whose bit
// is set in Minutes. All else are Unix seconds; no Period: none of the first kind.
type Schedule struct {
	Period, Phase int64
	At            []int64
	Minutes       uint64
}

func (s Schedule) names(t int64) bool {
	if s.Period > 0 && (t-s.Phase)%s.Period == 0 {
		return true
	}
	if t%60 == 0 && s.Minutes>>(t/60%60)&1 == 1 {
		return true
	}
	for _, at := range s.At {
		if at == t {
			return true
		}
	}
	return false
}

// dues are those in (from, to], ascending.
func (s Schedule) dues(from, to int64) []int64 {
	var d []int64
	for t := from + 1; t <= to; t++ {
		if s.names(t) {
			d = append(d, t)
		}
	}
	return d
}

// next is the first due after t; false where there is none.
func (s Schedule) next(t int64) (due int64, ok bool) {
	end := t + s.Period
	if s.Minutes != 0 {
		end = max(end, t+3600)
	}
	for _, at := range s.At {
		end = max(end, at)
	}
	for t++; t <= end; t++ {
		if s.names(t) {
			return t, true
		}
	}
	return 0, false
}
