package main

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// The record that a test in a bubble makes: the night of all customers, a report
// of the leader's each hour, and an export of which dues were lost.
var (
	dusk     = time.Date(2026, 9, 30, 23, 0, 0, 0, time.UTC)
	midnight = dusk.Add(time.Hour)
	night    = dusk.Add(90 * time.Minute)

	nightly = job{name: "renewals", schedule: "TZ=Europe/Berlin 30 2 * * *", keyed: true, opened: dusk, next: night}
	hourly  = job{name: "report", schedule: "0 * * * *", opened: dusk, next: midnight, leader: true}
	cache   = job{name: "refresh", schedule: "@every 5m"}
	tenth   = job{name: "export", schedule: "*/10 * * * *", opened: dusk, next: dusk.Add(10 * time.Minute)}
)

const (
	titled = "c-3\x1b]0;owned\a" // would set a terminal's title
	noText = "\x00\xff"
)

// run decides and runs one due of a job without keys, for two seconds; whatever lies between stays without a record.
func (d *desk) run(j job, opened, due, next time.Time) {
	d.t.Helper()
	time.Sleep(time.Until(due))
	j.opened = opened
	r := d.decide(j, due, next, due)[0]
	time.Sleep(2 * time.Second)
	d.finish(idempotency.Finish{ID: r.ID, Fence: r.Fence, Outcome: idempotency.Done, Attempt: 1})
}

// atNight runs a test in a bubble, on a desk with the record, ten minutes after the night's due.
func atNight(t *testing.T, test func(*testing.T, *desk)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(dusk))
		d := newDesk(t)
		d.night()
		test(t, d)
	})
}

func (d *desk) night() {
	d.t.Helper()
	d.declare(nightly, hourly, cache, tenth)
	d.lead()
	d.run(tenth, dusk, tenth.next, midnight)
	d.run(tenth, tenth.next, dusk.Add(40*time.Minute), midnight.Add(50*time.Minute))
	d.run(hourly, dusk, midnight, midnight.Add(time.Hour))
	time.Sleep(time.Until(night))
	d.decide(nightly, night, night.Add(24*time.Hour), night)
	done, failed, bytes := d.claim("renewals", "c-1", night), d.claim("renewals", "c-2", night), d.claim("renewals", noText, night)
	waits := d.claim("renewals", "c-4", night)
	d.claim("renewals", titled, night)
	time.Sleep(8 * time.Second)
	d.finish(done, bytes)
	failed.Outcome, failed.Attempt, failed.Reason, failed.Text = idempotency.Failed, 3, "exhausted", "provider: 503 Service Unavailable"
	waits.Outcome, waits.Reason, waits.Text, waits.Wake = idempotency.Wait, "retry", "provider: timeout\n- All is well.\x1b[2J\u202e", night.Add(15*time.Minute)
	d.finish(failed, waits)
	time.Sleep(time.Until(night.Add(10 * time.Minute)))
}

// pass lets time pass at a desk in a bubble.
func (d *desk) pass(t time.Duration) { time.Sleep(t) }
