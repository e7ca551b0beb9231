//go:build race

package sqlite

// raced says that the race detector runs: what only asks the same code again, of another clock or client, is left to the run without it.
const raced = true
