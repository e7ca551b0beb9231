//go:build unix && race

package etcdrig

// slow says that replicas run several times slower than they do by themselves, for they are copies of this test.
const slow = true
