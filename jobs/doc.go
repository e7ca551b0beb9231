// Package jobs says what runs and when: a Job names a Handler and a Schedule,
// and each instant of the schedule makes an Occurrence, once per key.
//
// What it does not promise: a Handler may be called again for the same
// Occurrence, after an error, a timeout or a crash. An effect outside the store
// is made harmless to repeat by handing Occurrence.IdempotencyKey to whoever
// receives it, or by letting the receiver compare Occurrence.Fence.
//
// What it does: the dues of a Schedule are a pure function of its text and the
// time zone database, whole seconds of UTC, the same on every replica. Nothing
// in this package starts a goroutine, reads a clock or touches a store.
//
// # Schedules
//
// Cron follows a wall clock, Every an interval that is counted from the Unix
// epoch, At a list of instants, and Custom the user's own calendar; Manual has no
// dues. Union, Except, From and Until combine them. Each has a text, which
// ParseSchedule reads back.
//
// # When clocks change
//
// A Cron in a zone with daylight saving meets readings of the wall clock that are
// missing, in spring, and others that are shown twice, in autumn. The hour field,
// as it is written, decides what happens to them.
//
// With *, ? or / in the hour field the schedule follows elapsed time: it fires at
// each instant whose reading matches. "*/15 * * * *" fires every quarter of an
// hour, through both passes of a repeated hour, and what the clock jumps over
// does not exist for it.
//
// Otherwise the schedule means readings, and each that matches fires once. Of a
// repeated hour it is the first pass. A reading that the clock jumped over fires
// at the first instant after the jump; several of these, and a reading that
// matches at that very instant, are one due. So "30 2 * * *" fires once every
// day: in Berlin, in the night of spring, at 03:00, and in that of autumn at the
// first 02:30.
//
// All changes of a zone's clock are treated so, also those of half an hour, of a
// whole day (Samoa had no 30 December 2011), and those that have nothing to do
// with daylight saving. Two replicas with different time zone data may differ where
// a country changed its mind; see ZoneVersion.
//
// The time zone data is the program's own, and never the host's. Where a country
// changes its mind before there is a release with it, the variable ZONEINFO names a
// directory or a zip file of newer zones, for all replicas. It is read once, when it is
// first needed, from disk; ZoneErr says why it could not be.
package jobs
