package membership

import (
	"context"
	"maps"
	"slices"
	"sync"
)

// Static is a membership that never changes by itself: one process alone, or a test. Its methods may be called from
// any goroutine and never block.
type Static struct {
	self string

	mu      sync.Mutex
	names   []string // sorted, with self
	state   State
	changed chan struct{}
}

// NewStatic returns the membership of self and names; self counts once, whether named again or not. All of them
// own from the start.
func NewStatic(self string, names ...string) *Static {
	set := map[string]bool{self: true}
	for _, n := range names {
		set[n] = true
	}
	return &Static{
		self:    self,
		names:   slices.Sorted(maps.Keys(set)),
		state:   Serving,
		changed: make(chan struct{}),
	}
}

// Self returns the name given to NewStatic.
func (s *Static) Self() string { return s.self }

// Watch returns the sorted owners, and a channel that is closed when they have changed. The slice is the caller's.
func (s *Static) Watch() (owners []string, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ownersLocked(), s.changed
}

func (s *Static) ownersLocked() []string {
	if s.state == Serving || len(s.names) == 1 {
		return slices.Clone(s.names)
	}
	return slices.DeleteFunc(slices.Clone(s.names), func(n string) bool { return n == s.self })
}

// Announce sets the state of self: serving, draining or unfit. A self that drains or is unfit is left out of the
// owners, unless that would leave none. There is nobody to tell, so ctx, layout, reason and facts are not used;
// the only error is an unknown state.
func (s *Static) Announce(_ context.Context, state, _, _ string, _ map[string]string) error {
	st, err := announced(state)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := s.ownersLocked()
	s.state = st
	if slices.Equal(before, s.ownersLocked()) {
		return nil
	}
	close(s.changed)
	s.changed = make(chan struct{})
	return nil
}

// Facts returns what the others announced: nothing, since they are names only.
func (s *Static) Facts() map[string]map[string]string { return nil }
