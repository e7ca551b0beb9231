package sim_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/sim"
	"github.com/belfry-go/belfry/internal/sim/oracle"
)

// ms is what most of a scene's instants are counted in.
const ms = time.Millisecond

// scene is a world of a test, with its history.
type scene struct {
	*sim.World
	t    *testing.T
	text bytes.Buffer
}

func newScene(t *testing.T, c sim.Config) *scene {
	t.Helper()
	s := &scene{t: t}
	c.Trace = &s.text
	if *trace {
		c.Trace = io.MultiWriter(&s.text, os.Stdout)
	}
	if c.Seed == 0 {
		c.Seed = 1
	}
	s.World = sim.New(c)
	return s
}

// play lets time pass.
func (s *scene) play(until time.Duration) {
	s.t.Helper()
	if err := s.Run(until); err != nil {
		s.t.Fatalf("at %v: %v", s.Now(), err)
	}
}

// settle plays, and demands that what was due up to limit has ended by then.
func (s *scene) settle(until, limit time.Duration) {
	s.t.Helper()
	s.play(until)
	if err := s.Settle(limit); err != nil {
		s.t.Fatal(err)
	}
}

// tally demands how many runs and dues of a job ended how.
func (s *scene) tally(job string, want map[oracle.Outcome]int) {
	s.t.Helper()
	got := s.Oracle.Tally(job)
	for _, o := range []oracle.Outcome{oracle.Done, oracle.Failed, oracle.Skipped, oracle.Missed} {
		if got[o] != want[o] {
			s.t.Errorf("job %s: %d are %v, want %d", job, got[o], o, want[o])
		}
	}
}

// lines are those of the history that hold all of the words.
func (s *scene) lines(words ...string) []string {
	var found []string
next:
	for line := range strings.Lines(s.text.String()) {
		for _, word := range words {
			if !strings.Contains(line, word) {
				continue next
			}
		}
		found = append(found, line)
	}
	return found
}

// demand fails the test where the history has fewer than n such lines: then
// the scene did not play what it is about.
func (s *scene) demand(n int, words ...string) {
	s.t.Helper()
	if got := s.lines(words...); len(got) < n {
		s.t.Errorf("the scene has %d events with %q, want %d at least", len(got), words, n)
	}
}

func done(n int) map[oracle.Outcome]int { return map[oracle.Outcome]int{oracle.Done: n} }

func every(d time.Duration) []sim.Plan { return []sim.Plan{{Every: d}} }

var errTest = errors.New("test: declined")

func at(d ...time.Duration) []sim.Plan { return []sim.Plan{{At: d}} }

// first is a fate for the first call of a name, of any replica, and chance for all others.
func first(call string, f sim.Fate) func(*sim.Replica, string) (sim.Fate, bool) {
	spent := false
	return func(_ *sim.Replica, name string) (sim.Fate, bool) {
		if spent || name != call {
			return sim.Fate{}, false
		}
		spent = true
		return f, true
	}
}
