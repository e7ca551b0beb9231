//go:build race

package scheduler_test

// yearMany is how many jobs TestYear has. The race detector sees in a hundred what it would see in all: one code for each.
const yearMany = 100
