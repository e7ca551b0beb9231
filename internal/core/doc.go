// Package core is the run protocol of one replica as a pure state machine:
// events go in, actions come out. It does no I/O, reads no clock, starts no
// goroutine and logs nothing; equal inputs give equal outputs. The scheduler
// wraps it in one loop, the simulator in a virtual world; both drive the very
// same code.
//
// What a replica may do is decided by the ring (who goes first) and by the
// answers of the store (who wins). The core never concludes from the silence of
// a call: what was not answered is repeated as it was, for as long as it can matter.
package core
