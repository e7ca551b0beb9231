// Package fleet runs replicas as child processes of this program: what the demo and the benchmark start, kill and
// stop. Both sides are here, so that what the parent tells and what the child understands stay one.
package fleet
