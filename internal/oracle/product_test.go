package oracle_test

import (
	"fmt"
	"iter"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/oracle"
	"github.com/belfry-go/belfry/jobs"
)

// lines are the twenty that the product is compared by: both ways of taking a change of clocks, at the hours where clocks
// change, every kind of day, and seconds.
var lines = []string{
	"30 2 * * *", "* 2 * * *", "*/30 * * * *", "0 */2 * * *", "0 0 * * *",
	"59 23 L * *", "0 3 LW * *", "15 1 * * 5#2", "0 2 15W * *", "30 1 * * 0L",
	"0 0 13 * 5", "0 12 29 2 *", "20 2-6/2 * * *", "*/15 0-3,22-23 * * *", "45 0-23 * * 0-7",
	"@hourly", "30 59 1 * * *", "*/20 */5 2 * * *", "10 */3 L-3W,15 2-12/2 1L", "5 0,12 L-2 * SUN-TUE,7L",
}

func parse(t *testing.T, lines ...string) (specs []*oracle.Spec) {
	t.Helper()
	for _, line := range lines {
		spec, err := oracle.Parse(line)
		if err != nil {
			t.Fatal(err)
		}
		specs = append(specs, spec)
	}
	return specs
}

// dues are the oracle's, in Unix seconds, for each of the lines.
func dues(t *testing.T, loc *time.Location, from, to time.Time, lines ...string) [][]int64 {
	t.Helper()
	all := make([][]int64, len(lines))
	oracle.Walk(parse(t, lines...), loc, from, to, func(spec int, at time.Time) { all[spec] = append(all[spec], at.Unix()) })
	return all
}

// differs says where a schedule first yields something else than the dues; "" is nowhere.
func differs(got iter.Seq[time.Time], want []int64, loc *time.Location) string {
	show := func(t int64) string {
		return time.Unix(t, 0).In(loc).Format("Mon 2006-01-02 15:04:05 -07:00:00")
	}
	for due := range got {
		switch {
		case len(want) == 0:
			return fmt.Sprintf("it fires at %s, after the last due", show(due.Unix()))
		case due.Unix() != want[0]:
			return fmt.Sprintf("it fires at %s, where %s is due", show(due.Unix()), show(want[0]))
		}
		want = want[1:]
	}
	if len(want) > 0 {
		return fmt.Sprintf("it does not fire at %s nor at %d dues after it", show(want[0]), len(want)-1)
	}
	return ""
}

// judge compares the product with the oracle in one zone, over (from, to], and returns how many dues they share.
func judge(t *testing.T, zone string, from, to time.Time) (n int) {
	t.Helper()
	loc := location(t, zone)
	all := dues(t, loc, from, to, lines...)
	for i, line := range lines {
		s := jobs.Cron(line).In(zone)
		if err := s.Err(); err != nil {
			t.Errorf("%q: the product refuses it: %v", line, err)
			continue
		}
		if wrong := differs(s.All(from, to), all[i], loc); wrong != "" {
			t.Errorf("%q in %s in (%s, %s]: %s", line, zone, from.Format(time.RFC3339), to.Format(time.RFC3339), wrong)
			continue
		}
		n += len(all[i])
	}
	return n
}

func TestProduct(t *testing.T) {
	t.Parallel()
	from := time.Date(*fromFlag, 1, 1, 0, 0, 0, 0, time.UTC)
	to := from.AddDate(*yearsFlag, 0, 0)
	var n atomic.Int64
	names := zones(t)
	t.Cleanup(func() {
		t.Logf("%d dues, %d lines, %d zones, %d years from %d", n.Load(), len(lines), len(names), *yearsFlag, *fromFlag)
	})
	for _, zone := range names {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			n.Add(int64(judge(t, zone, from, to)))
			replay(t, "TestProduct", zone)
		})
	}
}

// replay prints how to see a failure alone.
func replay(t *testing.T, test, zone string) {
	if t.Failed() {
		t.Logf("replay: go test ./internal/oracle -run '^%s$' -oracle.zones %s -oracle.from %d -oracle.years %d", test, zone, *fromFlag, *yearsFlag)
	}
}

// changes are the instants at which the clock of a zone changed or by its rule will change, in the years that a zone's
// history and a long-lived service can name.
func changes(loc *time.Location) (all []time.Time) {
	at := time.Date(1800, 1, 1, 0, 0, 0, 0, time.UTC)
	for {
		_, end := at.In(loc).ZoneBounds()
		if end.IsZero() || end.Year() > 2045 || !end.After(at) {
			return all
		}
		at = end.UTC()
		all = append(all, at)
	}
}

// Two days round each change of each clock since there were clocks: those of a day or of 44 minutes and 30 seconds, and
// those that come in pairs.
func TestRoundChanges(t *testing.T) {
	t.Parallel()
	var n, windows atomic.Int64
	names := zones(t)
	t.Cleanup(func() {
		t.Logf("%d dues, %d lines, %d zones, %d changes", n.Load(), len(lines), len(names), windows.Load())
	})
	for _, zone := range names {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			for _, change := range changes(location(t, zone)) {
				n.Add(int64(judge(t, zone, change.Add(-26*time.Hour), change.Add(26*time.Hour))))
				windows.Add(1)
			}
			replay(t, "TestRoundChanges", zone)
		})
	}
}
