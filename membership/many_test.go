//go:build !race

package membership

const (
	many    = 30  // how large a cluster grows in the tests of churn
	hundred = 100 // and in the test of a large one
	shorter = 1   // by how much less bad networks last
)
