package membership

import (
	"fmt"
	"time"
)

// State is what a member may do.
type State int

const (
	// Joining is a member that has not announced anything yet, or waits for Config.Expect. It owns nothing.
	Joining State = iota
	// Serving is a member that owns keys.
	Serving
	// Draining is a member that finishes what it runs and then leaves. It owns nothing.
	Draining
	// Unfit is a member that cannot do its work, or must not: it said so (its store is out of reach), a newer boot
	// has its name, or its layout or its store is not the one most members have. It owns nothing while any member serves.
	Unfit
)

// String returns the word that Announce takes: "joining", "serving", "draining" or "unfit".
func (s State) String() string {
	switch s {
	case Joining:
		return "joining"
	case Serving:
		return "serving"
	case Draining:
		return "draining"
	case Unfit:
		return "unfit"
	}
	return fmt.Sprintf("State(%d)", int(s))
}

// MarshalText is String, for JSON and logs.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText takes what MarshalText gave; the error is a word that is no state.
func (s *State) UnmarshalText(b []byte) error {
	for _, known := range []State{Joining, Serving, Draining, Unfit} {
		if string(b) == known.String() {
			*s = known
			return nil
		}
	}
	return fmt.Errorf("membership: %.40q is no state", b)
}

// announced turns the word given to Announce into a state. Nobody announces joining: it is what one is before.
func announced(word string) (State, error) {
	for _, s := range []State{Serving, Draining, Unfit} {
		if word == s.String() {
			return s, nil
		}
	}
	return Joining, fmt.Errorf("membership: announce: state %q is unknown; use serving, draining or unfit", word)
}

// Member is one live process as this replica sees it. It is a value; changing it changes nothing.
type Member struct {
	Name    string // the replica's stable name
	Boot    string // its random boot id, new at each start
	Addr    string // its gossip address, host:port
	Zone    string // Config.Zone of that replica
	Version string // Config.Version of that replica
	State   State
	// Reason says why the state is what it is, "" if it needs no explanation.
	Reason string
	// Since is when this replica first saw the member in its state, by this replica's clock.
	Since time.Time
}
