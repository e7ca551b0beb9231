package oracle_test

import (
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/sim/oracle"
)

// TestContexts tells of a handler of key a, under fence 6 of session 2, whose lease of ten seconds was renewed at 20 s, and of when its
// context ends.
func TestContexts(t *testing.T) {
	t.Parallel()
	ends := func(at time.Duration) func(history) {
		return func(h history) { h.at(at); h.ContextEnds(6, "") }
	}
	for _, c := range []struct {
		name  string
		play  func(h history)
		wrong bool
	}{
		{"returns in time", ends(27 * time.Second), false},
		{"ends when the trust does", ends(27*time.Second + 100*time.Millisecond), false},
		{"goes on when the trust is over", ends(27*time.Second + 300*time.Millisecond), true},
		{"never ends", func(h history) { h.at(28 * time.Second); h.Contexts() }, true},
		{"is renewed when the trust is over", func(h history) {
			h.at(28 * time.Second)
			h.Contexts()
			h.Session(2, "two", epoch.Add(38*time.Second), false)
			h.ContextEnds(6, "")
		}, true},
		{"stands still", func(h history) { h.Still("two", 20*time.Second); ends(40 * time.Second)(h) }, false},
		{"stands still when the trust is over", func(h history) {
			h.at(28 * time.Second)
			h.Still("two", 20*time.Second)
			ends(30 * time.Second)(h)
		}, true},
		{"goes on after it stood still", func(h history) { h.Still("two", 20*time.Second); ends(41 * time.Second)(h) }, true},
		{"has no clock that says how late it is", func(h history) { h.Misled("two", 10*time.Second); ends(30 * time.Second)(h) }, false},
		{"could know how late it is", func(h history) { h.Misled("two", 10*time.Second); ends(31 * time.Second)(h) }, true},
		{"dies", func(h history) { h.Gone("two"); h.at(40 * time.Second); h.Contexts() }, false},
		{"the store's clock is set on", func(h history) { h.Stepped(); ends(time.Hour)(h) }, false},

		{"hears that it is canceled", func(h history) { h.Canceled(a); h.at(22 * time.Second); h.ContextEnds(6, "canceled") }, false},
		{"does not hear that it is canceled", func(h history) { h.Canceled(a); ends(23 * time.Second)(h) }, true},
		{"is canceled, and hears nothing", func(h history) {
			h.Canceled(a)
			h.Unheard("two", 2*time.Second)
			ends(24 * time.Second)(h)
		}, false},
		{"is canceled, and hears nothing for a while", func(h history) {
			h.Canceled(a)
			h.Unheard("two", 2*time.Second)
			ends(25 * time.Second)(h)
		}, true},
		{"is canceled for nothing", func(h history) { h.ContextEnds(6, "canceled") }, true},
		{"is overtaken for nothing", func(h history) { h.Canceled(a); h.ContextEnds(6, "overtaken") }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := begin()
			c0 := claim()
			c0.Session = 2
			h.Claimed(c0)
			h.ContextBegins(a, 6)
			h.at(20 * time.Second)
			h.Session(2, "two", epoch.Add(30*time.Second), false)
			c.play(h)
			v := h.Violations()
			if c.wrong == (len(v) == 0) || slices.ContainsFunc(v, func(x oracle.Violation) bool { return x.Law != "context" }) {
				t.Errorf("it finds %v; it was wrong: %t", v, c.wrong)
			}
		})
	}
}
