package rule

import (
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// Who leads, and who may lead next, for each way in which a leader ends.
func TestSucceed(t *testing.T) {
	t.Parallel()
	leads := Leading{Term: 7, Session: 2, Since: now.Add(-time.Hour), Why: nobodyLed, Replica: "a", Expires: now.Add(time.Second)}
	change := func(f func(l *Leading)) Leading {
		l := leads
		f(&l)
		return l
	}
	lapsed := change(func(l *Leading) { l.Expires = now })
	marked := change(func(l *Leading) { l.Expires, l.Marked = now, now.Add(-time.Minute) })
	markedLate := change(func(l *Leading) { l.Expires, l.Marked = now.Add(-time.Minute), now })
	left := change(func(l *Leading) { l.Until, l.Why = now.Add(-time.Minute), Resigned("drain") })
	leftAndLapsed := change(func(l *Leading) { l.Until, l.Why, l.Expires = now.Add(-time.Minute), Resigned(""), now })
	for name, c := range map[string]struct {
		row   Leading
		term  int64
		until time.Time
		why   string
		next  Succession
	}{
		"nobody":                   {Leading{}, 0, time.Time{}, "", Succession{true, "nobody led before", false}},
		"one leads":                {leads, 0, time.Time{}, "nobody led before", Succession{}},
		"one leads in that term":   {leads, 7, time.Time{}, "nobody led before", Succession{}},
		"a higher term":            {leads, 8, time.Time{}, "nobody led before", Succession{true, "a: a higher term", false}},
		"lapsed":                   {lapsed, 0, now, "its session ended", Succession{true, "a: its session ended", true}},
		"lapsed, of a lower term":  {lapsed, 1, now, "its session ended", Succession{true, "a: its session ended", true}},
		"marked":                   {marked, 0, now.Add(-time.Minute), "its session ended", Succession{true, "a: its session ended", false}},
		"marked after it lapsed":   {markedLate, 0, now.Add(-time.Minute), "its session ended", Succession{true, "a: its session ended", false}},
		"resigned":                 {left, 0, now.Add(-time.Minute), "resigned: drain", Succession{true, "a: resigned: drain", false}},
		"resigned before it ended": {leftAndLapsed, 9, now.Add(-time.Minute), "resigned", Succession{true, "a: resigned", false}},
	} {
		if got := c.row.Succeed(c.term, now); got != c.next {
			t.Errorf("%s: the next is %+v, want %+v", name, got, c.next)
		}
		want := idempotency.Leader{Term: c.row.Term, Session: c.row.Session, Replica: c.row.Replica, Since: c.row.Since, Until: c.until, Why: c.why}
		if got := c.row.Leader(now); got != want {
			t.Errorf("%s: the leader is %+v, want %+v", name, got, want)
		}
		if got := c.row.Resigns(2, 7, now); got != (c.row.Term > 0 && c.until.IsZero()) {
			t.Errorf("%s: its resignation changes something: %v", name, got)
		}
		if c.row.Resigns(2, 6, now) || c.row.Resigns(3, 7, now) {
			t.Errorf("%s: another's resignation, or that of another term, changes something", name)
		}
	}
	longest := Leading{Term: 1, Replica: strings.Repeat("r", 255), Until: now, Why: Resigned(strings.Repeat("w", 255))}
	if n := len(longest.Succeed(0, now).Why); n != MaxWhy {
		t.Errorf("the longest Why has %d bytes, want %d", n, MaxWhy)
	}
}
