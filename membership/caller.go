package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	// callEvery and callJitter, its tenths that are added at random, leave 2 of the 15 s in which a healed partition is
	// to be merged for gossip to spread the news. One call that gets through merges two whole parts.
	callEvery  = 10 * time.Second
	callJitter = 3
	// callFirst is the first pause of a replica that is alone, the next ones are twice as long each: replicas that start
	// together find each other a moment later.
	callFirst = time.Second

	callsMost  = 2 * maxSeeds // at once
	repeatEach = time.Minute  // how often a replica says that it is still alone, or its seed file wrong
)

// caller calls the seeds and the peers that were lost, over and over, also while the list is not empty. Without it
// a cluster that was split once stays split.
type caller struct {
	seeds  seeds
	self   string // our address
	view   *view
	gossip *memberlist.Memberlist
	logger *slog.Logger
	first  chan struct{} // closed when the first round was answered by one, or by none

	calls sync.WaitGroup

	mu    sync.Mutex
	busy  map[string]bool // targets being called; a slow one is not called twice
	begun bool            // first is closed
	said  time.Time       // when it last said that it is alone; zero: it is not

	warned time.Time // when it last said what is wrong with the seed file; run's
}

func newCaller(c Config, self string, v *view, g *memberlist.Memberlist) *caller {
	return &caller{seeds: newSeeds(c), self: self, view: v, gossip: g, logger: c.Logger,
		first: make(chan struct{}), busy: map[string]bool{}}
}

// run calls until ctx ends.
func (c *caller) run(ctx context.Context) {
	for pause := callFirst; ; pause *= 2 {
		c.round(ctx)
		if pause > callEvery || !c.view.alone() {
			pause = callEvery
		}
		t := time.NewTimer(pause + rand.N(pause*callJitter/10))
		select {
		case <-ctx.Done():
			t.Stop()
			return
		case <-t.C:
		}
	}
}

// round starts the calls of one round, and a goroutine that hears how they end.
func (c *caller) round(ctx context.Context) {
	if !c.view.alone() {
		c.found()
	}
	live, lost := c.view.targets()
	live[c.self] = true
	known, err := c.seeds.list()
	c.warn(err)
	results := make(chan error, len(known)+len(lost))
	n := 0
	for _, seed := range known {
		if !live[seed] && c.start(seed, results, func() error { return c.callSeed(ctx, seed, live) }) {
			n++
		}
	}
	for _, addr := range lost {
		if c.start(addr, results, func() error { return c.call(addr) }) {
			n++
		}
	}
	c.calls.Go(func() { c.hear(ctx, known, results, n) })
}

// warn says what is wrong with the seed file.
func (c *caller) warn(err error) {
	if now := time.Now(); err != nil && now.Sub(c.warned) >= repeatEach {
		c.warned = now
		c.logger.Warn("some seeds cannot be read; going on with the rest", "err", err)
	}
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

// hear waits for the n results of a round, or the first answer, and then lets Join return. A replica that nobody
// answers says so, since an operator who mistyped a seed, or a key, has nothing else to see.
func (c *caller) hear(ctx context.Context, known []string, results <-chan error, n int) {
	defer c.begin()
	var errs []error
	for range n {
		select {
		case err := <-results:
			if err == nil && !c.view.alone() {
				c.found()
				return
			}
			if err != nil {
				errs = append(errs, err)
			}
		case <-ctx.Done():
			return
		}
	}
	if c.view.alone() && (n > 0 || c.idle()) {
		c.complain(known, errors.Join(errs...))
	}
}

// idle reports whether no call is under way.
func (c *caller) idle() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.busy) == 0
}

// begin ends Join's wait.
func (c *caller) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.begun {
		c.begun = true
		close(c.first)
	}
}

func (c *caller) found() {
	c.mu.Lock()
	again := !c.said.IsZero()
	c.said = time.Time{}
	c.mu.Unlock()
	if again {
		c.logger.Info("no longer alone")
	}
}

func (c *caller) complain(known []string, err error) {
	c.mu.Lock()
	now, late := time.Now(), c.said
	if !late.IsZero() && now.Sub(late) < repeatEach {
		c.mu.Unlock()
		return
	}
	c.said = now
	c.mu.Unlock()
	if err == nil {
		c.logger.Info("alone, with nobody to call: waiting to be called", "addr", c.self)
		return
	}
	c.logger.Warn("alone: no seed took this replica in; going on without, and calling again", "seeds", known, "err", err)
}

// callSeed calls what a seed's name stands for now, except those that are members already, all at once: the records of the
// dead would hold the others up. It is answered if one answers, or if there is nobody to call.
func (c *caller) callSeed(ctx context.Context, seed string, live map[string]bool) error {
	addrs, err := c.seeds.resolve(ctx, seed)
	if err != nil {
		return err
	}
	addrs = slices.DeleteFunc(addrs, func(a string) bool { return live[a] })
	rand.Shuffle(len(addrs), func(i, j int) { addrs[i], addrs[j] = addrs[j], addrs[i] })
	addrs = addrs[:min(len(addrs), seedAddrs)]
	results := make(chan error, len(addrs))
	for _, a := range addrs {
		c.calls.Go(func() { results <- c.call(a) })
	}
	var errs []error
	for range addrs {
		select {
		case err := <-results:
			if err == nil {
				return nil
			}
			errs = append(errs, err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.Join(errs...)
}

// call exchanges all that both sides know with whoever listens at addr. Another cluster's member refuses.
func (c *caller) call(addr string) error {
	_, err := c.gossip.Join([]string{addr})
	if err == nil && c.view.alone() {
		return fmt.Errorf("%s: nobody is there but this replica itself", addr)
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %s", addr, strings.TrimPrefix(plain(err), addr+": "))
}

// plain returns the text of memberlist's error without its list of one.
func plain(err error) string {
	_, text, ok := strings.Cut(strings.TrimSpace(err.Error()), "* ")
	if !ok {
		return err.Error()
	}
	if _, why, ok := strings.Cut(text, "failed to join "); ok {
		_, text, _ = strings.Cut(why, ": ")
	}
	return text
}

// wait returns when no call is running.
func (c *caller) wait() { c.calls.Wait() }
