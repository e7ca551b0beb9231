package membership

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// writeSeeds replaces a seed file as an operator's program would.
func writeSeeds(t *testing.T, path string, lines ...string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestSeedList(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "seeds")
	s := newSeeds(Config{Seeds: []string{"a:1"}, SeedFile: path})
	check := func(want []string, says ...string) {
		t.Helper()
		got, err := s.list()
		if !slices.Equal(got, want) || (err == nil) != (len(says) == 0) {
			t.Errorf("got %v, %v", got, err)
		}
		for _, w := range says {
			if err != nil && !strings.Contains(err.Error(), w) {
				t.Errorf("%v does not say %q", err, w)
			}
		}
	}
	check([]string{"a:1"}, path, "no such file")
	writeSeeds(t, path, "# replicas", "", " b:2 \r", "a:1", "c", "b:2", "d:4")
	check([]string{"a:1", "b:2", "d:4"}, "line 5", `"c"`, "host:port")
	writeSeeds(t, path)
	check([]string{"a:1"})
	var many []string
	for i := range 2 * maxSeeds {
		many = append(many, "h:"+strings.Repeat("1", 1+i/10)+string(rune('0' + i%10))[:1])
	}
	writeSeeds(t, path, slices.Compact(many)...)
	if got, err := s.list(); len(got) > maxSeeds || err == nil {
		t.Errorf("%d seeds, %v", len(got), err)
	}
	writeSeeds(t, path, strings.Repeat("x", seedFileMax+1))
	check([]string{"a:1"}, "longer than", "right file")
	s = seeds{fixed: []string{"a:1"}}
	check([]string{"a:1"})
}

