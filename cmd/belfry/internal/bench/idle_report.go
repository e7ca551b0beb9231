package bench

import (
	"fmt"
	"io"
)

// IdleReport is what idle replicas cost, in the form of --json. Names that end in _ms are in milliseconds.
type IdleReport struct {
	Replicas int     `json:"replicas"`
	Jobs     int     `json:"jobs"` // each due hourly, none meanwhile
	Store    string  `json:"store"`
	Profile  string  `json:"profile"` // of gossip
	LeaseMS  float64 `json:"lease_ms"`
	GraceMS  float64 `json:"grace_ms"`
	SweepMS  float64 `json:"sweep_ms"`
	Seconds  float64 `json:"seconds"` // of each row

	Rows  []IdleRow `json:"rows"`
	Timer Stats     `json:"timer_ms"` // how late a plain 10 ms timer fired in the parent: the machine's noise
}

// IdleRow is one replica under one load.
type IdleRow struct {
	Keys       int     `json:"keys"` // of each job
	Partitions int     `json:"partitions"`
	Replica    string  `json:"replica"`
	CPU        float64 `json:"cpu_percent"`      // of one core, user and system
	Calls      float64 `json:"calls_per_second"` // of the store
}

// Print writes the report for people.
func (r IdleReport) Print(w io.Writer) {
	fmt.Fprintf(w, "%d replicas, each a process, on one SQLite file (synchronous FULL); gossip profile %s\n", r.Replicas, r.Profile)
	fmt.Fprintf(w, "lease %g s, grace %g s, sweep %g s; %d jobs due hourly, none of them meanwhile; %g s each\n\n", r.LeaseMS/1000, r.GraceMS/1000, r.SweepMS/1000, r.Jobs, r.Seconds)
	fmt.Fprintf(w, "%10s %11s   %-10s %15s %14s\n", "keys a job", "partitions", "", "% of one core", "store calls/s")
	for _, l := range r.Rows {
		fmt.Fprintf(w, "%10d %11d   %-10s %15.2f %14.2f\n", l.Keys, l.Partitions, l.Replica, l.CPU, l.Calls)
	}
	printNoise(w, r.Timer)
}
