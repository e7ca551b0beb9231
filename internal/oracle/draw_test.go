package oracle_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

var seedsFlag = flag.Int("oracle.seeds", 25, "how many seeds TestDrawnLines runs, from -oracle.seed on")

// Lines drawn from the whole grammar, in forty days round a change of a clock or anywhere: the product accepts each that
// can ever fire, and its dues are the oracle's.
func TestDrawnLines(t *testing.T) {
	t.Parallel()
	seeds, names := *seedsFlag, zones(t)
	total, refused := 0, 0
	for seed := *seedFlag; seed < *seedFlag+uint64(seeds); seed++ {
		r := rand.New(rand.NewPCG(seed, 0))
		zone := names[r.IntN(len(names))]
		loc := location(t, zone)
		from := time.Date(1900+r.IntN(250), 1, 1+r.IntN(365), r.IntN(24), r.IntN(60), r.IntN(60), 0, time.UTC)
		if all := changes(loc); len(all) > 0 && r.IntN(3) > 0 {
			from = all[r.IntN(len(all))].Add(-time.Duration(r.IntN(40*24*3600)) * time.Second)
		}
		drawn := make([]string, 20)
		for i := range drawn {
			drawn[i] = drawLine(r)
		}
		to := from.AddDate(0, 0, 40)
		for i, want := range dues(t, loc, from, to, drawn...) {
			wrong := ""
			if s := jobs.Cron(drawn[i]).In(zone); s.Err() != nil {
				refused++
				wrong = fires(t, drawn[i], s.Err())
			} else {
				wrong = differs(s.All(from, to), want, loc)
			}
			if wrong != "" {
				t.Errorf("%q in %s in (%s, %s]: %s\nreplay: go test ./internal/oracle -run '^TestDrawnLines$' -oracle.seed %d -oracle.seeds 1",
					drawn[i], zone, from.Format(time.RFC3339), to.Format(time.RFC3339), wrong, seed)
			}
			total += len(want)
		}
	}
	t.Logf("%d dues, %d lines of which %d never fire, %d seeds from %d", total, 20*seeds, refused, seeds, *seedFlag)
}

// fires is what is wrong with refusing a line: it names a date of the 40 years of a whole calendar, 28 years, and more.
func fires(t *testing.T, line string, refusal error) string {
	from := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	if all := parse(t, line)[0].Dues(time.UTC, from, from.AddDate(40, 0, 0)); len(all) > 0 {
		return fmt.Sprintf("refused (%v), but fires at %v", refusal, all[0])
	}
	return ""
}

// drawLine draws a line of five or six fields, as the oracle reads them.
func drawLine(r *rand.Rand) string {
	fields := []string{
		drawList(r, 0, 59, nil), drawList(r, 0, 23, nil), drawList(r, 1, 31, drawOfMonth), drawList(r, 1, 12, drawMonth),
		drawList(r, 0, 7, drawOfWeek),
	}
	if r.IntN(2) == 0 { // most lines name few hours
		fields[1] = fmt.Sprint(r.IntN(4))
	}
	if r.IntN(3) > 0 {
		fields[3] = "*"
	}
	for i := range 2 {
		if r.IntN(3) == 0 {
			fields[2+2*i] = "*"
		}
	}
	if r.IntN(4) == 0 {
		fields = append([]string{fmt.Sprintf("%d,%d", r.IntN(60), r.IntN(60))}, fields...)
	}
	return strings.Join(fields, " ")
}

// drawList draws the list of a field, of one to three members; some of them are special to the field.
func drawList(r *rand.Rand, low, high int, special func(*rand.Rand) string) string {
	members := make([]string, 1+max(0, r.IntN(5)-2))
	for i := range members {
		a, b := low+r.IntN(high-low+1), low+r.IntN(high-low+1)
		a, b = min(a, b), max(a, b)
		step := 1 + r.IntN(min(10, high-low-1))
		switch kind := r.IntN(8); {
		case special != nil && kind < 3:
			members[i] = special(r)
		case kind < 4:
			members[i] = fmt.Sprint(a)
		case kind < 5:
			members[i] = fmt.Sprintf("%d-%d", a, b)
		case kind < 6:
			members[i] = fmt.Sprintf("%d-%d/%d", a, b, step)
		case kind < 7:
			members[i] = fmt.Sprintf("%d/%d", min(a, high-1), step) // no steps from 7, the second Sunday
		default:
			members[i] = fmt.Sprintf("*/%d", step)
		}
	}
	return strings.Join(members, ",")
}

func drawOfMonth(r *rand.Rand) string {
	n := 1 + r.IntN(30)
	return []string{"L", "LW", fmt.Sprintf("L-%d", n), fmt.Sprintf("L-%dW", n), fmt.Sprintf("%dW", 1+r.IntN(31))}[r.IntN(5)]
}

func drawMonth(r *rand.Rand) string {
	return time.Month(1 + r.IntN(12)).String()[:3]
}

func drawOfWeek(r *rand.Rand) string {
	n := r.IntN(8)
	name := time.Weekday(n % 7).String()[:3]
	return []string{"L", name, fmt.Sprintf("%dL", n), name + "L", fmt.Sprintf("%d#%d", n, 1+r.IntN(5)), fmt.Sprintf("%s#%d", name, 1+r.IntN(5))}[r.IntN(6)]
}
