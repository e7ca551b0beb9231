// Package bench measures how late runs start, how soon others take over, and what idling costs, on replicas that are
// real processes and share a SQLite file. It prints what it sees and judges nothing: see the note on the machine
// beside it.
package bench
