package schedulertest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// network is the membership of all replicas, as each sees it at once.
type network struct {
	mu      sync.Mutex
	seats   map[string]*seat // by name; the newest process of it
	side    map[string]int   // those that are not named are on side 0
	changed chan struct{}    // closed once something is new
}

func newNetwork() *network {
	return &network{seats: map[string]*seat{}, changed: make(chan struct{})}
}

// join gives a new process its place. It takes that of an older one of the name.
func (n *network) join(name, boot string) *seat {
	s := &seat{network: n, name: name, boot: boot, hints: make(chan struct{}, 1), lost: map[string]time.Time{}}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.seats[name] = s
	for _, other := range s.visibleLocked() {
		delete(other.lost, name)
	}
	return s
}

// split puts members on sides that do not see each other.
func (n *network) split(side map[string]int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	before := n.side
	n.side = side
	for _, a := range n.seats {
		for _, b := range n.seats {
			switch {
			case side[a.name] == side[b.name]:
				delete(a.lost, b.name)
			case before[a.name] == before[b.name]:
				a.loseLocked(b)
			}
		}
	}
	n.tellLocked()
}

func (n *network) tellLocked() {
	close(n.changed)
	n.changed = make(chan struct{})
}

// seat is one process's place in the network: its scheduler.Members, with the powers to be told apart from other processes of its name, to hint,
// and to tell who is missing.
type seat struct {
	*network
	name, boot string
	hints      chan struct{}

	// Under network.mu.
	state string
	facts map[string]string
	lost  map[string]time.Time // when members vanished from its sight without leaving, by name
}

func (s *seat) Self() string { return s.name }

func (s *seat) Boot() string { return s.boot }

// thereLocked reports whether the process has a place still.
func (s *seat) thereLocked() bool { return s.seats[s.name] == s }

// visibleLocked are the others that this process sees, and itself.
func (s *seat) visibleLocked() []*seat {
	if !s.thereLocked() {
		return nil
	}
	var list []*seat
	for name, other := range s.seats {
		if s.side[name] == s.side[s.name] {
			list = append(list, other)
		}
	}
	return list
}

func (s *seat) Watch() ([]string, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var owners []string
	for _, other := range s.visibleLocked() {
		if other.state == serving {
			owners = append(owners, other.name)
		}
	}
	slices.Sort(owners)
	return owners, s.changed
}

// serving is the state of those that own keys; see scheduler.Members.
const serving = "serving"

func (s *seat) Announce(_ context.Context, state, _, _ string, facts map[string]string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.thereLocked() {
		s.state, s.facts = state, maps.Clone(facts)
		s.tellLocked()
	}
	return nil
}

func (s *seat) Facts() map[string]map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	facts := map[string]map[string]string{}
	for _, other := range s.visibleLocked() {
		if other != s && other.facts != nil {
			facts[other.name] = maps.Clone(other.facts)
		}
	}
	return facts
}

func (s *seat) Hint(_ context.Context, member string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, other := range s.visibleLocked() {
		if other.name == member {
			select {
			case other.hints <- struct{}{}:
			default:
			}
		}
	}
	return nil
}

func (s *seat) Hints() <-chan struct{} { return s.hints }

// Missing knows what this process saw vanish: who crashed on its side, and who was cut off from it, also where these have left or crashed
// since on theirs.
func (s *seat) Missing() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var names []string
	for name, at := range s.lost {
		if time.Since(at) < jobs.MissingFor {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// loseLocked notes that another one vanished.
func (s *seat) loseLocked(other *seat) { s.lost[other.name] = time.Now() }

// leave gives the place up, and those who see it know that.
func (s *seat) leave() { s.giveUp(func(*seat) {}) }

// vanish is a crash: those who see it miss it.
func (s *seat) vanish() { s.giveUp(func(other *seat) { other.loseLocked(s) }) }

func (s *seat) giveUp(seen func(by *seat)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.thereLocked() {
		return
	}
	for _, other := range s.visibleLocked() {
		seen(other)
	}
	delete(s.seats, s.name)
	s.tellLocked()
}
