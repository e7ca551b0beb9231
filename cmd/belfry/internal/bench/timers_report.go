package bench

import (
	"fmt"
	"io"
)

// TimersReport is what the timer structure costs, in the form of --json. Names that end in _ms are in milliseconds, in _us in microseconds.
type TimersReport struct {
	Entries int     `json:"entries"`
	Workers int     `json:"workers"`
	Seconds float64 `json:"seconds"` // of what is measured over time

	Add     float64 `json:"add_ms"`          // adding all, each one's first due computed
	AddCPU  float64 `json:"add_cpu_ms"`      // its processor time: where other things run, it takes longer
	Bytes   float64 `json:"bytes_per_entry"` // kept, with the reference to its schedule
	OneMore Stats   `json:"one_more_us"`     // adding one to all of these

	IdleCPU    float64 `json:"idle_cpu_percent"`   // of a core, user and system: one entry due each second, the others not
	HourlyCPU  float64 `json:"hourly_cpu_percent"` // each entry due hourly, at its own second
	HourlyLate Stats   `json:"hourly_lateness_ms"` // due to a worker's hands
	BurstLate  Stats   `json:"burst_lateness_ms"`  // all entries due in one second
	BurstCPU   float64 `json:"burst_cpu_ms"`       // of all that, with each one's next due

	Timer Stats `json:"timer_ms"` // how late a plain 10 ms timer fired in the parent: the machine's noise
}

// Print writes the report for people.
func (r TimersReport) Print(w io.Writer) {
	fmt.Fprintf(w, "%d entries, %d workers that get batches of up to %d; %g s each\n\n", r.Entries, r.Workers, dueBatch, r.Seconds)
	fmt.Fprintf(w, "%-50s %10.1f ms, %.1f ms of processor time\n", "adding all, and computing when each is due", r.Add, r.AddCPU)
	fmt.Fprintf(w, "%-50s %10.1f bytes\n", "kept for each, besides its key", r.Bytes)
	fmt.Fprintf(w, "%-50s %10.2f %% of one core\n", "idle, with one entry due each second", r.IdleCPU)
	fmt.Fprintf(w, "%-50s %10.2f %% of one core\n", "each due hourly at its own second", r.HourlyCPU)
	fmt.Fprintf(w, "%-50s %10.1f ms of processor time\n\n", "all due in one second, and each one's next due", r.BurstCPU)
	fmt.Fprintf(w, "%-50s %8s %9s %9s %9s\n", "", "n", "p50", "p99", "max")
	for _, l := range []struct {
		what string
		s    Stats
	}{
		{"adding one more, in microseconds", r.OneMore},
		{"each hourly: due to a worker, in milliseconds", r.HourlyLate},
		{"all in one second: due to a worker, in milliseconds", r.BurstLate},
	} {
		fmt.Fprintf(w, "%-50s %8d %9.2f %9.2f %9.2f\n", l.what, l.s.N, l.s.P50, l.s.P99, l.s.Max)
	}
	printNoise(w, r.Timer)
}
