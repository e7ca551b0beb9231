package jobs

import (
	"encoding/json"
	"os"
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
	// Takes is "alt" where this package takes the case's other reading, for TakesNote's reason.
	Takes     string
	TakesNote string      `json:"takes_note"`
	AltNext   []time.Time `json:"alt_next"`
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
		if wrong != "" {
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
	at, next := c.After, c.Next
	if c.Takes == "alt" {
		next = c.AltNext
	}
	if len(next) == 0 {
		return "the case names no instant"
	}
	for _, want := range next {
		got, ok := s.Next(at)
		if !ok || !got.Equal(want) {
			return "got " + got.In(want.Location()).Format(time.RFC3339) + ", want " + want.Format(time.RFC3339)
		}
		at = got
	}
	return ""
}
