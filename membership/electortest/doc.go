// Package electortest is for tests of leaders: [Run] holds an elector to its contract, and [Static] is an elector that a test steers.
//
// What Run does not show: that a leader stops in time where time is real and the machine stalls, and that terms rise across whatever an
// elector's store can lose. It shows what an elector does, not what its users do with it.
package electortest
