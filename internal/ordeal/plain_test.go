//go:build !race

package ordeal

const defaultOps, defaultCommits = 2000, 100
