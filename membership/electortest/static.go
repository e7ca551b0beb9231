package electortest

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// Elector is what Run tests and Static has; it is scheduler.Elector.
type Elector interface {
	Lead(ctx context.Context, lead func(ctx context.Context, term int64) error) error
}

// Why a term of a Static ends; context.Cause of the leader's context has it.
var (
	errDeposed = errors.New("electortest: deposed by the test")
	errReplace = errors.New("electortest: another was elected by the test")
	errDone    = errors.New("electortest: lead has returned")
)

// Static is an election that a test decides. Nobody leads until Elect. It starts no goroutine and has no clock, so it serves in a bubble of
// testing/synctest. Its methods may be called from any goroutine and never block.
type Static struct {
	mu      sync.Mutex
	term    int64  // the highest that was drawn
	leader  string // who is elected, whether it stands or not; "": nobody
	end     context.CancelCauseFunc
	changed chan struct{}   // closed, and made anew, with each change of the above
	stands  map[string]bool // whose Lead is under way
}

// NewStatic returns an election without a leader.
func NewStatic() *Static {
	return &Static{changed: make(chan struct{}), stands: make(map[string]bool)}
}

// Elect makes a replica the leader, in a new term, which it returns. The context of the one before has ended when Elect returns; its lead may still be
// returning when the new one's is called. A replica that does not stand yet leads as soon as it does. One that leads already
// leads anew, when its lead has returned. One whose lead returns, or whose Lead ends, leads no more.
func (s *Static) Elect(name string) (term int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.term++
	s.changeLocked(name, errReplace)
	return s.term
}

// Depose ends the term, if there is one: nobody leads.
func (s *Static) Depose() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.changeLocked("", errDeposed)
}

// changeLocked sets who leads, and ends the term before with its reason.
func (s *Static) changeLocked(name string, why error) {
	if s.end != nil {
		s.end(why)
	}
	s.leader, s.end = name, nil
	close(s.changed)
	s.changed = make(chan struct{})
}

// For returns the elector of one replica. Its Lead fails while another Lead for that name is under way.
func (s *Static) For(name string) Elector { return &seat{s, name} }

// seat is a replica's part in the election.
type seat struct {
	*Static
	name string
}

// Lead calls lead whenever the test has elected this replica.
func (s *seat) Lead(ctx context.Context, lead func(ctx context.Context, term int64) error) error {
	if err := s.stand(); err != nil {
		return err
	}
	defer s.leave()
	for {
		at, term, changed := s.elected(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if at != nil {
			s.serve(at, term, lead)
			continue
		}
		select {
		case <-changed:
		case <-ctx.Done():
		}
	}
}

func (s *seat) stand() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stands[s.name] {
		return fmt.Errorf("electortest: Lead of %q is under way already; one replica stands once", s.name)
	}
	s.stands[s.name] = true
	return nil
}

func (s *seat) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.stands, s.name)
	if s.leader == s.name {
		s.changeLocked("", errDone)
	}
}

// elected begins the term of this replica where it was elected: the term's context, or nil.
func (s *seat) elected(ctx context.Context) (at context.Context, term int64, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leader != s.name || s.end != nil {
		return nil, 0, s.changed
	}
	at, s.end = context.WithCancelCause(ctx)
	return at, s.term, s.changed
}

// serve resigns when lead has returned, in whatever way, unless the term was over before.
func (s *seat) serve(at context.Context, term int64, lead func(context.Context, int64) error) {
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.term == term && s.leader == s.name {
			s.changeLocked("", errDone)
		}
	}()
	lead(at, term) // what it failed with is the test's own
}
