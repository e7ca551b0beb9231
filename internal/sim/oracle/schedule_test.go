package oracle

import "testing"

// names is whether a schedule has a due at t, as Schedule is described.
func (s Schedule) names(t int64) bool {
	named := s.Period > 0 && (t-s.Phase)%s.Period == 0 || t%60 == 0 && s.Minutes>>(t/60%60)&1 == 1
	for _, at := range s.At {
		named = named || at == t
	}
	return named
}

// The first due after each second of some hours is the one that is met by walking on second by second.
func TestNext(t *testing.T) {
	t.Parallel()
	const from, to = 1_790_000_000, 1_790_000_000 + 3*3600
	for _, s := range []Schedule{
		{},
		{Period: 1},
		{Period: 7, Phase: 3},
		{Period: 3600, Phase: 59},
		{Period: 60, Phase: to + 30},
		{At: []int64{from + 100, from + 20, from + 20, from - 5}},
		{Minutes: 1},
		{Minutes: 1<<59 | 1<<17},
		{Period: 1000, Minutes: 1 << 30, At: []int64{from + 1, to}},
	} {
		want, some := int64(0), false
		for at := int64(to + 3600); at >= from; at-- {
			if s.names(at + 1) {
				want, some = at+1, true
			}
			if due, ok := s.next(at); at < to && (ok != some || ok && due != want) {
				t.Fatalf("%+v: after %d comes %d (%t), want %d (%t)", s, at, due, ok, want, some)
			}
		}
	}
}
