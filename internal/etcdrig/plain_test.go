//go:build unix && !race

package etcdrig

const slow = false
