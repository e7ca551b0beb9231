package membership

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	bootBytes = 8

	firstWait = 2 * time.Second        // Join's wait for a seed
	leaveStep = 600 * time.Millisecond // of Close: to tell, and to leave; above WAN's gossip interval, or nobody hears it
	closeMost = 2 * time.Second        // of Close in all: more than 2 leaveStep
)

// Cluster is this process's membership in a gossiping cluster. Make one with Join and end it with Close. Its
// methods may be called from any goroutine.
type Cluster struct {
	namespace, name, boot, addr string

	keys     *memberlist.Keyring // nil: gossip is in the clear
	view     *view
	gossip   *memberlist.Memberlist
	caller   *caller
	counters *counters

	cancel  context.CancelFunc // ends calling and announcing
	working sync.WaitGroup     // the goroutines of calling and announcing
	quit    context.CancelFunc // ends the rest, once memberlist is down
	resting sync.WaitGroup     // the goroutines of view, log and hints
	closing sync.Once
	err     error // of Close

	mu      sync.Mutex
	waiters []chan<- struct{} // Announce calls to wake when gossip has sent; capacity 1 each
	closed  bool
}

// Join listens, calls the seeds and returns the membership; until the first Announce this replica is joining and
// owns nothing. It waits for the first seed that answers, until all have failed, for 2 s, or for ctx's deadline,
// whichever comes first. Seeds that cannot be reached are not an error: Join logs what it waits for, and the
// cluster goes on calling them every 10 to 13 s. ctx does not bound the cluster's life, but canceled before the
// return it ends the attempt.
//
// The errors are a bad configuration (all of it, joined), a Bind that cannot be listened on, and ctx's.
func Join(ctx context.Context, c Config) (*Cluster, error) {
	c = c.withDefaults()
	if err := c.validate(); err != nil {
		return nil, err
	}
	at, err := c.resolve(ctx)
	if err != nil {
		return nil, err
	}
	return join(ctx, c, func(life context.Context, l *log.Logger) (memberlist.NodeAwareTransport, error) {
		t, err := listen(life, at, l)
		if err != nil && strings.Contains(err.Error(), syscall.EADDRNOTAVAIL.Error()) {
			return nil, fmt.Errorf("membership: bind %q: %w; write an address of this host, or 0.0.0.0 for all", c.Bind, err)
		}
		if err != nil {
			return nil, fmt.Errorf("membership: bind %q: %w; choose another port in Config.Bind (0 takes a free one), "+
				"or stop what uses it", c.Bind, err)
		}
		return t, nil
	})
}

// opener opens the transport; life ends when the cluster has been left.
type opener func(life context.Context, l *log.Logger) (memberlist.NodeAwareTransport, error)

// join starts everything on the transport that open returns.
func join(ctx context.Context, c Config, open opener) (*Cluster, error) {
	life, quit := context.WithCancel(context.WithoutCancel(ctx))
	p := newPump(c.Logger)
	boot := newBoot()
	n := newCounters(p)
	v := newView(meta{name: c.Name, boot: boot, born: time.Now().UnixNano(), version: c.Version, zone: c.Zone,
		reason: "starting: it has announced nothing yet"}, c.Expect, c.Logger, n)
	keys, err := newKeys(c.Secrets)
	if err != nil {
		quit()
		return nil, fmt.Errorf("membership: secrets: %w", err)
	}
	who := v.who
	p.who.Store(&who)
	g, addr, err := start(life, c, keys, v, n, open)
	if err != nil {
		quit()
		return nil, err
	}
	working, cancel := context.WithCancel(life)
	cl := &Cluster{namespace: c.Namespace, name: c.Name, boot: boot, addr: addr, keys: keys, view: v, gossip: g, caller: newCaller(c, addr, v, g),
		counters: n, cancel: cancel, quit: quit}
	c.Logger.Info("gossip listens", "boot", boot, "tells", addr, "namespace", c.Namespace, "profile", c.Profile, "keys", len(c.Secrets), "seeds", len(c.Seeds))
	cl.resting.Go(func() { p.run(life) })
	cl.resting.Go(func() { v.run(life) })
	cl.working.Go(func() { cl.announceLoop(working) })
	cl.working.Go(func() { cl.caller.run(working) })

	wait, stop := context.WithTimeout(ctx, firstWait)
	defer stop()
	select {
	case <-cl.caller.first:
	case <-wait.Done():
	}
	if errors.Is(ctx.Err(), context.Canceled) {
		return nil, errors.Join(fmt.Errorf("membership: join: %w", ctx.Err()), cl.Close())
	}
	return cl, nil
}

