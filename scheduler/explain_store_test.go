package scheduler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/ring"
	"github.com/belfry-go/belfry/scheduler"
)

// hour is a due of the 10th.
func hour(h int) time.Time { return day(10, h, 0) }

// bitmap has the bits of these partitions of eight.
func bitmap(partitions ...int) []byte {
	b := []byte{0}
	for _, p := range partitions {
		b[0] |= 1 << p
	}
	return b
}

// pass saves a session's pass over a due of renewals.
func (d *desk) pass(s idempotency.Session, due time.Time, mine, finished []byte, keys int64) {
	d.t.Helper()
	if _, err := d.store.SavePass(d.t.Context(), s, []idempotency.Pass{{Job: "renewals", Due: due, Mine: mine, Finished: finished, Keys: keys}}); err != nil {
		d.t.Fatal(err)
	}
}

func (d *desk) closeDue(due time.Time, missed *idempotency.Range) {
	d.t.Helper()
	if closed, err := d.store.CloseDue(d.t.Context(), d.session, "renewals", due, missed); err != nil || !closed {
		d.t.Fatal(closed, err)
	}
}

func (d *desk) must(c idempotency.Command, err error) idempotency.Command {
	d.t.Helper()
	if err != nil {
		d.t.Fatal(err)
	}
	return c
}

// claimed is a run of backup, due at one o'clock, that a session of replica b has begun at one second past.
func (d *desk) claimed() (idempotency.Run, idempotency.Session) {
	d.t.Helper()
	d.now = hour(1).Add(time.Second)
	b, a := d.open("b"), d.session
	d.session = b
	d.nonce++
	if _, err := d.store.Declare(d.t.Context(), b, d.nonce, d.jobs); err != nil {
		d.t.Fatal(err)
	}
	r := d.decide("backup", d.now, 1, []time.Time{hour(1)})[0]
	d.session = a
	return r, b
}

func (d *desk) dies(s idempotency.Session) {
	d.t.Helper()
	if err := d.store.CloseSession(d.t.Context(), s); err != nil {
		d.t.Fatal(err)
	}
}

var backup = idempotency.ID{Job: "backup", Due: day(10, 1, 0)}

func renewals(key string) idempotency.ID {
	return idempotency.ID{Job: "renewals", Key: key, Due: hour(1)}
}

