// Package procs starts copies of the running program as child processes and talks to them in JSON documents: to the
// child on its standard input, from it on its standard output.
//
// A child does not outlive its parent. Its standard input ends when the parent lets it go or dies in whatever way,
// and that is its word to stop; on Linux the kernel also kills it when the parent dies. Nor does a child get the
// terminal's signals there: Ctrl-C reaches the parent alone, which then ends its children in order.
package procs
