//go:build !race

package membership

// many is how large a cluster grows in the tests of churn.
const many = 30
