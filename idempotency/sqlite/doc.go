// Package sqlite keeps a store in one SQLite file that the replicas of one host
// share. It needs no server and no cgo.
//
// What it does not do: it never works across hosts. SQLite's locks and its
// shared memory are those of one kernel, so the file must lie on a local disk,
// not on a network file system. The store's clock is the host's.
//
// What it does: a call that succeeded is on the disk (synchronous=FULL, unless
// Options.AllowLossy says otherwise). Calls that change nothing take no lock,
// for readers of a write-ahead log never wait; all others take turns, in this
// process first come first served, among processes by polling until the call's
// context ends.
//
// The file may hold tables of the application too; all of this package begin
// with belfry_. Strings that may be any bytes are blobs there, so that neither
// NUL nor the file's encoding changes them.
//
// A process that is stopped (SIGSTOP, a frozen container) in the middle of a
// write keeps SQLite's lock until it goes on or dies, and meanwhile nobody writes: replicas announce
// themselves unfit, start nothing, and go on afterwards. No lock of a file can be taken from a living process.
package sqlite
