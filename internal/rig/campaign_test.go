//go:build unix

package rig

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// campaign is many faults of one kind on fleets of all drivers, and what came of them.
type campaign struct {
	name, faults string

	mu                   sync.Mutex
	counts               map[string]map[string]int // of faults, by driver and point; "": none in particular
	runs                 int
	lost, doubled, other int // breaches
	abandoned            int // runs
	opened, unexplained  int // sessions, and of those how many were lost for no reason
	extra                map[string]int
}

func newCampaign(name, faults string) *campaign {
	return &campaign{name: name, faults: faults, counts: map[string]map[string]int{}, extra: map[string]int{}}
}

// count counts a fault.
func (c *campaign) count(driver, point string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts[driver] == nil {
		c.counts[driver] = map[string]int{}
	}
	c.counts[driver][point]++
}

// note counts what else there is to tell.
func (c *campaign) note(what string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.extra[what] += n
}

// suffered is how many faults there were on a driver.
func (c *campaign) suffered(driver string) (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, x := range c.counts[driver] {
		n += x
	}
	return n
}

// judged counts what the judge of one fleet said.
func (c *campaign) judged(j *judge) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.runs += len(j.rows)
	c.abandoned += j.abandoned
	c.opened, c.unexplained = c.opened+j.opened, c.unexplained+j.unexplained
	for _, text := range j.bad {
		switch kind, _, _ := strings.Cut(text, ":"); kind {
		case "lost", "done without a word", "unknown":
			c.lost++
		case "double", "overtaken", "repeated", "effects", "fence":
			c.doubled++
		default:
			c.other++
		}
	}
}

// String is the line of figures.
func (c *campaign) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []string
	all := map[string]int{}
	for _, d := range drivers {
		n := 0
		for point, x := range c.counts[d.name] {
			n += x
			all[point] += x
		}
		list = append(list, fmt.Sprintf("%s %d", d.name, n))
	}
	text := fmt.Sprintf("%s: %s %s (%s), %d runs: %d lost, %d double, %d other breaches; %d runs given up after five crashes",
		c.name, strings.Join(list, ", "), c.faults, byPoint(all), c.runs, c.lost, c.doubled, c.other, c.abandoned)
	for _, what := range slices.Sorted(maps.Keys(c.extra)) {
		text += fmt.Sprintf("; %s %d", what, c.extra[what])
	}
	return text
}

func byPoint(counts map[string]int) string {
	var list []string
	for _, point := range slices.Sorted(maps.Keys(counts)) {
		if point != "" {
			list = append(list, fmt.Sprintf("%s %d", point, counts[point]))
		}
	}
	if n := counts[""]; n > 0 {
		list = append(list, fmt.Sprintf("random %d", n))
	}
	return strings.Join(list, ", ")
}

// tell tells the figures of each driver and then all in one line.
func (c *campaign) tell(t *testing.T) {
	t.Helper()
	for _, d := range drivers {
		t.Logf("%s: %s: %s", c.name, d.name, byPoint(c.counts[d.name]))
	}
	t.Log(c)
	c.keepsSessions(t)
}

// keepsSessions demands that hardly a session is lost for no reason: replicas whose sessions keep lapsing excuse with that whatever
// they do twice. Hardly, since a machine may also be slow in ways that no replica has to wait for a processor.
func (c *campaign) keepsSessions(t *testing.T) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unexplained > 3+c.opened/20 {
		t.Errorf("%s: of %d sessions %d were lost for no reason", c.name, c.opened, c.unexplained)
	}
}

// short tells stories to fleets of three, at once: by driver and whatever else the name says, or on each server.
func (c *campaign) short(t *testing.T, stories map[string]func(f *fleet)) {
	t.Helper()
	t.Run("on", func(t *testing.T) { // returns when all have come to their end
		for _, name := range slices.Sorted(maps.Keys(stories)) {
			kind, _, _ := strings.Cut(name, " ")
			for _, d := range drivers {
				if d.left() || d.name != kind && (kind != "server" || d.shared == nil) {
					continue
				}
				t.Run(strings.Replace(name, "server", d.name, 1), func(t *testing.T) {
					t.Parallel()
					f := newFleetOn(t, d, d.shared != nil, spec{Works: mix(), Lease: d.lease(3), Sweep: 200 * time.Millisecond})
					f.three()
					stories[name](f)
				})
			}
		}
	})
}

// share is a driver's part of a campaign's faults: SQLite takes what four in ten are, the servers what is left.
func (d *driver) share(faults int) int {
	files := faults * 2 / 5
	if d.shared == nil {
		return files
	}
	return (faults - files) / (len(drivers) - 1)
}

// long has a campaign's faults in rounds, each on a new fleet, so that the stores stay small and each row is judged. The
// drivers go on side by side, each with so many fleets at once. A round that fails is told, and others take its place.
func (c *campaign) long(t *testing.T, faults, round, lanes int, size func(*driver) int, story func(f *fleet, n int)) {
	t.Helper()
	t.Run("on", func(t *testing.T) {
		for _, d := range drivers {
			for lane := range lanes {
				t.Run(fmt.Sprintf("%s %d", d.name, lane), func(t *testing.T) {
					t.Parallel()
					want := d.share(faults)
					for i := 0; i < 2*want/round/lanes+2 && c.suffered(d.name) < want; i++ {
						n := min(round, max(len(points)+1, want-c.suffered(d.name)))
						if !t.Run(fmt.Sprint("round ", i), func(t *testing.T) { story(d.large(t, size(d), n), n) }) {
							c.note("rounds that failed", 1)
						}
						t.Logf("so far %s", c)
					}
				})
			}
		}
	})
}

// lease is that of so many processes. SQLite is slow for more than three, and servers that were killed, or that are
// reached by bad ways, take their time.
func (d *driver) lease(processes int) time.Duration {
	switch {
	case d.shared != nil:
		return max(lease(), 3*time.Second)
	case processes > 3:
		return max(lease(), 4*time.Second)
	}
	return lease()
}

// large makes a fleet of so many processes that is to suffer so many faults.
func (d *driver) large(t *testing.T, processes, faults int) *fleet {
	t.Helper()
	base := spec{Works: busy(), Lease: d.lease(processes), Sweep: 200 * time.Millisecond}
	f := newFleetOn(t, d, d.shared != nil, base)
	f.lasts(within + time.Duration(faults)*5*time.Second)
	f.several(processes)
	return f
}

// busy is mix for more than three.
func busy() []work {
	works := mix()
	for i := range 20 {
		works = append(works, work{Name: fmt.Sprintf("more-%02d", i), Every: 5 * time.Second,
			Phase: time.Duration(i%5) * time.Second, Takes: 20 * time.Millisecond, InTx: i%3 == 1})
	}
	return works
}
