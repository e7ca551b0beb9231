package bench

import (
	"io"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/fleet"
)

// TestGossip takes three real members through everything once.
func TestGossip(t *testing.T) {
	t.Parallel()
	g := &gossip{o: GossipOptions{Members: 3, Profile: "fast", Rounds: 1, Idle: 100 * time.Millisecond}, log: io.Discard}
	r, err := g.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		got  Stats
		n    int
	}{
		{"joins", r.Joined, 3}, // after the kill, the drain and the close
		{"kills", r.Killed, 1},
		{"drains", r.Drained, 1},
		{"closes", r.Closed, 1},
		{"changes", r.Unfit, 1},
		{"times to close", r.CloseTook, 1},
		{"times to close when drained", r.DrainedCloseTook, 1},
		{"members' processor times", r.CPU, 3},
	} {
		if c.got.N != c.n || c.got.P50 <= 0 || c.got.Max < c.got.P50 {
			t.Errorf("%s: got %+v, want %d of more than nothing", c.name, c.got, c.n)
		}
	}
	if r.Sent.N != 3 || r.Received.N != 3 {
		t.Errorf("bytes of gossip: %+v, %+v", r.Sent, r.Received)
	}
	if r.Members != 3 || r.Profile != "fast" || r.Idle != 0.1 || r.Boot <= 0 || r.Timer.N == 0 {
		t.Errorf("got %+v", r)
	}
}

func TestGossipPrint(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	GossipReport{Members: 5, Profile: "lan", Boot: 410.25, Killed: Stats{10, 6400, 7000, 7000}, CPU: Stats{5, 1.125, 1.5, 1.5}, Sent: Stats{5, 400, 420, 420},
		Idle: 30, LostIdle: 1, LostBusy: 2}.Print(&b)
	for _, part := range []string{
		"5 members", "gossip profile lan", "idle for 30 s",
		"boot: all join at once, until all see all                               1     410.2     410.2\n",
		"until nobody sees it                                   10    6400.0    7000.0\n",
		"ms a second                                       5      1.12      1.50\n",
		"gossip sent, bytes a second                                             5       400       420\n",
		"1 while idle, 2 in the rest",
	} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("no %q in:\n%s", part, b.String())
		}
	}
}

// newViews are of members without processes: their process is 0.
func newViews(t *testing.T) *views {
	t.Helper()
	return &views{fleet: fleet.New(t.TempDir(), fleet.Spec{}), last: map[string]fleet.Event{}}
}

// view is what a member sees, names in one string, so many seconds after the epoch.
func view(member, names string, at int64) fleet.Event {
	return fleet.Event{Replica: member, Kind: fleet.Owners, Names: strings.Fields(names), At: time.Unix(at, 0)}
}

func TestViewsCountTheLost(t *testing.T) {
	t.Parallel()
	gone := view("a", "", 0)
	gone.Pid = 7 // a process that had the name before
	for _, c := range []struct {
		name    string
		leaving string
		seen    []fleet.Event
		want    int
	}{
		{"growth", "", []fleet.Event{view("a", "a", 0), view("a", "a b c", 1)}, 0},
		{"one", "", []fleet.Event{view("a", "a b c", 0), view("a", "a c", 1)}, 1},
		{"one twice", "", []fleet.Event{view("a", "a b", 0), view("a", "a", 1), view("a", "a b", 2), view("a", "a", 3)}, 2},
		{"by two", "", []fleet.Event{view("a", "a b c", 0), view("b", "a b c", 0), view("a", "a b", 1), view("b", "a b", 1)}, 2},
		{"who leaves", "c", []fleet.Event{view("a", "a b c", 0), view("a", "a b", 1)}, 0},
		{"another with who leaves", "c", []fleet.Event{view("a", "a b c", 0), view("a", "a", 1)}, 1},
		{"by its successor, not by one that is gone", "", []fleet.Event{view("a", "a b c", 0), gone, view("a", "a b", 1)}, 1},
	} {
		v := newViews(t)
		v.leaving = c.leaving
		for _, e := range c.seen {
			v.note(e)
		}
		if v.lost != c.want {
			t.Errorf("%s: %d lost, want %d", c.name, v.lost, c.want)
		}
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	v := newViews(t)
	v.note(view("b", "a b", 2)) // knows it before it is asked for
	s := v.spread("c", without("c"))
	s.want = 2
	for _, step := range []struct {
		e    fleet.Event
		all  bool
		last int64
	}{
		{view("a", "a b c", 1), false, 2},
		{view("c", "a b", 9), false, 2}, // is not asked
		{view("a", "a b", 3), true, 3},
		{view("a", "a b c", 4), false, 2}, // it came back
		{view("a", "a b", 5), true, 5},
		{view("a", "a", 6), true, 5}, // still
	} {
		s.note(step.e)
		if s.all() != step.all || s.last().Unix() != step.last {
			t.Errorf("after %s saw %q at %d: all %v, last %d, want %v, %d", step.e.Replica, step.e.Names, step.e.At.Unix(),
				s.all(), s.last().Unix(), step.all, step.last)
		}
	}
}