// start begins to gossip, and returns the address that the others use.
func start(life context.Context, c Config, keys *memberlist.Keyring, v *view, n *counters, open opener) (*memberlist.Memberlist, string, error) {
	l := log.New(n.pump, "", 0)
	wire, err := open(life, l)
	if err != nil {
		return nil, "", err
	}
	t := newGate(wire, c, keys, n)
	ip, port, err := t.FinalAdvertiseAddr("", 0)
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("membership: no address to tell the others: %w; set Config.Advertise", err), t.Shutdown())
	}
	addr := net.JoinHostPort(ip.String(), strconv.Itoa(port))
	if a, _ := netip.AddrFromSlice(ip); !allowed(t.allow, a) {
		return nil, "", errors.Join(fmt.Errorf("membership: the own address %s is not in Config.Allow, so no other would take this "+
			"replica in; add its network there, or set Config.Advertise to an address within", addr), t.Shutdown())
	}
	v.locate(addr)

	s := c.Profile.settings()
	s.Name = v.node
	s.Label = t.label
	s.Transport = t
	s.CIDRsAllowed = ipNets(c.Allow)
	s.Delegate, s.Events, s.Alive = v, v, v
	s.Logger = l
	s.Keyring = keys
	g, err := memberlist.Create(s)
	if err != nil {
		return nil, "", errors.Join(fmt.Errorf("membership: start gossip: %w", err), t.Shutdown())
	}
	return g, addr, nil
}

// newBoot returns a random boot id.
func newBoot() string {
	b := make([]byte, bootBytes)
	_, _ = rand.Read(b) // never fails, by its documentation
	return hex.EncodeToString(b)
}

// Self returns this replica's name.
func (c *Cluster) Self() string { return c.name }

// Namespace is that of the Config.
func (c *Cluster) Namespace() string { return c.namespace }

// Boot returns this process's boot id: 16 hexadecimal digits, new at each Join.
func (c *Cluster) Boot() string { return c.boot }

// Addr returns the host:port at which others reach this replica's gossip, as one would write it into Seeds.
func (c *Cluster) Addr() string { return c.addr }

// Watch returns the sorted names of all that own keys now, and a channel that is closed when they have changed; an
// event is seen here up to 0.2 s after it came in, together with those around it. The owners are final: whoever
// serves, with the layout and the store that most have, the newest boot of each name. If none serves, the unfit own, then the
// draining, so that the list is empty only while all are joining, or where this replica was superseded by a newer
// boot of its name and nobody else is there: then it must own nothing, and finds its own name in no list.
//
// The slice is the caller's. After Close the list stays as it was, and the channel open.
func (c *Cluster) Watch() (owners []string, changed <-chan struct{}) {
	s := c.view.snapshot()
	return slices.Clone(s.owners), s.changed
}

// Members returns all live processes as this replica sees them, itself included, sorted by name. One that was
// overruled (a newer boot has its name; most members have another layout or store) is shown unfit, with the reason.
func (c *Cluster) Members() []Member {
	return slices.Clone(c.view.snapshot().members)
}

// Reason returns why this replica owns nothing, as Members shows it: what it announced, or what overruled it. Empty
// while it serves.
func (c *Cluster) Reason() string {
	for _, m := range c.view.snapshot().members {
		if m.Boot == c.boot && m.State != Serving {
			return m.Reason
		}
	}
	return ""
}

// Facts returns what the other live members announced, by name; of two processes with one name, the newest's. The
// maps are the caller's.
func (c *Cluster) Facts() map[string]map[string]string {
	facts := maps.Clone(c.view.snapshot().facts)
	for name, f := range facts {
		facts[name] = maps.Clone(f)
	}
	return facts
}

// Close leaves: it tells the others (draining, unless that was announced), leaves the gossip, closes all sockets and
// waits for its goroutines. It blocks for at most 2 s. Further calls do nothing and return the first one's result.
func (c *Cluster) Close() error {
	c.closing.Do(func() { c.err = c.close() })
	return c.err
}

func (c *Cluster) close() error {
	over := time.NewTimer(closeMost)
	defer over.Stop()
	done := make(chan error, 1)
	go func() { done <- c.leave() }()
	select {
	case err := <-done:
		return err
	case <-over.C:
		return errors.New("membership: close: still leaving after 2 s; going on in the background")
	}
}

// leave takes everything down in order: nobody announces or calls any more, the others hear it, the sockets close.
func (c *Cluster) leave() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.working.Wait()

	said := c.view.identity()
	if said.state != Draining {
		said.state, said.reason = Draining, "stopping: it leaves the cluster"
		c.view.say(said)
		_ = c.gossip.UpdateNode(leaveStep) // unheard, the others find out by themselves
	}
	_ = c.gossip.Leave(leaveStep) // the same
	err := c.gossip.Shutdown()
	c.quit()
	c.caller.wait()
	c.resting.Wait()
	if err != nil {
		return fmt.Errorf("membership: close: %w", err)
	}
	return nil
}
