package scheduler

import (
	"context"
	"sync"
	"time"

	"github.com/belfry-go/belfry/internal/core"
)

// hintWithin bounds the sending of a set of hints, hintAtOnce how many of it are under way at once. The last set is
// waited for before Run returns.
const (
	hintWithin = 500 * time.Millisecond
	hintAtOnce = 16
)

// hint sends hints beside the loop, where the members can. One that fails is no loss: the member finds what lies
// there by its own sweep.
func (r *runner) hint(a core.Hint) {
	members, ok := r.cfg.Members.(Hinter)
	if !ok {
		return
	}
	r.users.Go(func() {
		ctx, cancel := context.WithTimeout(r.base, hintWithin)
		defer cancel()
		names := make(chan string)
		var senders sync.WaitGroup
		for range min(hintAtOnce, len(a.Members)) {
			senders.Go(func() {
				for name := range names {
					if err := members.Hint(ctx, name); err != nil {
						r.log.Debug("a hint was not sent; the member looks by itself, within its sweep", "member", name, "err", err)
					}
				}
			})
		}
		for _, name := range a.Members {
			select {
			case names <- name:
			case <-ctx.Done():
			}
		}
		close(names)
		senders.Wait()
	})
}

// hearHints tells the core that this replica was hinted, until base ends. Further hints wait for a moment,
// in which they become one: a flood of them costs the loop nothing.
func (r *runner) hearHints(hints <-chan struct{}) {
	for {
		select {
		case <-hints:
			r.mail.post(core.Hinted{})
		case <-r.base.Done():
			return
		}
		select {
		case <-time.After(core.HintEvery):
		case <-r.base.Done():
			return
		}
	}
}
