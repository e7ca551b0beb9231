package bench

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
	"github.com/belfry-go/belfry/idempotency"
)

// SoakReport is what came of a soak, in the form of --json.
type SoakReport struct {
	Replicas int     `json:"replicas"` // each a process
	Store    string  `json:"store"`
	Seconds  float64 `json:"seconds"` // of dues
	Kills    int     `json:"kills"`
	Leaves   int     `json:"leaves"`
	Edits    int     `json:"edits"`

	Occurrences int            `json:"occurrences"`
	Done        int            `json:"done"`
	Retried     int            `json:"retried"`  // of these, after a failed attempt
	Failed      map[string]int `json:"failed"`   // by reason
	Crashed     int            `json:"crashed"`  // taken up from a replica that died
	Repeated    int            `json:"repeated"` // handlers that were started again for it
	Lost        int            `json:"lost"`     // without a record
	Double      int            `json:"double"`   // ended twice, or started twice under one fence
	Wrong       int            `json:"wrong"`    // recorded otherwise than it had to be
	Examples    []string       `json:"examples,omitempty"`
	Late        Stats          `json:"lateness_ms"` // start to the handler's first attempt

	// Of the replica that lives throughout, in the calm before the first due and in that after the last end.
	Goroutines SoakSpan `json:"goroutines"`
	FDs        SoakSpan `json:"fds"`
	HeapMB     float64  `json:"heap_mb"`               // after collections; the median
	HeapSlope  float64  `json:"heap_percent_an_hour"`  // after a quarter of the soak
	Left       []string `json:"left,omitempty"`        // what replicas held when all was closed, and had not held before
	Closed     int      `json:"closed"`                // replicas that were looked at so
	RSSMB      float64  `json:"rss_mb"`                // the most of any replica
	Queue      int      `json:"gossip_queue"`          // likewise
	Series     int      `json:"metric_series_at_most"` // likewise

	Rows   map[string]int64 `json:"rows"` // the most of each table
	FileMB float64          `json:"file_mb,omitempty"`
	WALMB  float64          `json:"wal_mb,omitempty"`

	Timer Stats `json:"timer_ms"` // how late a plain 10 ms timer fired meanwhile: the machine's noise
}

const (
	soakWAL   = 64   // megabytes, at most
	soakSlope = 1.0  // percent an hour, at most
	soakNoise = 0.5  // megabytes an hour, that a heap of one or two may seem to grow: first uses of metrics, and what is under way
	soakLong  = 1800 // seconds, from which on a slope is more than noise
	soakQueue = 50   // broadcasts that wait in gossip, at most

	// soakSeries is the most metric series: they come with jobs and with words such as a reason, and not with keys or dues.
	soakSeries = 30 * (soakTicks + 3)
)

// soakConns is how many descriptors more than at the start a replica may have at the end: connections to a server, which pools open
// when they are needed and keep for a while.
func soakConns(store string) int {
	if store == string(storeurl.SQLite) {
		return 0
	}
	return 8
}

func (r *SoakReport) count(row idempotency.Run, starts int) {
	r.Repeated += max(0, starts-row.Attempt)
	if row.Crashes > 0 {
		r.Crashed++
	}
	switch row.Outcome {
	case idempotency.Done:
		r.Done++
		if row.Attempt > 1 {
			r.Retried++
		}
	case idempotency.Failed:
		if r.Failed == nil {
			r.Failed = map[string]int{}
		}
		r.Failed[row.Reason]++
	}
}

func (r *SoakReport) wrong(count *int, format string, a ...any) {
	const shown = 10
	if *count++; len(r.Examples) < shown {
		r.Examples = append(r.Examples, fmt.Sprintf(format, a...))
	}
}

// left notes what a replica held when all was closed.
func (r *SoakReport) left(name string, f soakFigures) {
	if f.Goroutines > f.GoroutinesBefore {
		r.Left = append(r.Left, fmt.Sprintf("%s: %d goroutines before, %d after:\n%s", name, f.GoroutinesBefore, f.Goroutines, f.Stacks))
	}
	if f.FDs > f.FDsBefore {
		r.Left = append(r.Left, fmt.Sprintf("%s: %d descriptors before, %d after", name, f.FDsBefore, f.FDs))
	}
}

