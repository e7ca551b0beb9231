package membership

import "fmt"

// Refusal is why something that came in was not let through to the gossip. What was refused changes nothing: no
// member comes, goes or is seen otherwise for it. Its String is one lower-case word, fit for a metric's label.
type Refusal int

// The numbers are on the wire (see gate.explain): add new ones before refusals only.
const (
	// RefusedAddress came from outside Config.Allow. Add its network there if it is to be a member; if not, close the
	// port to it.
	RefusedAddress Refusal = iota
	// RefusedLabel came from another namespace: two clusters meet, by a wrong seed or an address used again. They never
	// merge. Give both the same Config.Namespace if they are one, else take the seed out.
	RefusedLabel
	// RefusedStranger does not speak Belfry's gossip at all: a scraper, health check or port scan. Point it at the
	// program's own HTTP port.
	RefusedStranger
	// RefusedPlaintext came unencrypted into a cluster with a key. Give its sender the same Config.Secrets.
	RefusedPlaintext
	// RefusedKey was encrypted with a key that this replica does not have, or has no key at all for; or was damaged on
	// its way. Give all replicas a key in common, see Rotate.
	RefusedKey
	// RefusedSize was larger than anything that Belfry sends: a packet above 4 KiB, a message above 1 MiB, or a part of
	// one above its own bound. If a replica sent it, the versions differ; if not, it is an attack.
	RefusedSize
	// RefusedMalformed cannot be read: cut off, damaged, compressed (no replica compresses) or of an unknown kind. Look
	// for a bad link, another version, or an attack.
	RefusedMalformed
	// RefusedSlow is a connection whose first message was not there within 5 s (10 s with WAN). Look for who opens
	// connections and says nothing; if it is a replica, for loss, or an MTU that is too small on the way.
	RefusedSlow
	// RefusedCrowded is a connection that was closed, being the oldest, since more than 128 were being read, or more
	// than 32 MiB from them; or a process that is new where 2,048 are known, or came within a minute. See who opens so many, and close the port to them.
	RefusedCrowded
	// RefusedMeta is a member of the gossip whose announcement cannot be read; it is not shown and owns nothing. Look for
	// another program, or a version of another format, with the same namespace and key.
	RefusedMeta

	refusals int = iota
)

// advice has a word for each refusal, and what a person can do.
var advice = [refusals]struct{ word, do string }{
	RefusedAddress:   {"address", "add its network to Config.Allow if it is to be a member, else close the port to it"},
	RefusedLabel:     {"label", "give both the same Config.Namespace if they are one cluster, else take the seed that leads from one to the other out"},
	RefusedStranger:  {"stranger", "see what calls this port; a scraper or health check belongs to the program's own HTTP port"},
	RefusedPlaintext: {"plaintext", "give its sender the same Config.Secrets"},
	RefusedKey:       {"key", "give all replicas a key in common in Config.Secrets"},
	RefusedSize:      {"size", "if a replica sent it, look for another version of the program, else close the port to its sender"},
	RefusedMalformed: {"malformed", "if a replica sent it, look for a damaging link or another version of the program, else close the port to its sender"},
	RefusedSlow:      {"slow", "if it is a replica, look for loss or a small MTU on the way, else close the port to it"},
	RefusedCrowded:   {"crowded", "see who comes in such numbers, and close the port to them"},
	RefusedMeta:      {"meta", "look for another program or version with this namespace and key"},
}

// String returns the reason as one word, such as "key".
func (r Refusal) String() string {
	if r < 0 || int(r) >= refusals {
		return fmt.Sprintf("refusal(%d)", int(r))
	}
	return advice[r].word
}

// MarshalText is String, for JSON and metrics.
func (r Refusal) MarshalText() ([]byte, error) { return []byte(r.String()), nil }

// UnmarshalText takes what MarshalText gave; the error is a word that is no refusal.
func (r *Refusal) UnmarshalText(b []byte) error {
	for known := range Refusal(refusals) {
		if string(b) == known.String() {
			*r = known
			return nil
		}
	}
	return fmt.Errorf("membership: %.40q is no refusal", b)
}

// refusedError is what was wrong with something that came in.
type refusedError struct {
	why  Refusal
	what string // of its kind, with values
}

func refuse(why Refusal, format string, args ...any) error {
	return &refusedError{why, fmt.Sprintf(format, args...)}
}

func (e *refusedError) Error() string { return e.why.String() + ": " + e.what }
