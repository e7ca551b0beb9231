//go:build race

package mysql

// raced says that the race detector runs: what only asks the same code again, of another clock or client, is left to the run without it.
const raced = true
