package bench

import (
	"fmt"
	"io"
)

// GossipReport is what was measured, in the form of --json. Names that end in _ms are in milliseconds. Each sample
// of what is seen is of the last member to see it.
type GossipReport struct {
	Members int    `json:"members"`
	Profile string `json:"profile"`

	Boot             float64 `json:"boot_ms"`               // word to the last member to join, all at once, until all see all
	Joined           Stats   `json:"join_ms"`               // start of a fresh member's process until all see all
	Killed           Stats   `json:"crash_ms"`              // SIGKILL until nobody sees the member
	Drained          Stats   `json:"drain_ms"`              // Announce of draining until nobody else sees the member own
	Closed           Stats   `json:"close_ms"`              // Close until nobody else sees the member
	Unfit            Stats   `json:"unfit_ms"`              // Announce of unfit until all others see its reason
	CloseTook        Stats   `json:"close_took_ms"`         // how long Close blocks
	DrainedCloseTook Stats   `json:"drained_close_took_ms"` // the same where draining was announced before

	Idle     float64 `json:"idle_seconds"`
	CPU      Stats   `json:"idle_cpu_ms_per_second"`         // one sample of each member, user and system
	Sent     Stats   `json:"idle_sent_bytes_per_second"`     // gossip's, without the headers of UDP, TCP and IP
	Received Stats   `json:"idle_received_bytes_per_second"` // the same
	LostIdle int     `json:"false_removals_idle"`            // how often a member lost one that was alive, while idle
	LostBusy int     `json:"false_removals_busy"`            // the same while others were killed, closed, drained or unfit

	Timer Stats `json:"timer_ms"` // how late a plain 10 ms timer fired in the parent: the machine's noise
}

// Print writes the report for people.
func (r GossipReport) Print(w io.Writer) {
	fmt.Fprintf(w, "%d members, each a process, on loopback with a gossip key; gossip profile %s\n", r.Members, r.Profile)
	fmt.Fprintf(w, "milliseconds, each time until the last member saw it\n\n")
	fmt.Fprintf(w, "%-66s %6s %9s %9s\n", "", "n", "median", "max")
	for _, l := range []struct {
		what string
		s    Stats
	}{
		{"boot: all join at once, until all see all", Stats{N: 1, P50: r.Boot, Max: r.Boot}},
		{"join: start of a fresh member's process, until all see all", r.Joined},
		{"crash: SIGKILL, until nobody sees it", r.Killed},
		{"leave: Announce(draining), until nobody else sees it own", r.Drained},
		{"leave: Close without that, until nobody else sees it", r.Closed},
		{"change: Announce(unfit), until all others see the reason", r.Unfit},
		{"how long Close blocks", r.CloseTook},
		{"how long Close blocks after Announce(draining)", r.DrainedCloseTook},
	} {
		fmt.Fprintf(w, "%-66s %6d %9.1f %9.1f\n", l.what, l.s.N, l.s.P50, l.s.Max)
	}
	fmt.Fprintf(w, "\n%-66s %6s %9s %9s\n", fmt.Sprintf("idle for %g s, each member", r.Idle), "n", "median", "max")
	fmt.Fprintf(w, "%-66s %6d %9.2f %9.2f\n", "CPU, user and system, ms a second", r.CPU.N, r.CPU.P50, r.CPU.Max)
	fmt.Fprintf(w, "%-66s %6d %9.0f %9.0f\n", "gossip sent, bytes a second", r.Sent.N, r.Sent.P50, r.Sent.Max)
	fmt.Fprintf(w, "%-66s %6d %9.0f %9.0f\n", "gossip received, bytes a second", r.Received.N, r.Received.P50, r.Received.Max)
	fmt.Fprintf(w, "\nFalse removals, a member not seen by another that was there: %d while idle, %d in the rest.\n", r.LostIdle, r.LostBusy)
	printNoise(w, r.Timer)
}
