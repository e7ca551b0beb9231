package scheduler

import (
	"sync"

	"github.com/belfry-go/belfry/internal/core"
)

// mailbox brings events to the loop. Posting never blocks; what piled up is
// taken at once, and so becomes one step and few batches. It is bounded by what the core has
// under way: each call, handler and pull posts once; of a handler's progress one event waits at most; and hints are read no faster than one each HintEvery.
type mailbox struct {
	mu     sync.Mutex
	events []core.Event
	batch  int64 // counts from 1 how often they were taken

	// notify has room for one; a token in it says that there may be events. It is never closed.
	notify chan struct{}
}

func newMailbox() *mailbox { return &mailbox{batch: 1, notify: make(chan struct{}, 1)} }

func (m *mailbox) post(e core.Event) {
	m.mu.Lock()
	m.events = append(m.events, e)
	m.mu.Unlock()
	m.wake()
}

// wake makes the loop take what there is.
func (m *mailbox) wake() {
	select {
	case m.notify <- struct{}{}:
	default:
	}
}

func (m *mailbox) take() []core.Event {
	m.mu.Lock()
	defer m.mu.Unlock()
	e := m.events
	m.events = nil
	m.batch++
	return e
}
