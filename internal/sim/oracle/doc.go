// Package oracle judges the history of a cluster by what was promised of it.
//
// It is told what a store accepted and what handlers did, in the order in which
// that happened, keeps a ledger of its own, whatever the store prunes (Forget drops what no call may come
// back to). It shares no code with the scheduler, the core or a store:
// the dues of schedules it reckons by itself, and each law it judges is written
// here a second time. What it does not check is the store's answers that change
// nothing (taken, early, closed); the stores' conformance suite does.
//
// The laws, by the names that violations carry:
//
//	I1   an occurrence has at most one committed completion
//	I2   every due is decided once and ends in one recorded outcome
//	I3   every later claim of a (job, key) has a higher fence; none is used twice
//	I4   who was overtaken, or whose session is dead, changes nothing
//	I5   in a calm each due of an efficiency job runs once
//	I6   what is due in a calm is done
//	I8   nothing is claimed or started before its due, nor before its start where starts are spread
//	I9   no handler starts whose replica has lost the store for a lease
//	I10  attempts and crashes are counted and bounded; the innocent do not fail
//	I13  opened never moves back and never runs ahead of the store's clock
//	I14  what a replica tells of a finish or a decision is what was recorded
//	I15  a handler never starts twice under one fence
//	I16  what may start once only, or in time only, or is told to end, does so
//	context a handler's context ends in time where its session does, or its run is told to end, and not for nothing
//	plan each due runs, or is missed or skipped, as its job says
//	force a definition is put in force, and counts, where live sessions announce no younger one
//	term a term has one session, and only that claims in it
//
// and, beside them, overlap (two exclusive runs of a key), horizon (a first
// claim of an older due), open (what closing a due demands) and pause (what is
// due in one is skipped, and nothing else).
package oracle
