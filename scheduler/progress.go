package scheduler

import (
	"time"

	"github.com/belfry-go/belfry/internal/core"
)

// progressEach is how often the loop is woken for the progress of one handler, at most. What comes between is taken with
// what wakes the loop next, a sweep at the latest.
const progressEach = 10 * time.Millisecond

// progress is what one handler told last. The mailbox's mutex guards it.
type progress struct {
	handle int64
	batch  int64 // of events in which its own waits; the mailbox's batch: it waits still
	index  int   // there
	woke   time.Time
}

// progressed posts that a handler gets on. Of one handler one event waits at most, with its last note.
func (m *mailbox) progressed(p *progress, note string) {
	e := core.Progressed{Handle: p.handle, Note: note}
	m.mu.Lock()
	if p.batch == m.batch {
		m.events[p.index] = e
		m.mu.Unlock()
		return
	}
	p.batch, p.index = m.batch, len(m.events)
	m.events = append(m.events, e)
	now := time.Now()
	wake := now.Sub(p.woke) >= progressEach
	if wake {
		p.woke = now
	}
	m.mu.Unlock()
	if wake {
		m.wake()
	}
}
