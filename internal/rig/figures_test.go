//go:build unix

package rig

import (
	"flag"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

var size = flag.String("rig.size", "small", "how many faults the tests make whose figures are on record: small, as in go test ./...; ci, as in .ci/run; long, as in make long")

// trials is how often a fault is to happen in a test whose figures are on record. -rig.rounds multiplies it.
func trials(small, ci, long int) int {
	switch *size {
	case "ci":
		return times(ci)
	case "long":
		return times(long)
	}
	return times(small)
}

// recorded skips a test that is of use for its figures only, and costs a minute.
func recorded(t *testing.T) {
	t.Helper()
	skipSlow(t)
	if *size == "small" {
		t.Skip("skipped: it takes about a minute; -rig.size ci runs it, as .ci/run does")
	}
}

// figures are what the fleets of one test have in common, and one line in the end. Its methods may be called from any
// goroutine.
type figures struct {
	*campaign // whose name is the row of the table of figures, such as T7

	mu     sync.Mutex
	trials int // that were judged
	failed int // fleets
	took   map[string][]time.Duration
}

func newFigures(row string) *figures {
	return &figures{campaign: newCampaign(row, ""), took: map[string][]time.Duration{}}
}

// spread makes so many trials, in fleets that make most at most, as many at once as -parallel allows. The story is told
// the fleet's number, from 0 on. A fleet that fails takes none of the others with it, and in a long run another takes its
// place: the test fails all the same, with all its figures.
func (g *figures) spread(t *testing.T, trials, most int, story func(t *testing.T, i, n int)) {
	t.Helper()
	tries := 1
	if *size == "long" {
		tries = 3
	}
	t.Run("fleet", func(t *testing.T) { // returns when all have come to their end
		for i, left := 0, trials; left > 0; i, left = i+1, left-most {
			n := min(most, left)
			t.Run(strconv.Itoa(i), func(t *testing.T) {
				t.Parallel()
				for try := range tries {
					if t.Run(fmt.Sprint("try ", try), func(t *testing.T) { story(t, i, n) }) {
						return
					}
					g.fails()
				}
			})
		}
	})
}

func (g *figures) fails() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.failed++
}

// judged counts what the judge said of a fleet that made so many trials.
func (g *figures) judged(trials int, j *judge) {
	g.campaign.judged(j)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.trials += trials
}

// add keeps times of a kind.
func (g *figures) add(kind string, took ...time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.took[kind] = append(g.took[kind], took...)
}

// say logs the line of the row, unless every fleet was skipped.
func (g *figures) say(t *testing.T, format string, a ...any) {
	t.Helper()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.trials+g.failed == 0 {
		return
	}
	text := fmt.Sprintf("%s: %d %s, %d runs: %d lost, %d double, %d other breaches",
		g.name, g.trials, fmt.Sprintf(format, a...), g.runs, g.lost, g.doubled, g.other)
	for _, what := range slices.Sorted(maps.Keys(g.extra)) {
		text += fmt.Sprintf("; %s %d", what, g.extra[what])
	}
	for _, kind := range slices.Sorted(maps.Keys(g.took)) {
		text += "; " + kind + " " + summary(g.took[kind])
	}
	if g.failed > 0 {
		text += fmt.Sprintf("; %d FLEETS FAILED, see above", g.failed)
	}
	t.Log(text)
}

// median of the times of a kind, 0 where there are none.
func (g *figures) median(kind string) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return rank(g.took[kind], 50)
}

// rank is the time that so many of a hundred do not exceed.
func rank(list []time.Duration, percent int) time.Duration {
	if len(list) == 0 {
		return 0
	}
	list = slices.Sorted(slices.Values(list))
	return list[max(0, (len(list)*percent+99)/100-1)]
}

func summary(list []time.Duration) string {
	brief := func(percent int) string { return fmt.Sprintf("%.2f", rank(list, percent).Seconds()) }
	return fmt.Sprintf("(%d) median %s s, p99 %s s, max %s s", len(list), brief(50), brief(99), brief(100))
}

// starts are the first starts of runs that the test asks for, by others than the processes in but.
func (f *fleet) starts(wanted func(r run) bool, but ...int) map[run]line {
	first := map[run]line{}
	for _, l := range f.book.lines {
		if _, had := first[l.run()]; !had && l.Phase == started && !slices.Contains(but, l.Pid) && wanted(l.run()) {
			first[l.run()] = l
		}
	}
	return first
}

// lateOf is how late they are, from their dues.
func lateOf(starts map[run]line) (list []time.Duration) {
	for _, l := range starts {
		list = append(list, time.Duration(l.At-l.Due*1e6)*time.Microsecond)
	}
	return list
}

// dueIn says which runs come due in [from, to], in seconds since 1970.
func dueIn(from, to int64) func(r run) bool {
	return func(r run) bool { return from <= r.due && r.due <= to }
}

// TestRank: ranks are of the sorted list, the nearest above.
func TestRank(t *testing.T) {
	t.Parallel()
	var list []time.Duration
	for i := range 200 {
		list = append(list, time.Duration(200-i)*time.Second)
	}
	for percent, want := range map[int]time.Duration{50: 100, 99: 198, 100: 200, 1: 2} {
		if got := rank(list, percent); got != want*time.Second {
			t.Errorf("rank %d of 1 to 200: %v, want %d", percent, got, want)
		}
	}
	if got := rank(list[:1], 50) + rank(nil, 99); got != 200*time.Second {
		t.Errorf("of one and of none: %v", got)
	}
	if got := summary(list[198:]); !strings.Contains(got, "(2) median 1.00 s, p99 2.00 s") {
		t.Errorf("got %q", got)
	}
}
