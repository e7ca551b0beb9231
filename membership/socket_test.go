package membership

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"slices"
	"strings"
	"testing"
	"time"
)

// joinReal joins over sockets on loopback and closes at the end of the test.
func joinReal(t *testing.T, c Config) *Cluster {
	t.Helper()
	if c.Namespace == "" {
		c.Namespace = "test"
	}
	c.Logger = orQuiet(c.Logger)
	cl, err := Join(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := cl.Close(); err != nil {
			t.Error(err)
		}
	})
	return cl
}

// await waits until all of cs see exactly these owners.
func await(t *testing.T, cs []*Cluster, want ...string) time.Duration {
	t.Helper()
	begun := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, c := range cs {
		for {
			o, changed := c.Watch()
			if slices.Equal(o, want) {
				break
			}
			select {
			case <-changed:
			case <-ctx.Done():
				t.Fatalf("%s sees %v, not %v", c.Self(), o, want)
			}
		}
	}
	return time.Since(begun)
}

// vanish ends a cluster's gossip without a word, as a crash does.
func (c *Cluster) vanish() error {
	c.closing.Do(func() {
		c.cancel()
		c.working.Wait()
		c.err = c.gossip.Shutdown()
		c.quit()
		c.caller.calls.Wait()
		c.resting.Wait()
	})
	return c.err
}

func TestSockets(t *testing.T) {
	t.Parallel()
	key := [][]byte{bytes.Repeat([]byte{7}, 16)}
	var all []*Cluster
	var seeds []string
	begun := time.Now()
	for _, name := range []string{"a", "b", "c", "d"} {
		c := joinReal(t, Config{Name: name, Seeds: seeds, Secrets: key, Version: "v1"})
		if err := c.Announce(t.Context(), "serving", "layout", "", nil); err != nil {
			t.Fatal(err)
		}
		all = append(all, c)
		seeds = append(seeds, c.Addr()) // its own address is added after it joined
	}
	await(t, all, "a", "b", "c", "d")
	t.Logf("four joined and served in %s", time.Since(begun))

	if m := find(all[0].Members(), all[3].Boot()); m.Name != "d" || m.Addr != all[3].Addr() || m.Version != "v1" || m.State != Serving || m.Since.IsZero() {
		t.Errorf("d is %v", m)
	}
	begun = time.Now()
	if err := all[3].Announce(t.Context(), "draining", "layout", "stop", nil); err != nil {
		t.Fatal(err)
	}
	await(t, all, "a", "b", "c")
	t.Logf("draining seen by all in %s", time.Since(begun))

	begun = time.Now()
	for range 2 {
		if err := all[3].Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("closed in %s", time.Since(begun))

	if err := all[2].vanish(); err != nil {
		t.Error(err)
	}
	t.Logf("crash seen by all in %s", await(t, all[:2], "a", "b"))
}

// TestPortInUse names the port and what to do.
func TestPortInUse(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, err = Join(t.Context(), Config{Name: "a", Namespace: "test", Bind: l.Addr().String(), Logger: quietLog()})
	if err == nil || !strings.Contains(err.Error(), l.Addr().String()) || !strings.Contains(err.Error(), "another port in Config.Bind") {
		t.Errorf("got %v", err)
	}
}

// TestUnreachableSeed is no error; the log says what is waited for.
func TestUnreachableSeed(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	var logged syncBuffer
	c := joinReal(t, Config{Name: "a", Seeds: []string{nobody}, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
	if s := logged.String(); !strings.Contains(s, "no seed took this replica in") || !strings.Contains(s, nobody) {
		t.Errorf("logged: %s", s)
	}
	if err := c.Announce(t.Context(), "serving", "", "", nil); err != nil {
		t.Fatal(err)
	}
	await(t, []*Cluster{c}, "a")
}

// TestSeedByName resolves a name, and an own address among the seeds does no harm.
func TestSeedByName(t *testing.T) {
	t.Parallel()
	a := joinReal(t, Config{Name: "a"})
	_, port, err := net.SplitHostPort(a.Addr())
	if err != nil {
		t.Fatal(err)
	}
	b := joinReal(t, Config{Name: "b", Seeds: []string{"localhost:" + port}})
	for _, c := range []*Cluster{a, b} {
		if err := c.Announce(t.Context(), "serving", "", "", nil); err != nil {
			t.Fatal(err)
		}
	}
	await(t, []*Cluster{a, b}, "a", "b")
}

// TestHungPeer has a seed that accepts and says nothing; Close does not wait for its deadline.
func TestHungPeer(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	c, err := Join(ctx, Config{Name: "a", Namespace: "test", Seeds: []string{l.Addr().String()}, Logger: quietLog()})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Error(err)
	}
}
