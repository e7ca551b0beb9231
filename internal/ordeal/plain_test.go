//go:build !race

package ordeal

const defaultCommits = 100
