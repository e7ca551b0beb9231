// Package bench measures on processes of their own. Replicas that share a SQLite file: how late runs start, how soon
// others take over, what idling costs. Members of a gossip cluster: how soon they see each other come and go. And one alone: what a
// million timers cost. It prints what it sees and judges nothing: see the note on the machine beside it.
package bench
