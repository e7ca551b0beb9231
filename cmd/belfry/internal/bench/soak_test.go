package bench

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

func TestSoak(t *testing.T) {
	var log, text bytes.Buffer
	r, err := soakPlan{keys: 600, every: 2 * time.Second, dues: 1}.run(t.Context(), &log)
	if err != nil || r.Missing != 0 || r.Wrong != 0 {
		t.Errorf("%v; %+v", err, r)
	}
	failed := 0
	for _, n := range r.Failed {
		failed += n
	}
	if r.Occurrences != 600 || r.Done+failed != 600 || r.Retried == 0 || len(r.Failed) != 3 {
		t.Errorf("not all kinds of ends were seen: %+v", r)
	}
	if r.GoroutinesAfter > r.GoroutinesBefore {
		t.Errorf("%d goroutines before, %d after", r.GoroutinesBefore, r.GoroutinesAfter)
	}
	r.Print(&text)
	if !strings.Contains(text.String(), "600 occurrences") {
		t.Errorf("printed\n%s", &text)
	}
}

// TestSoakErr: what is wrong with a soak fails it.
func TestSoakErr(t *testing.T) {
	good := SoakReport{Occurrences: 10, Done: 10, GoroutinesBefore: 3, GoroutinesAfter: 3, Heap: SoakHeap{10, 16}}
	if err := good.Err(); err != nil {
		t.Error(err)
	}
	missing, wrong, more, grown := good, good, good, good
	missing.Missing, more.GoroutinesAfter, grown.Heap.Late = 1, 4, 17
	wrong.wrong("an example")
	for _, r := range []SoakReport{missing, wrong, more, grown} {
		if r.Err() == nil {
			t.Errorf("nothing is wrong with %+v", r)
		}
	}
}

// TestSoakHandler: the load does what its fate says, which is what the record is held to.
func TestSoakHandler(t *testing.T) {
	seen := map[string]bool{}
	for i := range 10_000 {
		f := fateOf("customer", time.Unix(int64(i), 0))
		outcome, reason, attempts := f.end()
		if (outcome == idempotency.Done) != (reason == "") || attempts < 1 || attempts > 2 {
			t.Fatalf("%+v ends %v %q after %d", f, outcome, reason, attempts)
		}
		seen[reason] = true
	}
	if len(seen) != 4 {
		t.Error(errors.New("some end never comes"), seen)
	}
}
