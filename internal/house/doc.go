// Package house holds the rules of this repository that a machine can check, as tests over its own source: who may
// import whom, how long a function and a file may be, what a test may wait for, what a page may claim. It has no code
// but its tests. Each rule is also run over a small tree under testdata that breaks it, so that a rule that has gone
// blind fails too.
package house
