//go:build unix && !race

package rig

const slow = false
