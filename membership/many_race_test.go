//go:build race

package membership

// With the race detector, which slows many members in one process to a crawl, the clusters are smaller and the bad
// networks last for a shorter time; the code is the same, and the figures are those of the runs without it.
const (
	many    = 8
	hundred = 12
	shorter = 10
)
