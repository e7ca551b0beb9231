package core

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// told is all that a core announced, in order.
func (w *tower) told() (all []Announce) {
	for _, a := range w.acts {
		if say, ok := a.(Announce); ok {
			all = append(all, say)
		}
	}
	return all
}

// Each state that is announced but serving has a reason that a person can act on and that members show in full, and each
// has the identity of the store that the replica began with, as soon as it knows that.
func TestStatesAndReasons(t *testing.T) {
	t.Parallel()
	long := errors.New("sqlite: the disk is full; free space:\n" + strings.Repeat("é", 100) + ": disk I/O error (13)")
	refused := fmt.Errorf("%w: namespace \"billing\" has 4096 partitions, not 8192; set 4096, or change it with all replicas stopped", idempotency.ErrRefused)
	for _, c := range []struct {
		name   string
		play   func(w *tower)
		states string
		words  []string // of the last reason
	}{
		{"stopped", func(w *tower) { w.tell(0, Stop{Why: "terminated signal received"}) },
			"serving draining", []string{"stopping: terminated signal received"}},
		{"stopped for a long reason", func(w *tower) { w.tell(0, Stop{Why: strings.Repeat("ß", 200)}) },
			"serving draining", []string{"stopping: ß"}},
		{"store out of reach", func(w *tower) {
			w.call = func(int, string) error { return errDown }
			w.until(20 * time.Second)
		}, "serving unfit", []string{"fails since 00:00:", "connection refused", "check it"}},
		{"store that says much", func(w *tower) {
			w.call = func(int, string) error { return long }
			w.until(20 * time.Second)
		}, "serving unfit", []string{"the disk is full", "disk I/O error (13)", "check it"}},
		{"store back", func(w *tower) {
			w.call = func(int, string) error { return errDown }
			w.until(20 * time.Second)
			w.call = nil
			w.until(40 * time.Second)
		}, "serving unfit serving", nil},
		{"store replaced", func(w *tower) {
			id := "WQ4VFWL2KXNOMTD5XHIHGBHYNM"
			w.store = other{w.store, &id}
			w.until(20 * time.Second)
		}, "serving unfit", []string{"is WQ4VFWL2KXNOMTD5XHIHGBHYNM, not ", "restart the fleet"}},
		{"store that refuses", func(w *tower) {
			w.call = func(_ int, name string) error {
				if name == "OpenSession" {
					return refused
				}
				return nil
			}
			w.cores[0].lose("test")
			w.until(20 * time.Second)
		}, "serving unfit", []string{"refused by the store", "4096 partitions, not 8192", "set 4096"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newTower(t, timing(), "a")
			w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(time.Hour), Run: none})
			w.until(5 * time.Second)
			store := w.cores[0].store
			c.play(w)
			var states []string
			for _, say := range w.told() {
				states = append(states, say.State)
				if say.Store == "" || say.Store != store {
					t.Errorf("%s: announced with store %q, want %q", say.State, say.Store, store)
				}
				if (say.State == Serving) != (say.Reason == "") || len(say.Reason) > 128 || !utf8.ValidString(say.Reason) {
					t.Errorf("%s for the reason %q of %d bytes", say.State, say.Reason, len(say.Reason))
				}
			}
			if got := strings.Join(states, " "); got != c.states {
				t.Errorf("announced %s, want %s", got, c.states)
			}
			last := w.told()[len(w.told())-1]
			for _, word := range c.words {
				if !strings.Contains(last.Reason, word) {
					t.Errorf("the reason is %q, without %q", last.Reason, word)
				}
			}
			t.Logf("%s: %s", last.State, last.Reason)
		})
	}
}

// A replica that waits for its store from the start tells so once that has failed thrice, and serves only when the store
// has taken its jobs, however well it answers otherwise.
func TestServesOnlyWhatTheStoreTook(t *testing.T) {
	t.Parallel()
	w := newTower(t, timing(), "a")
	down := map[string]bool{"OpenSession": true, "Declare": true}
	w.call = func(_ int, name string) error {
		if down[name] {
			return errDown
		}
		return nil
	}
	w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(time.Hour), Run: none})
	w.until(10 * time.Second)
	if all := w.told(); len(all) != 1 || all[0].State != Unfit || all[0].Store != "" {
		t.Errorf("announced %+v, want unfit, of no store", all)
	}
	down["OpenSession"] = false
	w.mute = func(_ int, name string) bool { return name == "Declare" } // under way, for long
	w.until(25 * time.Second)                                           // renewals succeed
	if w.calls["RenewSession"] < enough {
		t.Fatal("the session was not renewed: that shows nothing")
	}
	for _, say := range w.told() {
		if say.State == Serving {
			t.Error("serving is announced before the store has taken the jobs")
		}
	}
	w.mute = nil
	down["Declare"] = false
	w.cores[0].declare()
	w.until(30 * time.Second)
	if all := w.told(); all[len(all)-1].State != Serving || all[len(all)-1].Store == "" {
		t.Errorf("the last announcement is %+v, want serving with a store", all[len(all)-1])
	}
}

// Where there is no store there is nothing to compare.
func TestNoStoreIsAnnounced(t *testing.T) {
	t.Parallel()
	c := timing()
	c.Store = false
	w := newTower(t, c, "a")
	w.begin(jobs.Job{Name: "j", Schedule: jobs.Every(time.Hour), Guarantee: jobs.Efficiency, Run: none})
	w.tell(0, Stop{Why: "test"})
	want := []Announce{{State: Serving}, {State: Draining, Reason: "stopping: test"}}
	if got := w.told(); len(got) != 2 || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("announced %+v, want %+v", got, want)
	}
}
