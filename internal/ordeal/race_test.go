//go:build race

package ordeal

// With the race detector the figures are smaller: the same code, which the run without it asks the full number of times.
const defaultOps, defaultCommits = 600, 20
