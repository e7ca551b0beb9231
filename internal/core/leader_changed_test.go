package core

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// A replica that leads twice in one session, and has read nothing else of the row in between, looks at what came due meanwhile as any other that
// begins to lead: at once, not at its next sweep.
func TestLeadsAgainAtOnce(t *testing.T) {
	t.Parallel()
	w := newCrew(t, timing(), "a")
	lead := w.first(0, "Lead")
	w.begin(global(10 * time.Second))
	w.until(10500 * time.Millisecond)
	own := w.cores[0].ring
	w.tell(0, RingChanged{})
	resign := w.first(0, "Resign")
	w.tell(0, w.make(*lead)) // it cannot lead now, and gives up what it was given
	w.tell(0, RingChanged{Ring: own})
	w.wantRuns()
	w.tell(0, w.make(*resign))
	if w.leader() != 0 || w.calls["Leader"] > 0 {
		t.Fatalf("core %d leads; the row was read %d times, want only by Lead", w.leader(), w.calls["Leader"])
	}
	w.wantRuns(ran(10*time.Second, 0, w.leads[0]))
}

// A due of the leader's that is finished and not closed when its term ends is closed by the owner of the job's name, who need not give way to
// a leader any more, as soon as it sees that nobody leads.
func TestOwnerClosesForNobody(t *testing.T) {
	t.Parallel()
	w := newCrew(t, elected(), "a", "b")
	j := global(20 * time.Second)
	j.Keys = jobs.KeyList("k0", "k1")
	w.streams(j.Keys)
	w.begin(j)
	owner, leader := w.other("global")
	closed := time.Duration(0)
	w.call = func(i int, name string) error {
		switch {
		case name == "CloseDue" && i == leader:
			return errDown
		case name == "CloseDue" && closed == 0:
			closed = w.now
		}
		return nil
	}
	w.elect(leader, 1)
	w.until(20100 * time.Millisecond)
	if len(w.done) != 2 || closed > 0 {
		t.Fatalf("%d keys are done, the due was closed at %v; want both, and it open", len(w.done), closed)
	}
	w.tell(leader, Deposed{Term: 1, Why: "the test says so"})
	w.tell(owner, Hinted{})
	w.until(20*time.Second + w.cores[0].cfg.Grace/2)
	if closed == 0 {
		t.Error("it is open still")
	}
}
