package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// A claim that the network loses is repeated as it was, and may come to the store when the next due has been opened, and its run
// holds the key on another replica. It waits for that one: it is no overlap that a newer due came first.
func TestLateClaimWaitsForANewerRun(t *testing.T) {
	t.Parallel()
	for name, policy := range policies {
		if policy == jobs.OverlapAllow {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newTower(t, timing(), "a", "b")
			lost, late, other := true, -1, 1 // late is who first claims
			w.call = func(i int, name string) error {
				if name == "Claim" && late < 0 {
					late, other = i, 1-i
				}
				if deaf := w.now > 9*second && (name == "Lagging" || name == "Decide"); i == late && lost && (name == "Claim" || deaf) {
					return errDown
				}
				return nil
			}
			var newer *Start
			keys := list(1)
			w.act = func(i int, a Action) []Event {
				if s, ok := a.(Start); ok && s.Occurrence.Job == "keyed" && newer == nil {
					newer = &s
					return nil
				}
				return keys(i, a)
			}
			j := keyed(jobs.Every(5 * second))
			j.Overlap = policy
			all := []jobs.Job{j}
			for i := range 8 { // workers that turn over keep others from what a pass has not claimed yet
				all = append(all, jobs.Job{Name: fmt.Sprint("other-", i), Schedule: jobs.Every(second), Run: none})
			}
			w.begin(all...)
			w.until(13 * second)
			if newer == nil || !newer.Occurrence.Due.Equal(epoch.Add(10*second)) {
				t.Fatalf("at work is %+v, want the due of 10 s", newer)
			}
			lost = false
			w.until(14 * second)
			w.want("keyed", "waiting (overlap)", "running ()")
			if told := w.refused("keyed"); !slices.Equal(told, []string{"busy"}) {
				t.Errorf("told of it was %q", told)
			}
			if err := w.ended(*newer); err != nil {
				t.Errorf("the newer one was ended: %v", err)
			}
			w.tell(other, Return(newer.Handle, nil))
			w.until(14900 * time.Millisecond)
			w.want("keyed", "done", "done")
		})
	}
}
