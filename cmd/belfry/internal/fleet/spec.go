package fleet

import (
	"context"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
	"github.com/belfry-go/belfry/membership"
)

// Timing is how fast a fleet notices things: see the fields of the same names in scheduler.Config.
type Timing struct {
	Lease, Grace, Sweep, Drain time.Duration
}

// Brisk is the timing for a show and a measurement: as short as one SQLite file allows to that many replicas. With
// more than three writers a call may wait so long for the file that a lease of 2 s could lapse for nothing.
func Brisk(replicas int) Timing {
	t := Timing{Lease: 2 * time.Second, Grace: time.Second, Sweep: 200 * time.Millisecond, Drain: 5 * time.Second}
	if replicas > 3 {
		t.Lease = 4 * time.Second
	}
	return t
}

// Spec is the first document a replica is told: who it is, and what it runs on.
type Spec struct {
	Name        string
	Namespace   string
	Store       string   // URL; it may have a password, so it goes through the pipe and is printed nowhere
	Seeds       []string // gossip addresses of some others
	Profile     membership.Profile
	Secrets     [][]byte // of gossip
	Concurrency int
	Partitions  int           // of the ring; 0: the default
	Usage       time.Duration // how often it reports what it has used; 0: never
	Timing      Timing
}

// Join makes this process a member of the fleet's gossip.
func (s Spec) Join(ctx context.Context) (*membership.Cluster, error) {
	return membership.Join(ctx, membership.Config{Name: s.Name, Namespace: s.Namespace, Seeds: s.Seeds,
		Profile: s.Profile, Secrets: s.Secrets})
}

// connect opens the database that the store is in.
func (s Spec) connect(ctx context.Context) (*storeurl.Client, error) {
	u, err := storeurl.Parse(s.Store)
	if err != nil {
		return nil, err
	}
	return storeurl.Connect(ctx, u)
}
