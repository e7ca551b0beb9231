package demo

import "time"

// visit is one customer in one night: what is to be charged exactly once.
type visit struct {
	customer string
	night    int64 // Unix seconds
}

// tally counts what the ledger says.
type tally struct {
	calls   int
	charges int           // calls that took money
	paid    map[visit]int // how often each planned visit was charged
	nights  []nightTally
	index   map[int64]int // of nights, by Unix seconds
}

type nightTally struct {
	paid      int            // customers charged
	byReplica map[string]int // charges
	byProcess map[int]int    // charges
	last      time.Time      // of the charges
}

func newTally(nights []time.Time) *tally {
	t := &tally{paid: map[visit]int{}, index: map[int64]int{}, nights: make([]nightTally, len(nights))}
	for i, n := range nights {
		t.index[n.Unix()] = i
		t.nights[i] = nightTally{byReplica: map[string]int{}, byProcess: map[int]int{}}
	}
	return t
}

func (t *tally) add(c call) {
	t.calls++
	if !c.First {
		return
	}
	t.charges++
	i, planned := t.index[c.Night.Unix()]
	if !planned {
		return // it stays a charge too many
	}
	n := &t.nights[i]
	v := visit{c.Customer, c.Night.Unix()}
	if t.paid[v]++; t.paid[v] == 1 {
		n.paid++
	}
	n.byReplica[c.Replica]++
	n.byProcess[c.Pid]++
	n.last = c.At
}

// double is how many charges there are beyond one for each planned visit.
func (t *tally) double() int { return t.charges - len(t.paid) }

// once is how many planned visits were charged exactly once.
func (t *tally) once() (n int) {
	for _, times := range t.paid {
		if times == 1 {
			n++
		}
	}
	return n
}
