//go:build race

package main

// raced says that the race detector slows this test, and the processes it starts, several times.
const raced = true
