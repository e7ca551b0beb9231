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

// intern returns the schedule of a canonical text, compiling it if it is new.
func intern(text string, compile func() rule) Schedule {
	interned.mu.Lock()
	defer interned.mu.Unlock()
	if c := interned.byText[text].Value(); c != nil {
		return Schedule{c}
	}
	if interned.byText == nil {
		interned.byText = make(map[string]weak.Pointer[compiled])
	}
	c := &compiled{text: text, rule: compile()}
	interned.byText[text] = weak.Make(c)
	runtime.AddCleanup(c, forget, text)
	return Schedule{c}
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