// records are what the store may have of an occurrence, each written into a new one.
var records = []struct {
	name string
	make func(d *desk) idempotency.ID
}{
	{"no such due", func(d *desk) idempotency.ID {
		d.declare("nightly", "TZ=Europe/Berlin 30 2 * * *", false, d.now)
		return idempotency.ID{Job: "nightly", Due: hour(2)}
	}},
	{"a due of a zone, still to come", func(d *desk) idempotency.ID {
		d.declare("nightly", "TZ=Europe/Berlin 30 2 * * *", false, d.now)
		return idempotency.ID{Job: "nightly", Due: hour(1).Add(30 * time.Minute)}
	}},
	{"skipped beforehand", func(d *desk) idempotency.ID {
		d.must(d.client.SkipNext(d.t.Context(), "backup", "", ann))
		return backup
	}},
	{"skipped beforehand for all keys", func(d *desk) idempotency.ID {
		d.must(d.client.SkipNext(d.t.Context(), "renewals", "", by("r")))
		return renewals("42")
	}},
	{"not decided, and nobody has the code", func(d *desk) idempotency.ID {
		d.dies(d.session)
		d.now = hour(3)
		return backup
	}},
	{"its start is spread", func(d *desk) idempotency.ID {
		def := idempotency.Definition{Job: "spread", Schedule: "@every 1h", Hash: "h1"}
		d.jobs = append(d.jobs, idempotency.Declaration{Definition: def, Opened: d.now, Next: hour(1).Add(20 * time.Minute)})
		d.declare("other", "@manual", false, d.now)
		d.now = hour(1).Add(10 * time.Minute)
		return idempotency.ID{Job: "spread", Due: hour(1)}
	}},
	{"paused", func(d *desk) idempotency.ID {
		d.must(d.client.Pause(d.t.Context(), "backup", ann))
		d.now = hour(2).Add(time.Minute)
		d.decide("backup", d.now, 0, nil, idempotency.Range{Job: "backup", From: hour(1), To: hour(2), Count: 2, Outcome: idempotency.Skipped, Reason: "paused"})
		d.must(d.client.Resume(d.t.Context(), "backup", by("r")))
		return backup
	}},
	{"no such due, in a stretch that was paused", func(d *desk) idempotency.ID {
		d.now = hour(2).Add(time.Minute)
		d.decide("backup", d.now, 0, nil, idempotency.Range{Job: "backup", From: hour(1), To: hour(2), Count: 2, Outcome: idempotency.Skipped, Reason: "paused"})
		return idempotency.ID{Job: "backup", Due: hour(1).Add(time.Minute)}
	}},
	{"of a schedule that nobody can read any more", func(d *desk) idempotency.ID {
		d.now = hour(2).Add(time.Minute)
		d.decide("calendar", d.now, 0, nil, idempotency.Range{Job: "calendar", From: hour(0), To: hour(2), Count: 1, Outcome: idempotency.Missed, Reason: "unknown"})
		return idempotency.ID{Job: "calendar", Due: hour(1)}
	}},
	{"still paused", func(d *desk) idempotency.ID {
		d.must(d.client.Pause(d.t.Context(), "backup", ann))
		d.now = hour(1).Add(-time.Minute)
		return backup
	}},
	{"missed, and backfilled", func(d *desk) idempotency.ID {
		d.now = hour(5)
		d.decide("backup", d.now, 0, []time.Time{hour(5)}, idempotency.Range{Job: "backup", From: hour(1), To: hour(4), Count: 4, Outcome: idempotency.Missed, Reason: "late"})
		d.must(d.client.Backfill(d.t.Context(), "backup", "", hour(1), hour(3), ann))
		d.must(d.client.Backfill(d.t.Context(), "backup", "", hour(3), hour(5), ann)) // is not told: it is of others
		return backup
	}},
	{"a gap", func(d *desk) idempotency.ID {
		d.now = hour(2)
		r := d.decide("backup", d.now, 1, []time.Time{hour(1), hour(2)})
		d.finish(r[0], idempotency.Finish{Outcome: idempotency.Done, Attempt: 1})
		d.now = hour(4)
		d.decide("backup", d.now, 0, []time.Time{hour(4)})
		return idempotency.ID{Job: "backup", Due: hour(3)}
	}},
	{"from before all records", func(d *desk) idempotency.ID { return idempotency.ID{Job: "backup", Due: day(3, 1, 0)} }},
	{"no run by hand", func(d *desk) idempotency.ID { return idempotency.ID{Job: "backup", Due: hour(1), Request: "r-1"} }},
	{"triggered", func(d *desk) idempotency.ID {
		c := d.must(d.client.Trigger(d.t.Context(), "backup", "", nil, scheduler.By{Actor: "ann", Reason: "for the audit\nof June", Request: "r-1"}))
		d.now = d.now.Add(4 * time.Second)
		c.ID.Request = c.Request
		return c.ID
	}},
	{"scheduled, beside one by hand of that second", func(d *desk) idempotency.ID {
		r, _ := d.claimed()
		d.finish(r, idempotency.Finish{Outcome: idempotency.Done, Attempt: 1})
		d.now = hour(1)
		d.must(d.client.Trigger(d.t.Context(), "backup", "", nil, by("r-1")))
		return backup
	}},
	{"a due that was not there, but a run by hand of that second", func(d *desk) idempotency.ID {
		d.now = hour(0).Add(time.Minute)
		d.must(d.client.Trigger(d.t.Context(), "backup", "", nil, by("k42")))
		return idempotency.ID{Job: "backup", Due: d.now}
	}},
	{"two by hand of an efficiency job, and neither of them", func(d *desk) idempotency.ID {
		d.now = hour(1)
		d.must(d.client.Trigger(d.t.Context(), "cache", "", nil, by("k42")))
		d.must(d.client.Trigger(d.t.Context(), "cache", "", nil, by("k43")))
		return idempotency.ID{Job: "cache", Due: d.now, Request: "k44"}
	}},
	{"by the request of a trigger for all keys", func(d *desk) idempotency.ID {
		c := d.must(d.client.Trigger(d.t.Context(), "renewals", "", nil, by("k42")))
		return idempotency.ID{Job: "renewals", Key: "42", Due: c.ID.Due, Request: "k42"}
	}},
	{"triggered for all keys", func(d *desk) idempotency.ID {
		d.now = d.now.Add(90 * time.Second)
		c := d.must(d.client.Trigger(d.t.Context(), "renewals", "", nil, ann))
		return idempotency.ID{Job: "renewals", Key: "42", Due: c.ID.Due}
	}},
	{"an efficiency job", func(d *desk) idempotency.ID { return idempotency.ID{Job: "cache", Due: hour(1)} }},
	{"a program's own schedule", func(d *desk) idempotency.ID { return idempotency.ID{Job: "calendar", Due: hour(1)} }},
	{"an earlier schedule", func(d *desk) idempotency.ID {
		d.now = hour(1).Add(time.Minute)
		r := d.decide("backup", d.now, 1, []time.Time{hour(1).Add(time.Second)})
		d.finish(r[0], idempotency.Finish{Outcome: idempotency.Done, Attempt: 2})
		return r[0].ID
	}},
	{"no worker was free", func(d *desk) idempotency.ID {
		d.now = hour(1).Add(time.Minute)
		d.decide("backup", d.now, 0, []time.Time{hour(1)})
		d.now = d.now.Add(time.Hour)
		return backup
	}},
	{"it waits for another run of its key", func(d *desk) idempotency.ID {
		d.claimed()
		d.now = hour(2)
		d.decide("backup", d.now, 0, []time.Time{hour(2)})
		d.now = d.now.Add(time.Minute)
		return idempotency.ID{Job: "backup", Due: hour(2)}
	}},
	{"skipped, and one that a backfill has made wait since", func(d *desk) idempotency.ID {
		d.overlap = idempotency.OverlapSkip
		d.now = hour(2)
		d.decide("backup", d.now, 1, []time.Time{hour(2)}, idempotency.Range{Job: "backup", From: hour(1), To: hour(1), Count: 1, Outcome: idempotency.Missed, Reason: "late"})
		d.now = hour(3)
		d.decide("backup", d.now, 0, []time.Time{hour(3)})
		d.now = hour(4)
		d.must(d.client.Backfill(d.t.Context(), "backup", "", hour(1), hour(2), ann))
		return idempotency.ID{Job: "backup", Due: hour(3)}
	}},
	{"another attempt follows", func(d *desk) idempotency.ID {
		r, _ := d.claimed()
		d.now = d.now.Add(time.Second)
		d.finish(r, idempotency.Finish{Outcome: idempotency.Wait, Attempt: 1, Reason: "retry", Text: "no answer", Wake: d.now.Add(90 * time.Second)})
		return backup
	}},
	{"at work on a replica that died", func(d *desk) idempotency.ID {
		_, b := d.claimed()
		d.dies(b)
		d.now = d.now.Add(2 * time.Second)
		return backup
	}},
	{"canceled at work", func(d *desk) idempotency.ID {
		d.claimed()
		d.now = d.now.Add(time.Minute)
		d.must(d.client.Cancel(d.t.Context(), backup, ann))
		return backup
	}},
	{"canceled while it waited", func(d *desk) idempotency.ID {
		d.now = hour(1).Add(time.Minute)
		d.decide("backup", d.now, 0, []time.Time{hour(1)})
		d.must(d.client.Cancel(d.t.Context(), backup, ann))
		return backup
	}},
	{"tried again by hand", func(d *desk) idempotency.ID {
		r, _ := d.claimed()
		d.finish(r, idempotency.Finish{Outcome: idempotency.Failed, Attempt: 3, Reason: "exhausted", Text: "no answer"})
		d.now = hour(3)
		d.must(d.client.Retry(d.t.Context(), backup, ann))
		return backup
	}},
	{"the due is open, and nobody has begun", func(d *desk) idempotency.ID { return d.openDue() }},
	{"the due is open, and a pass is under way", func(d *desk) idempotency.ID {
		id := d.openDue()
		d.pass(d.session, id.Due, bitmap(0, 1, 2, 3, 4, 5, 6, 7), bitmap(), 0)
		d.now = d.now.Add(3 * time.Second)
		return id
	}},
	{"the due is open, and who was at work is gone", func(d *desk) idempotency.ID {
		id, b := d.openDue(), d.open("b")
		d.pass(b, id.Due, bitmap(0, 1, 2, 3, 4, 5, 6, 7), bitmap(), 0)
		d.dies(b)
		return id
	}},
	{"the due is open, and nobody is up", func(d *desk) idempotency.ID {
		id := d.openDue()
		d.pass(d.session, id.Due, bitmap(0, 1, 2, 3, 4, 5, 6, 7), bitmap(), 0)
		d.dies(d.session)
		return id
	}},
	{"the due is open, and the key's part finished", func(d *desk) idempotency.ID {
		id := d.openDue()
		p := ring.Slot(id.Key) % 8
		d.pass(d.session, id.Due, bitmap(p), bitmap(p), 7)
		return id
	}},
	{"the due is open, for all keys", func(d *desk) idempotency.ID {
		id := d.openDue()
		d.pass(d.session, id.Due, bitmap(0, 1, 2), bitmap(0, 1), 7)
		id.Key = ""
		return id
	}},
	{"the due was closed at the horizon", func(d *desk) idempotency.ID {
		id := d.openDue()
		d.pass(d.session, id.Due, bitmap(0, 1, 2), bitmap(0, 1), 7)
		d.now = d.now.Add(25 * time.Hour)
		d.closeDue(id.Due, &idempotency.Range{Job: "renewals", From: id.Due, To: id.Due, Count: 1, Outcome: idempotency.Missed, Reason: "source"})
		return id
	}},
	{"another definition is in force", func(d *desk) idempotency.ID {
		b := d.open("b")
		d.nonce++
		def := idempotency.Definition{Job: "backup", Schedule: "@every 2h", Hash: "h2"}
		if _, err := d.store.Declare(d.t.Context(), b, d.nonce, []idempotency.Declaration{{Definition: def, Opened: d.now}}); err != nil {
			d.t.Fatal(err)
		}
		return backup
	}},
	{"retired", func(d *desk) idempotency.ID {
		d.jobs = nil
		d.declare("other", "@manual", false, d.now)
		for range 3 {
			if _, err := d.store.Retire(d.t.Context(), d.session, 2*time.Minute); err != nil {
				d.t.Fatal(err)
			}
			d.now = d.now.Add(2 * time.Minute)
		}
		d.now = hour(1).Add(time.Minute)
		return backup
	}},
}

// openDue opens the due of renewals at one o'clock.
func (d *desk) openDue() idempotency.ID {
	d.now = hour(1).Add(time.Second)
	d.decide("renewals", d.now, 0, []time.Time{hour(1)})
	return renewals("42")
}

// What the store has of an occurrence, or has not, as a person reads it.
func TestExplainRecords(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, c := range records {
		d := hourly(t)
		b.WriteString(explained(t, d.client, c.name, c.make(d)))
	}
	golden(t, "explain_records.txt", b.String())
}