// Err says what is not as it has to be; nil: nothing. The slope of the heap counts in a long soak alone: before, it is noise.
func (r SoakReport) Err() error {
	var errs []error
	bad := func(not bool, format string, a ...any) {
		if not {
			errs = append(errs, fmt.Errorf("bench: "+format, a...))
		}
	}
	bad(r.Lost+r.Double+r.Wrong > 0, "of %d occurrences %d have no record, %d ended or started twice, and %d have another record than they had to",
		r.Occurrences, r.Lost, r.Double, r.Wrong)
	bad(r.Goroutines.End > r.Goroutines.Start, "%d goroutines at the start, %d at the end", r.Goroutines.Start, r.Goroutines.End)
	bad(r.FDs.End > r.FDs.Start+soakConns(r.Store), "%d file descriptors at the start, %d at the end", r.FDs.Start, r.FDs.End)
	for _, left := range r.Left {
		bad(true, "%s", left)
	}
	bad(r.Closed < r.Replicas+r.Leaves, "%d replicas said what they held at their end, of %d", r.Closed, r.Replicas+r.Leaves)
	bad(r.Series > soakSeries, "a replica had %d metric series; at most %d", r.Series, soakSeries)
	bad(r.Queue > soakQueue, "%d broadcasts waited in gossip; at most %d", r.Queue, soakQueue)
	for _, t := range slices.Sorted(maps.Keys(r.Rows)) {
		bad(r.Rows[t] > soakBound(t), "%s had %d rows; at most %d", t, r.Rows[t], soakBound(t))
	}
	bad(r.WALMB > soakWAL, "the WAL had %.1f MB; at most %d", r.WALMB, soakWAL)
	bad(r.Seconds >= soakLong && r.HeapSlope > soakSlope && r.HeapSlope*r.HeapMB/100 > soakNoise, "the heap of %.2f MB grew by %.2f %% an hour; at most %g, or %g MB",
		r.HeapMB, r.HeapSlope, soakSlope, soakNoise)
	return errors.Join(errs...)
}

// growth says how the heap grew, and what that is worth.
func (r SoakReport) growth() string {
	text := fmt.Sprintf("%+.2f %%/h", r.HeapSlope)
	if r.Seconds < soakLong {
		text += ", which is noise in less than half an hour"
	}
	return text
}

// Print writes the report for people.
func (r SoakReport) Print(w io.Writer) {
	fmt.Fprintf(w, "T16: %d replicas on %s, %g s: %d occurrences, %d kills, %d leaves, %d edits; %d lost, %d double, %d wrong; goroutines %+d, fds %+d, heap %.2f MB (%s), WAL %.1f MB at most\n\n",
		r.Replicas, r.Store, r.Seconds, r.Occurrences, r.Kills, r.Leaves, r.Edits, r.Lost, r.Double, r.Wrong,
		r.Goroutines.End-r.Goroutines.Start, r.FDs.End-r.FDs.Start, r.HeapMB, r.growth(), r.WALMB)
	line := func(what string, n int) { fmt.Fprintf(w, "%-48s %9d\n", what, n) }
	line("done", r.Done)
	line("  of these, at the second attempt", r.Retried)
	for _, reason := range []string{"panic", "timeout", "exhausted"} {
		line("failed: "+reason, r.Failed[reason])
	}
	line("taken up from a replica that was killed", r.Crashed)
	line("handlers started again for it", r.Repeated)
	line("without a record", r.Lost)
	line("ended twice, or started twice under one fence", r.Double)
	line("recorded otherwise than it had to be", r.Wrong)
	for _, e := range r.Examples {
		fmt.Fprintf(w, "  %s\n", e)
	}
	fmt.Fprintf(w, "%-48s %9d at the start, %d at the end\n", "goroutines of the replica that stayed", r.Goroutines.Start, r.Goroutines.End)
	fmt.Fprintf(w, "%-48s %9d at the start, %d at the end\n", "its file descriptors", r.FDs.Start, r.FDs.End)
	fmt.Fprintf(w, "%-48s %9.2f MB, %s\n", "its heap after collection", r.HeapMB, r.growth())
	fmt.Fprintf(w, "%-48s %9.1f MB\n", "resident memory, at most", r.RSSMB)
	line("metric series, at most", r.Series)
	line("broadcasts waiting in gossip, at most", r.Queue)
	line("replicas that left nothing open when they ended", r.Closed-len(r.Left))
	for _, t := range slices.Sorted(maps.Keys(r.Rows)) {
		fmt.Fprintf(w, "%-48s %9d, of %d\n", "rows of "+t+", at most", r.Rows[t], soakBound(t))
	}
	fmt.Fprintf(w, "%-48s %9.1f MB, and a WAL of %.1f MB\n", "SQLite file, at most", r.FileMB, r.WALMB)
	fmt.Fprintf(w, "%-48s %9.1f ms (p50), %.1f ms (p99), %.1f ms (max)\n", "lateness of first attempts", r.Late.P50, r.Late.P99, r.Late.Max)
	printNoise(w, r.Timer)
}