// TestSeedFile starts two replicas whose file is not there yet; one is found as soon as the file names it.
func TestSeedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "seeds")
	bubble(t, 1, func(f *fleet) {
		var logged syncBuffer
		a := f.join(Config{Name: "a", SeedFile: path, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		b := f.join(Config{Name: "b", SeedFile: path})
		f.announce(a, Serving)
		f.announce(b, Serving)
		time.Sleep(30 * time.Second)
		f.agree(0, []*Cluster{a}, []string{"a"})
		if s := logged.String(); !strings.Contains(s, "cannot be read") || !strings.Contains(s, path) {
			f.Errorf("the log does not say what is waited for: %s", s)
		}
		writeSeeds(f.T, path, b.Addr())
		f.agree(merged, f.all, []string{"a", "b"})
		if s := logged.String(); !strings.Contains(s, "no longer alone") {
			f.Errorf("the log does not say that it is over: %s", s)
		}
	})
}

// TestStartTogether starts replicas that know only of each other, as a deployment does, while none is reachable yet:
// they find each other within seconds of the network coming up, and not only at the next of the regular calls.
func TestStartTogether(t *testing.T) {
	t.Parallel()
	bubble(t, 3, func(f *fleet) {
		hosts := map[string]string{}
		first := f.net.Listen() // a seed that is wrong for good
		seeds := []string{first.Addr()}
		f.net.Kill(first.Addr())
		for i := range 3 {
			c := f.join(Config{Name: letter(i), Seeds: seeds})
			hosts[c.Self()] = c.Addr()
			seeds = append(seeds, c.Addr())
			f.announce(c, Serving)
		}
		f.agree(4*time.Second, f.all, names(3))
	})
}

// TestAloneRepeats says once a minute that nobody answers, not at each call, and does not take itself for an answer.
func TestAloneRepeats(t *testing.T) {
	t.Parallel()
	bubble(t, 1, func(f *fleet) {
		var logged syncBuffer
		nobody := f.net.Listen()
		f.net.Kill(nobody.Addr())
		f.join(Config{Name: "a", Seeds: []string{nobody.Addr()}, Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		time.Sleep(5 * time.Minute)
		if n := strings.Count(logged.String(), "no seed took this replica in"); n < 4 || n > 6 {
			f.Errorf("said %d times in 5 minutes: %s", n, logged.String())
		}
	})
}

// TestSeedIsSelf calls a name that leads back to the caller: that is nobody.
func TestSeedIsSelf(t *testing.T) {
	t.Parallel()
	var logged syncBuffer
	a := joinReal(t, Config{Name: "a", Bind: "127.0.0.1:0"})
	port := a.Addr()[strings.LastIndex(a.Addr(), ":"):]
	a.caller.logger = slog.New(slog.NewTextHandler(&logged, nil))
	err := a.caller.callSeed(context.Background(), "localhost"+port, map[string]bool{})
	if err == nil || !strings.Contains(err.Error(), "this replica itself") {
		t.Errorf("got %v", err)
	}
}

// TestSeedName resolves a name at each call, to all that it stands for then: nothing, an address that is dead, and at last
// one that lives among dead ones.
func TestSeedName(t *testing.T) {
	t.Parallel()
	bubble(t, 2, func(f *fleet) {
		a, b := f.join(Config{Name: "a"}), f.join(Config{Name: "b"})
		for _, c := range f.all {
			f.announce(c, Serving)
		}
		dead := f.net.Listen()
		f.net.Kill(dead.Addr())
		at := func(addr string) netip.Addr { return netip.MustParseAddrPort(addr).Addr() }
		var asked atomic.Int64
		c := newCaller(Config{Seeds: []string{"fleet.internal:7946"}, Logger: quietLog()}, a.Addr(), a.view, a.gossip)
		c.seeds.look = func(_ context.Context, host string) ([]netip.Addr, error) {
			switch n := asked.Add(1); {
			case host != "fleet.internal":
				return nil, errors.New(host)
			case n == 1:
				return nil, errors.New("no such host")
			case n == 2:
				return []netip.Addr{at(dead.Addr())}, nil
			}
			return []netip.Addr{at(dead.Addr()), at(a.Addr()), at(b.Addr())}, nil
		}
		ctx, cancel := context.WithCancel(f.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); c.run(ctx) }()
		f.agree(10*time.Second, f.all, []string{"a", "b"})
		if n := asked.Load(); n < 3 {
			f.Errorf("asked %d times", n)
		}
		cancel()
		<-ended
		c.wait()
	})
}

// TestSeedsThatAreNobody: a name that leads back here is no answer, so a replica that is alone goes on saying so; and what
// is wrong with a seed file is said also by one that is not alone.
func TestSeedsThatAreNobody(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "seeds")
	writeSeeds(t, path, "c")
	bubble(t, 1, func(f *fleet) {
		var alone, file syncBuffer
		dead := f.net.Listen()
		f.net.Kill(dead.Addr())
		a := f.join(Config{Name: "a", Seeds: []string{dead.Addr()}})
		c := newCaller(Config{Seeds: []string{"self.internal:7946", dead.Addr()}, Logger: slog.New(slog.NewTextHandler(&alone, nil))}, a.Addr(), a.view, a.gossip)
		c.seeds.look = func(_ context.Context, host string) ([]netip.Addr, error) {
			if host == "self.internal" {
				host, _, _ = net.SplitHostPort(a.Addr())
			}
			return []netip.Addr{netip.MustParseAddr(host)}, nil
		}
		ctx, cancel := context.WithCancel(f.Context())
		ended := make(chan struct{})
		go func() { defer close(ended); c.run(ctx) }()
		time.Sleep(5 * time.Minute)
		cancel()
		<-ended
		c.wait()
		if s := alone.String(); strings.Count(s, "no seed took this replica in") < 4 || strings.Contains(s, "no longer alone") {
			f.Errorf("logged: %s", s)
		}
		f.join(Config{Name: "b", SeedFile: path, Seeds: []string{a.Addr()}, Logger: slog.New(slog.NewTextHandler(&file, nil))})
		time.Sleep(5 * time.Minute)
		if n := strings.Count(file.String(), "some seeds cannot be read"); n < 4 || n > 6 {
			f.Errorf("a bad line was named %d times: %s", n, file.String())
		}
	})
}

// TestSeedFileThatHangs is a pipe that nobody writes: it is refused, the fixed seeds are called, and Close is quick.
func TestSeedFileThatHangs(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "pipe")
	if err := exec.Command("mkfifo", path).Run(); err != nil {
		t.Skip("skipped: no mkfifo here")
	}
	a := joinReal(t, Config{Name: "a"})
	b := joinReal(t, Config{Name: "b", Seeds: []string{a.Addr()}, SeedFile: path})
	for _, c := range []*Cluster{a, b} {
		if err := c.Announce(t.Context(), "serving", "", "", nil); err != nil {
			t.Fatal(err)
		}
	}
	await(t, []*Cluster{a, b}, "a", "b")
	s := newSeeds(Config{SeedFile: path})
	s.busy <- struct{}{} // as while a read hangs
	if _, err := s.list(); err == nil || !strings.Contains(err.Error(), "still being read") {
		t.Errorf("got %v", err)
	}
	if _, err := newSeeds(Config{SeedFile: t.TempDir()}).list(); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("got %v", err)
	}
}

// TestStaleRecords has a name with fifteen dead addresses and a live one: the dead do not hold the call to it up.
func TestStaleRecords(t *testing.T) {
	t.Parallel()
	bubble(t, 3, func(f *fleet) {
		a, b := f.join(Config{Name: "a"}), f.join(Config{Name: "b"})
		var all []netip.Addr
		for range seedAddrs - 1 {
			h := f.net.Listen()
			f.net.Cut(a.Addr(), h.Addr()) // a call gets no answer, not even a refusal
			all = append(all, netip.MustParseAddrPort(h.Addr()).Addr())
			defer h.Shutdown()
		}
		all = append(all, netip.MustParseAddrPort(b.Addr()).Addr())
		c := newCaller(Config{Seeds: []string{"fleet.internal:7946"}, Logger: quietLog()}, a.Addr(), a.view, a.gossip)
		c.seeds.look = func(context.Context, string) ([]netip.Addr, error) { return all, nil }
		ctx, cancel := context.WithCancel(f.Context())
		begun := time.Now()
		go c.run(ctx)
		f.within(time.Second, "they know each other", func() bool { return len(a.Members()) == 2 })
		f.Logf("seed %d: after %s", f.seed, time.Since(begun))
		cancel()
		c.wait()
	})
}
