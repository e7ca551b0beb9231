package jobs

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"
)

// cronCase is one line of testdata/cron_specs_hand.json: what public bug reports
// of other schedulers say, with the instants worked out by brute force.
type cronCase struct {
	ID, Kind, Spec, TZ string
	After              time.Time
	Next               []time.Time
	Error, Never       bool
	ErrorAlsoOK        bool `json:"error_also_ok"`
}

// notYet are the cases that need what this package does not have yet, and the
// one whose answer it does not share: an interval counts from the epoch, not
// from the instant asked about. They must fail, so that one which begins to pass
// is taken off the list.
var notYet = []string{
	"every-across-gap",
	"ok-dow-5-7", "ext-L-list", "ext-LW", "ext-dowL",
}

func TestCases(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("testdata/cron_specs_hand.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []cronCase
	if err := json.Unmarshal(b, &cases); err != nil {
		t.Fatal(err)
	}
	passed := 0
	for _, c := range cases {
		wrong := c.check()
		if wrong == "" {
			passed++
		}
		switch open := slices.Contains(notYet, c.ID); {
		case open && wrong == "":
			t.Errorf("%s: passes now; take it off notYet", c.ID)
		case !open && wrong != "":
			t.Errorf("%s (%s): %q in %s after %v: %s", c.ID, c.Kind, c.Spec, c.TZ, c.After, wrong)
		}
	}
	t.Logf("%d of %d cases pass", passed, len(cases))
}

// check returns what is wrong, or "".
func (c cronCase) check() string {
	s, err := ParseSchedule(c.Spec)
	s = s.In(c.TZ)
	switch {
	case c.Error || c.Never:
		if err == nil {
			return "accepted as " + s.String()
		}
		return ""
	case err != nil && c.ErrorAlsoOK:
		return ""
	case s.Err() != nil:
		return s.Err().Error()
	}
	at := c.After
	for _, want := range c.Next {
		got, ok := s.Next(at)
		if !ok || !got.Equal(want) {
			return "got " + got.In(want.Location()).Format(time.RFC3339) + ", want " + want.Format(time.RFC3339)
		}
		at = got
	}
	return ""
}
