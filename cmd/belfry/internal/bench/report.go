package bench

import (
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// Report is what was measured, in the form of --json. All times are in milliseconds.
type Report struct {
	Replicas int     `json:"replicas"`
	Store    string  `json:"store"`
	Profile  string  `json:"profile"` // of gossip
	LeaseMS  float64 `json:"lease_ms"`
	GraceMS  float64 `json:"grace_ms"`
	SweepMS  float64 `json:"sweep_ms"`

	Lateness Stats `json:"lateness_ms"` // due to the handler's start, of a job due each second
	Killed   Stats `json:"killed_ms"`   // SIGKILL of the owner to the next due's start elsewhere
	TakenUp  Stats `json:"takeup_ms"`   // SIGKILL of the owner to the start elsewhere of what it was running
	Stopped  Stats `json:"stopped_ms"`  // lateness elsewhere of the first due after the owner was told to stop
	Timer    Stats `json:"timer_ms"`    // how late a plain 10 ms timer fired in the parent: the machine's noise
}

// Stats are of N samples.
type Stats struct {
	N   int     `json:"n"`
	P50 float64 `json:"p50"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

// summarise is of times, in milliseconds.
func summarise(d []time.Duration) Stats {
	samples := make([]float64, len(d))
	for i := range d {
		samples[i] = millis(d[i])
	}
	return stats(samples)
}

// stats sorts the samples. A percentile is the least sample that so many are not above.
func stats(samples []float64) Stats {
	if len(samples) == 0 {
		return Stats{}
	}
	slices.Sort(samples)
	at := func(p float64) float64 { return samples[int(math.Ceil(p*float64(len(samples))))-1] }
	return Stats{N: len(samples), P50: at(0.5), P99: at(0.99), Max: at(1)}
}

// millis is in milliseconds, to the microsecond.
func millis(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// Print writes the report for people.
func (r Report) Print(w io.Writer) {
	fmt.Fprintf(w, "%d replicas, each a process, on one SQLite file (synchronous FULL); gossip profile %s\n", r.Replicas, r.Profile)
	fmt.Fprintf(w, "lease %g s, grace %g s, sweep %g s; milliseconds\n\n", r.LeaseMS/1000, r.GraceMS/1000, r.SweepMS/1000)
	fmt.Fprintf(w, "%-66s %6s %9s %9s %9s\n", "", "n", "p50", "p99", "max")
	for _, l := range []struct {
		what string
		s    Stats
	}{
		{"a job due each second: due to start", r.Lateness},
		{"owner killed (SIGKILL): to the next due's start elsewhere", r.Killed},
		{"owner killed (SIGKILL): to its running work's start elsewhere", r.TakenUp},
		{"owner stopped: how late the next due starts elsewhere", r.Stopped},
	} {
		fmt.Fprintf(w, "%-66s %6d %9.1f %9.1f %9.1f\n", l.what, l.s.N, l.s.P50, l.s.P99, l.s.Max)
	}
	printNoise(w, r.Timer)
	fmt.Fprintln(w, "That is what it adds alone. Where it is not far below the first line, something else was running.")
}
