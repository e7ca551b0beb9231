package scheduler

import (
	"context"
	"testing"
	"time"
)

// A term may end before the loop has begun its roles: none is called in it, then or later.
func TestTermEndsBeforeItsRoles(t *testing.T) {
	t.Parallel()
	r := &roles{patience: time.Minute, spawn: func(func()) { t.Error("a role is called in a term that has ended") }}
	role := func(context.Context, int64) error { return nil }
	if err := r.add("first", role); err != nil {
		t.Fatal(err)
	}
	x := newTerm(t.Context(), 1, func() bool { return false })
	r.end(x, ErrDeposed)
	<-x.done
	r.begin(x)
	if err := r.add("second", role); err != nil {
		t.Fatal(err)
	}
}
