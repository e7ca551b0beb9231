//go:build race

package oracle_test

func init() { underRace = true }
