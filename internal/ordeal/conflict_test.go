package ordeal

import (
	"fmt"
	"sync"
	"testing"

	"github.com/belfry-go/belfry/idempotency"
)

// F42: of fifty sessions that claim one key at once one wins, and the others are told that it is taken: what the store
// does about deadlocks and conflicts is its own affair.
func TestManyClaimers(t *testing.T) {
	each(t, anyStore, func(t *testing.T, s *site) {
		const claimers, rounds = 50, 4
		stores := []*replica{open(t, s.open(t), "a"), open(t, s.open(t), "b")}
		due := openDue(t, stores[0].store)
		sessions := make([]*replica, claimers)
		for i := range sessions {
			sessions[i] = open(t, stores[i%2].store, fmt.Sprint("claimer", i))
		}
		for round := range rounds {
			answers, errs := make([]idempotency.Answer, claimers), make([]error, claimers)
			gate := make(chan struct{})
			var wg sync.WaitGroup
			for i, r := range sessions {
				c := claims(due, fmt.Sprint("k", round), 1)
				wg.Go(func() {
					<-gate
					a, err := r.store.Claim(t.Context(), r.session, int64(round+1), c)
					if errs[i] = err; err == nil {
						answers[i] = a[0]
					}
				})
			}
			close(gate)
			wg.Wait()
			won := 0
			for i, a := range answers {
				switch {
				case errs[i] != nil:
					t.Errorf("round %d: claimer %d: %v", round, i, errs[i])
				case a.Verdict == idempotency.Won:
					won++
				case a.Verdict != idempotency.Taken:
					t.Errorf("round %d: claimer %d was told %d, want taken", round, i, a.Verdict)
				}
			}
			if won != 1 {
				t.Errorf("round %d: %d won", round, won)
			}
		}
	})
}
