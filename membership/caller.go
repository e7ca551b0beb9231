package membership

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	// callEvery and callJitter leave 2 of the 15 s in which a healed partition is to be merged for gossip to spread
	// the news. One call that gets through merges two whole parts.
	callEvery  = 10 * time.Second
	callJitter = 3 * time.Second

	seedAddrs   = 16              // addresses called of one seed and round, a random choice
	resolveMost = 3 * time.Second // for a seed's name
	callsMost   = 2 * maxSeeds    // at once
)

// caller calls the seeds and the peers that were lost, over and over, also while the list is not empty. Without it
// a cluster that was split once stays split.
type caller struct {
	seeds  []string
	self   string // our address
	view   *view
	gossip *memberlist.Memberlist
	logger *slog.Logger
	first  chan struct{} // closed when the first round was answered by one, or by none

	calls sync.WaitGroup

	mu   sync.Mutex
	busy map[string]bool // targets being called; a slow one is not called twice
}

func newCaller(c Config, self string, v *view, g *memberlist.Memberlist) *caller {
	return &caller{seeds: c.Seeds, self: self, view: v, gossip: g, logger: c.Logger,
		first: make(chan struct{}), busy: map[string]bool{}}
}

// run calls until ctx ends.
func (c *caller) run(ctx context.Context) {
	answers, n := c.round(ctx)
	c.calls.Go(func() { c.begin(ctx, answers, n) })
	for {
		t := time.NewTimer(callEvery + rand.N(callJitter))
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
			c.round(ctx)
		}
	}
}

// begin waits for the first round and says if it failed, since an operator who mistyped a seed has nothing else to
// see.
func (c *caller) begin(ctx context.Context, answers <-chan error, n int) {
	defer close(c.first)
	var errs []error
	for range n {
		select {
		case err := <-answers:
			if err == nil {
				return
			}
			errs = append(errs, err)
		case <-ctx.Done():
			return
		}
	}
	if n > 0 {
		c.logger.Warn("no seed answers; going on without, and calling again every 10 to 13 s",
			"seeds", c.seeds, "err", errors.Join(errs...))
	}
}

// round starts the calls of one round, and returns where their n results will be.
func (c *caller) round(ctx context.Context) (answers <-chan error, n int) {
	live, lost := c.view.targets()
	live[c.self] = true
	results := make(chan error, len(c.seeds)+len(lost))
	for _, seed := range c.seeds {
		if !live[seed] && c.start(seed, results, func() error { return c.callSeed(ctx, seed, live) }) {
			n++
		}
	}
	for _, addr := range lost {
		if c.start(addr, results, func() error { return c.call(addr) }) {
			n++
		}
	}
	return results, n
}

// start runs one call, unless its target is being called already or too many are.
func (c *caller) start(target string, results chan<- error, call func() error) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.busy[target] || len(c.busy) >= callsMost {
		return false
	}
	c.busy[target] = true
	c.calls.Go(func() {
		err := call()
		c.mu.Lock()
		delete(c.busy, target)
		c.mu.Unlock()
		results <- err
	})
	return true
}

// callSeed calls what a seed's name stands for now, except those that are members already. It is answered if one
// answers, or if there is nobody to call.
func (c *caller) callSeed(ctx context.Context, seed string, live map[string]bool) error {
	addrs, err := resolve(ctx, seed)
	if err != nil {
		return err
	}
	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	var errs []error
	for _, a := range addrs[:min(len(addrs), seedAddrs)] {
		if live[a] || ctx.Err() != nil {
			continue
		}
		if err := c.call(a); err != nil {
			errs = append(errs, err)
			continue
		}
		return nil
	}
	return errors.Join(errs...)
}

// call exchanges all that both sides know with whoever listens at addr. Another cluster's member refuses.
func (c *caller) call(addr string) error {
	_, err := c.gossip.Join([]string{addr})
	return err
}

// wait returns when no call is running.
func (c *caller) wait() { c.calls.Wait() }

// resolve returns all addresses of a seed, host:port each.
func resolve(ctx context.Context, seed string) ([]string, error) {
	host, port, err := net.SplitHostPort(seed)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, resolveMost)
	defer cancel()
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	addrs := make([]string, len(ips))
	for i, ip := range ips {
		addrs[i] = netip.AddrPortFrom(ip.Unmap(), uint16(n)).String()
	}
	return addrs, nil
}
