package jobs

import (
	"runtime"
	"sync"
	"weak"
)

// interned holds one compiled form per text, for as long as a Schedule uses it:
// a million keys on the same schedule cost one. Its entries are weak, so texts
// that come and go leave nothing behind.
var interned struct {
	mu     sync.Mutex
	byText map[string]weak.Pointer[compiled]
}

// known returns the schedule of a canonical text where it is compiled already.
func known(text string) (Schedule, bool) {
	interned.mu.Lock()
	defer interned.mu.Unlock()
	c := interned.byText[text].Value()
	return Schedule{c}, c != nil
}

// intern returns the schedule of a canonical text, compiling it if it is new.
// Compiling may take its time, so it holds no lock; of two that compile the same
// text at once, one form stays.
func intern(text string, compile func() rule) Schedule {
	if s, ok := known(text); ok {
		return s
	}
	fresh := &compiled{text: text, rule: compile()}

	interned.mu.Lock()
	defer interned.mu.Unlock()
	if c := interned.byText[text].Value(); c != nil {
		return Schedule{c}
	}
	if interned.byText == nil {
		interned.byText = make(map[string]weak.Pointer[compiled])
	}
	interned.byText[text] = weak.Make(fresh)
	runtime.AddCleanup(fresh, forget, text)
	return Schedule{fresh}
}

// forget drops a text whose compiled form is gone, unless it was compiled anew
// in the meantime.
func forget(text string) {
	interned.mu.Lock()
	defer interned.mu.Unlock()
	if interned.byText[text].Value() == nil {
		delete(interned.byText, text)
	}
}
