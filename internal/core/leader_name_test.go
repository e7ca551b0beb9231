package core

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// needed are the calls without which a leader would be one in name only.
var needed = []string{"Declare", "Lagging", "Decide", "Claim", "SavePass"}

// ail has a call fail from now on, on core i, or on all where that is negative: at once, or only when its time is over. It returns what ends that.
func (w *crew) ail(i int, name string, slow bool) (heal func()) {
	type late struct {
		core int
		at   time.Duration
		call *Call
	}
	var list []late
	w.keep = func(core int, c *Call) bool {
		if c.Name != name || i >= 0 && core != i {
			return false
		}
		x := late{core, w.now, c}
		if slow {
			x.at += c.Within
		}
		list = append(list, x)
		return true
	}
	w.pass = func() {
		now := list
		list = nil
		for _, x := range now {
			if x.at > w.now {
				list = append(list, x)
				continue
			}
			w.tell(x.core, x.call.Fail(fmt.Errorf("%s: %w", name, context.DeadlineExceeded)))
		}
	}
	return func() { w.keep = nil }
}

// lives lets time pass, with the calls that fail in it.
func (w *crew) lives(end time.Duration) {
	for w.now < end {
		w.until(min(end, w.now+50*time.Millisecond))
		w.pass()
	}
}

func ailing(t *testing.T, cfg Config) (*crew, []jobs.Job) {
	t.Helper()
	w := newCrew(t, cfg, "a", "b", "c")
	plain, keyed := global(30*time.Second), global(30*time.Second)
	keyed.Name, keyed.Keys = "keyed", jobs.KeyList("k0", "k1", "k2")
	w.streams(keyed.Keys)
	w.begin(plain, keyed)
	return w, []jobs.Job{plain.WithDefaults(), keyed.WithDefaults()}
}

// by counts the runs of each job that were started since.
func (w *crew) by() map[string]int {
	n := map[string]int{}
	for _, d := range w.done {
		n[d.Job]++
	}
	return n
}

// LD-10: a leader whose session is renewed and whose Lead succeeds, but who cannot do what a leader is for, gives up after a Lease and lets
// another one lead. It does not lead again while that call fails; when it works, it does where the others are gone.
func TestLeaderInName(t *testing.T) {
	t.Parallel()
	for _, call := range needed {
		for name, slow := range map[string]bool{"fails": false, "hangs": true} {
			t.Run(call+" "+name, func(t *testing.T) {
				t.Parallel()
				w, list := ailing(t, timing())
				w.until(61 * time.Second)
				first := w.leader()
				heal := w.ail(first, call, slow)
				if call == "Declare" {
					w.tell(first, JobsChanged{Jobs: list})
				}
				w.lives(105 * time.Second)
				second := w.leader()
				if why := w.row().Why; second < 0 || second == first || !strings.Contains(why, "has not answered its "+call+" for 10s") {
					t.Fatalf("core %d leads after core %d, since %q", second, first, why)
				}
				w.done = nil
				w.lives(285 * time.Second)
				if n := w.by(); n["global"] != 6 || n["keyed"] != 3*6 || len(w.terms) != 2 {
					t.Errorf("in three minutes %v runs, want one and three each half a minute; terms %v", n, w.terms)
				}
				for i := range w.cores {
					if i != first {
						w.kill(i)
					}
				}
				w.lives(310 * time.Second)
				if w.leader() >= 0 {
					t.Errorf("it leads again while %s fails", call)
				}
				heal()
				if w.lives(320 * time.Second); w.leader() != first {
					t.Errorf("core %d leads, want the one that is left, and well", w.leader())
				}
			})
		}
	}
}

// Where what a leader needs fails for all, each of them leads for a Lease at most, and then nobody does until it works: they do not pass the
// lead around.
func TestStoreAilsForAll(t *testing.T) {
	t.Parallel()
	for _, call := range needed {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			w, list := ailing(t, timing())
			w.until(61 * time.Second)
			heal := w.ail(-1, call, false)
			if call == "Declare" {
				for i := range w.cores {
					w.tell(i, JobsChanged{Jobs: list})
				}
			}
			w.lives(180 * time.Second)
			terms := len(w.terms)
			if w.leader() >= 0 || terms > len(w.cores) {
				t.Errorf("core %d leads, the terms were %v; want nobody, after each has tried at most once", w.leader(), w.terms)
			}
			w.lives(240 * time.Second)
			heal()
			w.lives(265 * time.Second)
			w.done = nil
			w.lives(332 * time.Second)
			if n := w.by(); w.leader() < 0 || len(w.terms) != terms+1 || n["global"] != 3 || n["keyed"] != 9 {
				t.Errorf("core %d leads, after %d terms another %d, and ran %v; want three dues", w.leader(), terms, len(w.terms)-terms, n)
			}
		})
	}
}

// A leader in name stands for the elector no more, until it is well.
func TestLeaderInNameStandsDown(t *testing.T) {
	t.Parallel()
	w, _ := ailing(t, elected())
	w.elect(1, 5)
	w.until(61 * time.Second)
	heal := w.ail(1, "Lagging", false)
	w.lives(75 * time.Second)
	if w.leader() >= 0 || w.stand[1] || !w.stand[0] || !w.stand[2] {
		t.Fatalf("core %d leads; stand: %v", w.leader(), w.stand)
	}
	w.tell(1, Deposed{Term: 5, Why: "it stands no more"})
	w.elect(0, 6)
	w.lives(120 * time.Second)
	if w.stand[1] {
		t.Error("it stands while its sweeps fail")
	}
	heal()
	if w.lives(123 * time.Second); !w.stand[1] || w.leader() != 0 {
		t.Errorf("core %d leads; stand: %v", w.leader(), w.stand)
	}
}

// Calls that fail for less than a Lease, or only now and then, cost nobody the lead.
func TestLeaderWithHiccups(t *testing.T) {
	t.Parallel()
	for _, call := range needed {
		t.Run(call, func(t *testing.T) {
			t.Parallel()
			w, list := ailing(t, timing())
			w.until(61 * time.Second)
			first := w.leader()
			for at := w.now; at < 200*time.Second; at += 10 * time.Second {
				heal := w.ail(first, call, false)
				if call == "Declare" {
					w.tell(first, JobsChanged{Jobs: list})
				}
				w.lives(at + 9*time.Second)
				heal()
				w.lives(at + 10*time.Second)
			}
			if w.leader() != first || len(w.terms) != 1 {
				t.Errorf("core %d leads; the terms were %v", w.leader(), w.terms)
			}
		})
	}
}

// What failed in a session that was lost does not keep the next one from leading at once.
func TestLeadsAtOnceAfterOutage(t *testing.T) {
	t.Parallel()
	w, _ := ailing(t, timing())
	w.kill(1)
	w.kill(2)
	w.until(61 * time.Second)
	w.call = func(int, string) error { return errDown }
	w.until(85 * time.Second)
	if w.leader() >= 0 || w.cores[0].session != nil {
		t.Fatal("it has a session, or leads")
	}
	w.call = nil
	for w.now < 120*time.Second && !w.cores[0].ready() {
		w.until(w.now + time.Millisecond)
	}
	if w.leader() != 0 {
		t.Errorf("at %v it has announced its jobs, and does not lead", w.now)
	}
}
