package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/fleet"
)

// soakCensus is what replicas and store hold over time.
type soakCensus struct {
	at     *soakSite
	r      *SoakReport
	tables []string
	before map[string]int64 // rows of a store that was there before

	told, began, calmSince time.Time // the replicas have the jobs; the first due has come; all has ended
	first, calm            []soakFigures
	busy                   []soakPoint // of the first replica, between the two
	last                   soakFigures
}

// soakPoint is a sample.
type soakPoint struct {
	at time.Time
	soakFigures
}

var createTable = regexp.MustCompile(`(?i)create table (?:if not exists )?(\w+)`)

func newSoakCensus(ctx context.Context, at *soakSite, r *SoakReport) (*soakCensus, error) {
	script, err := at.client.URL().Script("")
	if err != nil {
		return nil, err
	}
	c := &soakCensus{at: at, r: r}
	for _, m := range createTable.FindAllStringSubmatch(script, -1) {
		c.tables = append(c.tables, m[1])
	}
	c.before, err = c.rows(ctx)
	r.Rows = map[string]int64{}
	return c, err
}

// rows counts each table's.
func (c *soakCensus) rows(ctx context.Context) (map[string]int64, error) {
	counts := map[string]int64{}
	for _, t := range c.tables {
		var n int64
		var err error
		if query := "select count(*) from " + t; c.at.client.Pool() != nil {
			err = c.at.client.Pool().QueryRow(ctx, query).Scan(&n)
		} else {
			err = c.at.client.DB().QueryRowContext(ctx, query).Scan(&n)
		}
		if err != nil {
			return nil, fmt.Errorf("bench: counting the rows of %s: %w", t, err)
		}
		counts[t] = n
	}
	return counts, nil
}

// look notes the most that the store has held.
func (c *soakCensus) look(ctx context.Context) error {
	counts, err := c.rows(ctx)
	if err != nil {
		return err
	}
	for t, n := range counts {
		c.r.Rows[t] = max(c.r.Rows[t], n-c.before[t])
	}
	if c.at.file == "" {
		return nil
	}
	for name, most := range map[string]*float64{c.at.file: &c.r.FileMB, c.at.file + "-wal": &c.r.WALMB} {
		info, err := os.Stat(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // nobody has the file open
		}
		if err != nil {
			return fmt.Errorf("bench: %w", err)
		}
		*most = max(*most, thousandths(float64(info.Size())/(1<<20)))
	}
	return nil
}

// note takes what a replica holds. The first replica's is compared over time, and all replicas' with what they held at first, when they end.
func (c *soakCensus) note(e fleet.Event, f soakFigures) {
	if e.Kind == soakClosed {
		c.r.Closed++
		c.r.left(e.Replica, f)
		return
	}
	c.r.Queue, c.r.Series = max(c.r.Queue, f.Queue), max(c.r.Series, f.Series)
	c.r.RSSMB = max(c.r.RSSMB, thousandths(float64(f.RSS)/(1<<20)))
	if e.Replica != nth("replica", 0) {
		return
	}
	switch c.last = f; {
	case e.At.Before(c.told):
	case e.At.Before(c.began):
		c.first = append(c.first, f)
	case c.calmSince.IsZero():
		c.busy = append(c.busy, soakPoint{e.At, f})
	default:
		c.calm = append(c.calm, f)
	}
}

// line is how it stands, for a log.
func (c *soakCensus) line() string {
	return fmt.Sprintf("%d occurrences, %d rows of runs at most; %s: %d goroutines, %d descriptors, %.1f MB of heap", c.r.Occurrences,
		c.r.Rows["belfry_run"], nth("replica", 0), c.last.Goroutines, c.last.FDs, float64(c.last.Heap)/(1<<20))
}

// summarise writes what came of it to the report.
func (c *soakCensus) summarise() {
	c.r.Goroutines = span(c.first, c.calm, func(f soakFigures) int { return f.Goroutines })
	c.r.FDs = span(c.first, c.calm, func(f soakFigures) int { return f.FDs })
	warm := c.busy[len(c.busy)/4:]
	var heap []float64
	for _, p := range warm {
		heap = append(heap, float64(p.Heap)/(1<<20))
	}
	if len(heap) > 1 {
		c.r.HeapMB = thousandths(median(heap))
		c.r.HeapSlope = thousandths(100 * slope(warm) / c.r.HeapMB)
	}
}

// SoakSpan is a figure at the start and at the end.
type SoakSpan struct {
	Start int `json:"start"`
	End   int `json:"end"`
}

// span is the least that was held in two calms: what grows raises it, and what is just under way does not.
func span(first, last []soakFigures, of func(soakFigures) int) SoakSpan {
	least := func(list []soakFigures) int {
		if len(list) == 0 {
			return 0
		}
		return of(slices.MinFunc(list, func(a, b soakFigures) int { return of(a) - of(b) }))
	}
	return SoakSpan{least(first), least(last)}
}

// slope is how many megabytes an hour the heap grows: the median of the slopes between all pairs of samples (Theil and
// Sen), which a few odd samples do not move.
func slope(points []soakPoint) float64 {
	var all []float64
	for i, a := range points {
		for _, b := range points[i+1:] {
			if hours := b.at.Sub(a.at).Hours(); hours > 0 {
				all = append(all, float64(b.Heap-a.Heap)/(1<<20)/hours)
			}
		}
	}
	if len(all) == 0 {
		return 0
	}
	return median(all)
}

func median(samples []float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[len(sorted)/2]
}

// soakBound is the most rows that a table may have for a soak: what is kept follows from the retention, and what cleans
// up comes once a minute, from a replica that may just have died.
func soakBound(table string) int64 {
	const kept = int64((soakRetention + 2*soakUpkeep + 30*time.Second) / time.Second)
	const dues = kept/int64(soakEachEvery/time.Second) + 3
	switch _, name, _ := strings.Cut(table, "_"); name {
	case "run":
		return kept * (soakTicks + 2 + soakKeys/int64(soakEachEvery/time.Second))
	case "due":
		return dues
	case "pass":
		return 5 * dues // of each replica, and of those that came back
	default:
		return 300 // a few for each job of each session
	}
}
