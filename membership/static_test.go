package membership

import (
	"slices"
	"testing"
)

func TestStatic(t *testing.T) {
	t.Parallel()
	s := NewStatic("b", "c", "a", "c")
	if s.Self() != "b" || s.Facts() != nil {
		t.Errorf("%q, %v", s.Self(), s.Facts())
	}
	say := func(state string) {
		t.Helper()
		if err := s.Announce(t.Context(), state, "", "", nil); err != nil {
			t.Fatal(err)
		}
	}
	see := func(want ...string) <-chan struct{} {
		t.Helper()
		got, changed := s.Watch()
		if !slices.Equal(got, want) {
			t.Errorf("%v, not %v", got, want)
		}
		got[0] = "changed by a reader"
		return changed
	}
	changed := see("a", "b", "c")
	say("serving")
	select {
	case <-changed:
		t.Error("serving again is no change")
	default:
	}
	for _, state := range []string{"draining", "unfit"} {
		say(state)
		<-changed
		changed = see("a", "c")
		say("serving")
		<-changed
		changed = see("a", "b", "c")
	}
	if err := s.Announce(t.Context(), "asleep", "", "", nil); err == nil {
		t.Error("an unknown state was taken")
	}
}

func TestStaticAlone(t *testing.T) {
	t.Parallel()
	s := NewStatic("a")
	for _, state := range []string{"serving", "unfit", "draining"} {
		if err := s.Announce(t.Context(), state, "", "", nil); err != nil {
			t.Fatal(err)
		}
		if got, _ := s.Watch(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("%s: %v", state, got)
		}
	}
}
