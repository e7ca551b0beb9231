package bench

import (
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/belfry-go/belfry/idempotency"
)

// SoakReport is what came of a soak, in the form of --json.
type SoakReport struct {
	Replicas    int     `json:"replicas"` // in this process
	Seconds     float64 `json:"seconds"`
	Occurrences int     `json:"occurrences"`

	Done     int            `json:"done"`
	Retried  int            `json:"retried"` // of these, after a failed attempt
	Failed   map[string]int `json:"failed"`  // by reason
	Missing  int            `json:"missing"` // without a record
	Wrong    int            `json:"wrong"`   // recorded otherwise than it had to be
	Examples []string       `json:"examples,omitempty"`

	Late Stats `json:"lateness_ms"` // start to the handler's first attempt

	GoroutinesBefore int      `json:"goroutines_before"`
	GoroutinesAfter  int      `json:"goroutines_after"`
	Heap             SoakHeap `json:"heap_mb"`

	Timer Stats `json:"timer_ms"` // how late a plain 10 ms timer fired meanwhile: the machine's noise
}

// SoakHeap is what was live after garbage collections, in megabytes: medians of the second and of the last quarter of the samples.
type SoakHeap struct {
	Early float64 `json:"early"`
	Late  float64 `json:"late"`
}

func (h *SoakHeap) set(samples []float64) {
	n := len(samples)
	h.Early, h.Late = median(samples[n/4:max(n/2, n/4+1)]), median(samples[min(3*n/4, n-1):])
}

func median(samples []float64) float64 {
	sorted := slices.Sorted(slices.Values(samples))
	return sorted[len(sorted)/2]
}

func (r *SoakReport) count(row idempotency.Run) {
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

func (r *SoakReport) wrong(example string) {
	const shown = 5
	if r.Wrong++; r.Wrong <= shown {
		r.Examples = append(r.Examples, example)
	}
}

// Err says what is not as it has to be; nil: nothing. The heap may grow by a quarter and 4 MB, which is its noise.
func (r SoakReport) Err() error {
	var errs []error
	if r.Missing != 0 || r.Wrong != 0 {
		errs = append(errs, fmt.Errorf("bench: of %d occurrences %d have no record and %d another than they had to", r.Occurrences, r.Missing, r.Wrong))
	}
	if r.GoroutinesAfter > r.GoroutinesBefore {
		errs = append(errs, fmt.Errorf("bench: %d goroutines before, %d after", r.GoroutinesBefore, r.GoroutinesAfter))
	}
	if r.Heap.Late > 1.25*r.Heap.Early+4 {
		errs = append(errs, fmt.Errorf("bench: the heap grew from %.1f to %.1f MB", r.Heap.Early, r.Heap.Late))
	}
	return errors.Join(errs...)
}

// Print writes the report for people.
func (r SoakReport) Print(w io.Writer) {
	fmt.Fprintf(w, "%d replicas in one process on one SQLite file, %d occurrences in %g s; 5 %% panic, 5 %% hang, 5 %% return an error\n\n",
		r.Replicas, r.Occurrences, r.Seconds)
	fmt.Fprintf(w, "%-44s %8d\n", "done", r.Done)
	fmt.Fprintf(w, "%-44s %8d\n", "  of these, at the second attempt", r.Retried)
	for _, reason := range []string{"panic", "timeout", "exhausted"} {
		fmt.Fprintf(w, "%-44s %8d\n", "failed: "+reason, r.Failed[reason])
	}
	fmt.Fprintf(w, "%-44s %8d\n%-44s %8d\n", "without a record", r.Missing, "recorded otherwise than it had to be", r.Wrong)
	for _, e := range r.Examples {
		fmt.Fprintf(w, "  %s\n", e)
	}
	fmt.Fprintf(w, "%-44s %8d before, %d after\n", "goroutines", r.GoroutinesBefore, r.GoroutinesAfter)
	fmt.Fprintf(w, "%-44s %8.1f MB early, %.1f MB late\n", "heap after collection", r.Heap.Early, r.Heap.Late)
	fmt.Fprintf(w, "%-44s %8.1f ms (p50), %.1f ms (p99), %.1f ms (max)\n", "lateness of first attempts", r.Late.P50, r.Late.P99, r.Late.Max)
	printNoise(w, r.Timer)
}
