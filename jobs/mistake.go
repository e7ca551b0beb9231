package jobs

import (
	"fmt"

	"github.com/belfry-go/belfry/jobs/internal/crontab"
)

// maxShown bounds how much of a text, which may be anybody's input, an error shows.
const maxShown = 80

// mistake is what is wrong with a schedule, or with a schedule inside it.
type mistake struct {
	text  string // of the whole
	place string // the operands that lead inside; "" where the whole is wrong
	part  string // the text there
	err   error
}

func (m *mistake) Error() string {
	if m.place == "" {
		return fmt.Sprintf("schedule %q: %v", shown(m.text), m.err)
	}
	if m.part == "" {
		return fmt.Sprintf("schedule %q: %s: %v", shown(m.text), m.place, m.err)
	}
	return fmt.Sprintf("schedule %q: %s, %q: %v", shown(m.text), m.place, shown(m.part), m.err)
}

func (m *mistake) Unwrap() error { return m.err }

func shown(text string) string { return crontab.Shown(text, maxShown) }

// broken is a schedule that carries what is wrong with it.
func broken(text string, err error) Schedule {
	return Schedule{&compiled{text: text, err: &mistake{text: text, err: err}}}
}

// brokenWithin is a combined schedule of which the operand at place is wrong.
func brokenWithin(text, place string, operand Schedule) Schedule {
	inner := *operand.c.err
	if inner.place == "" {
		inner.place, inner.part = place, inner.text
	} else {
		inner.place = place + ", " + inner.place
	}
	inner.text = text
	return Schedule{&compiled{text: text, err: &inner}}
}

// asGiven puts a wrong schedule under the text that was given for it; others have
// their canonical text.
func asGiven(text string, s Schedule) Schedule {
	if s.fault() == nil {
		return s
	}
	m := *s.c.err
	m.text = text
	return Schedule{&compiled{text: text, err: &m}}
}
