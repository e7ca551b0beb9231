//go:build race

package ordeal

// With the race detector there are fewer: the same code, which the run without it asks the full number of times.
const defaultCommits = 20
