package oracle_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/oracle"
)

// handCase is a line of the hand-made cases that the product is held to as well.
type handCase struct {
	ID, Kind, Spec, TZ string
	After              time.Time
	Next               []time.Time
	Error, Never       bool
}

func handCases(t *testing.T) (cases []handCase) {
	b, err := os.ReadFile(filepath.FromSlash("../../jobs/testdata/cron_specs_hand.json"))
	if err == nil {
		err = json.Unmarshal(b, &cases)
	}
	if err != nil || len(cases) == 0 {
		t.Fatalf("%d cases: %v", len(cases), err)
	}
	return cases
}

// line is the case's crontab line without the zone before it, and the zone in force. An interval is none.
func (c handCase) line() (line, zone string, ok bool) {
	for _, prefix := range []string{"TZ=", "CRON_TZ="} {
		if rest, cut := strings.CutPrefix(c.Spec, prefix); cut {
			zone, line, _ = strings.Cut(rest, " ")
			return line, zone, !strings.Contains(line, "@every")
		}
	}
	return c.Spec, c.TZ, !strings.Contains(c.Spec, "@every")
}

// The oracle alone is right about every case: all that it finds up to the last instant that a case names is what the
// case names.
func TestHandCases(t *testing.T) {
	t.Parallel()
	judged := 0
	for _, c := range handCases(t) {
		line, zone, ok := c.line()
		if !ok || len(c.Next) == 0 {
			continue
		}
		judged++
		spec, err := oracle.Parse(line)
		if err != nil {
			t.Errorf("%s: %v", c.ID, err)
			continue
		}
		loc := location(t, zone)
		got := spec.Dues(loc, c.After, c.Next[len(c.Next)-1])
		if !slices.EqualFunc(got, c.Next, time.Time.Equal) {
			t.Errorf("%s: %q in %s after %v:\n got %v\nwant %v", c.ID, line, zone, c.After, got, c.Next)
		}
	}
	t.Logf("%d cases", judged)
	if judged < 140 {
		t.Errorf("only %d cases were judged; the file has more than 140 with instants", judged)
	}
}

// Bad lines are refused: an oracle that read more into a line than there is would judge by another line.
func TestHandErrors(t *testing.T) {
	t.Parallel()
	judged := 0
	for _, c := range handCases(t) {
		if !c.Error || c.Kind == "tz_prefix" || strings.TrimSpace(c.Spec) != c.Spec {
			continue
		}
		judged++
		if _, err := oracle.Parse(c.Spec); err == nil {
			t.Errorf("%s: %q is accepted", c.ID, c.Spec)
		}
	}
	t.Logf("%d lines", judged)
	if judged < 40 {
		t.Errorf("only %d lines were judged", judged)
	}
}

// No date matches, so nothing fires, and the walk ends.
func TestNever(t *testing.T) {
	t.Parallel()
	for _, line := range []string{"0 0 30 2 *", "0 0 31 2,4,6,9,11 *", "0 0 L-29 2 *", "0 0 31W 4 *"} {
		spec, err := oracle.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		from := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
		if got := spec.Dues(time.UTC, from, from.AddDate(2, 0, 0)); len(got) != 0 {
			t.Errorf("%s: %v", line, got)
		}
	}
}
