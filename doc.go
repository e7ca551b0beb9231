// Package belfry is the home of a job scheduler for fleets of identical
// replicas. The ring decides who goes first; the store decides who wins.
//
// Nothing is exported here. Start with package scheduler; package jobs says
// what runs and when, membership who is alive, ring who owns a key, and
// idempotency who wins.
package belfry
