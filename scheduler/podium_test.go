package scheduler_test

import (
	"context"
	"errors"
	"sync"
)

// podium is an election that the test decides, for replicas in one bubble.
type podium struct {
	mu      sync.Mutex
	chosen  string // who is to be elected; empty: nobody
	holder  string // whose term lasts, or whose lead has not returned
	depose  context.CancelCauseFunc
	term    int64
	changed chan struct{}
}

func newPodium() *podium { return &podium{changed: make(chan struct{})} }

var errDeposed = errors.New("the test has deposed it")

// elect ends the term at hand and lets the named replica have the next one, once the leader before has let go and it stands.
func (p *podium) elect(name string) { p.choose(name, false) }

// usurp does not wait for the leader before, which hears of it as soon as it can.
func (p *podium) usurp(name string) { p.choose(name, true) }

func (p *podium) choose(name string, now bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.chosen = name
	if p.holder != "" && p.holder != name {
		p.depose(errDeposed)
		if now {
			p.holder = ""
		}
	}
	p.tellLocked()
}

func (p *podium) tellLocked() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// lectern is one replica's elector.
type lectern struct {
	*podium
	name string
}

func (l lectern) Lead(ctx context.Context, lead func(context.Context, int64) error) error {
	for ctx.Err() == nil {
		l.mu.Lock()
		changed, mine := l.changed, l.chosen == l.name && l.holder == ""
		if !mine {
			l.mu.Unlock()
			select {
			case <-changed:
			case <-ctx.Done():
			}
			continue
		}
		l.term++
		term, cancel := context.WithCancelCause(ctx)
		l.holder, l.depose = l.name, cancel
		number := l.term
		l.mu.Unlock()
		err := lead(term, number)
		cancel(nil)
		l.mu.Lock()
		if l.term == number { // else another one has usurped it
			l.holder = ""
			if ctx.Err() != nil && l.chosen == l.name {
				l.chosen = "" // it has resigned
			}
		}
		l.tellLocked()
		l.mu.Unlock()
		if err != nil {
			return err
		}
	}
	return nil
}
