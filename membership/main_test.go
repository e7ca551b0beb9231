package membership

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/internal/simnet"
	"github.com/hashicorp/memberlist"
)

func TestMain(m *testing.M) {
	victims()
	goleak.VerifyTestMain(m)
}

// fleet is some members on one network in memory, in a bubble.
type fleet struct {
	*testing.T
	net    *simnet.Net
	listen func() memberlist.NodeAwareTransport // a host for one that joins
	seed   uint64
	all    []*Cluster
}

// bubble runs a test once for each of several seeds, in fake time, and closes what it joined.
func bubble(t *testing.T, seeds int, run func(f *fleet)) {
	t.Helper()
	for i := range seeds {
		seed := uint64(i + 1)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := &fleet{T: t, net: simnet.New(seed), seed: seed}
				f.listen = func() memberlist.NodeAwareTransport { return f.net.Listen() }
				defer time.Sleep(time.Minute) // late timers and dials of memberlist
				defer f.closeAll()            // also after a Fatal, or the bubble would end with goroutines in it
				run(f)
			})
		})
	}
}

func (f *fleet) closeAll() {
	for _, c := range f.all {
		if err := c.Close(); err != nil {
			f.Error(err)
		}
	}
}

// quietLog is for members whose warnings a test provokes.
func quietLog() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// join adds one member that has not announced anything.
func (f *fleet) join(c Config) *Cluster {
	f.Helper()
	c.Logger = orQuiet(c.Logger)
	if c.Namespace == "" {
		c.Namespace = "test"
	}
	cl, err := joinOn(context.Background(), c, f.listen())
	if err != nil {
		f.Fatal(err)
	}
	f.all = append(f.all, cl)
	return cl
}

func orQuiet(l *slog.Logger) *slog.Logger {
	if l == nil {
		return quietLog()
	}
	return l
}

// joinOn joins over a transport of the test.
func joinOn(ctx context.Context, c Config, t memberlist.NodeAwareTransport) (*Cluster, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	return join(ctx, c, func(context.Context, *log.Logger) (memberlist.NodeAwareTransport, error) { return t, nil })
}

// serve adds n serving members named a, b, c …, all with the first as their seed.
func (f *fleet) serve(n int, p Profile) []*Cluster {
	f.Helper()
	return f.serveAs(n, Config{Profile: p})
}

// serveAs does the same with more than a profile.
func (f *fleet) serveAs(n int, c Config) []*Cluster {
	f.Helper()
	for i := range n {
		c.Name, c.Seeds = letter(i), addrs(f.all[:min(1, i)])
		f.announce(f.join(c), Serving)
	}
	f.agree(formed, f.all, names(n))
	return f.all
}

// formed bounds how long members that start together take to agree. A hundred took 4 s.
const formed = 30 * time.Second

func letter(i int) string { return fmt.Sprintf("m%02d", i) }

func names(n int) []string {
	var all []string
	for i := range n {
		all = append(all, letter(i))
	}
	return all
}

func (f *fleet) announce(c *Cluster, s State) {
	f.Helper()
	if err := c.Announce(context.Background(), s.String(), "layout", "", nil); err != nil {
		f.Fatal(err)
	}
}

func owners(c *Cluster) []string {
	o, _ := c.Watch()
	return o
}

// agree waits until all of cs see exactly these owners, and returns how long that took.
func (f *fleet) agree(most time.Duration, cs []*Cluster, want []string) time.Duration {
	f.Helper()
	return f.within(most, fmt.Sprintf("owners %v", want), func() bool {
		return !slices.ContainsFunc(cs, func(c *Cluster) bool { return !slices.Equal(owners(c), want) })
	})
}

// within waits until ok, for at most that long in fake time, and returns how long it took.
func (f *fleet) within(most time.Duration, what string, ok func() bool) time.Duration {
	f.Helper()
	begun := time.Now()
	for !ok() {
		if time.Since(begun) >= most {
			for _, c := range f.all {
				f.Logf("%s sees %v of %v", c.Self(), owners(c), c.Members())
			}
			f.Fatalf("seed %d: not within %s: %s; repeat with -run '%s'", f.seed, most, what, f.Name())
		}
		time.Sleep(10 * time.Millisecond)
	}
	return time.Since(begun)
}

func addrs(cs []*Cluster) []string {
	var all []string
	for _, c := range cs {
		all = append(all, c.Addr())
	}
	return all
}

// syncBuffer is a log's destination.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}
