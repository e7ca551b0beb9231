//go:build !race

package scheduler_test

const yearMany = 1000
