package scheduler_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// stretch is one record of the dues from one o'clock to three.
func stretch(job string, outcome idempotency.Outcome, reason string) idempotency.Range {
	return idempotency.Range{Job: job, From: hour(1), To: hour(3), Count: 3, Outcome: outcome, Reason: reason}
}

// decideStretch decides the dues up to three o'clock by one record.
func (d *desk) decideStretch(job string, outcome idempotency.Outcome, reason string) {
	d.t.Helper()
	d.now = hour(3).Add(time.Minute)
	d.decide(job, d.now, 0, nil, stretch(job, outcome, reason))
}

// backfilled is the due of renewals at one o'clock, missed with others, backfilled and closed with so many keys.
func (d *desk) backfilled(keys int64, missed *idempotency.Range) {
	d.t.Helper()
	d.decideStretch("renewals", idempotency.Missed, "late")
	d.must(d.client.Backfill(d.t.Context(), "renewals", "", hour(1), hour(2), by("b")))
	finished := bitmap(0, 1, 2, 3, 4, 5, 6, 7)
	if missed != nil {
		finished = bitmap(0, 1, 2)
	}
	d.pass(d.session, hour(1), bitmap(0, 1, 2, 3, 4, 5, 6, 7), finished, keys)
	if missed != nil {
		d.now = hour(1).Add(25 * time.Hour)
	}
	d.closeDue(hour(1), missed)
}

// claimKeys claims these keys of the due of renewals at one o'clock, and ends their runs.
func (d *desk) claimKeys(keys ...string) {
	d.t.Helper()
	d.nonce++
	var claims []idempotency.Claim
	for _, k := range keys {
		claims = append(claims, idempotency.Claim{ID: renewals(k), Hash: "h1", Exclusive: true})
	}
	answers, err := d.store.Claim(d.t.Context(), d.session, d.nonce, claims)
	if err != nil {
		d.t.Fatal(err)
	}
	for i, a := range answers {
		if a.Verdict != idempotency.Won {
			d.t.Fatalf("%v: %+v", claims[i].ID, a)
		}
		if _, err := d.store.Finish(d.t.Context(), "test", []idempotency.Finish{{ID: claims[i].ID, Fence: a.Fence, Outcome: idempotency.Done, Attempt: 1}}); err != nil {
			d.t.Fatal(err)
		}
	}
}

// beside are occurrences with more than one record, or with one that speaks for others.
var beside = []struct {
	name string
	make func(d *desk) idempotency.ID
}{
	{"backfilled, and the key was not among those of the due", func(d *desk) idempotency.ID { d.backfilled(7, nil); return renewals("42") }},
	{"backfilled, for all keys", func(d *desk) idempotency.ID { d.backfilled(7, nil); return renewals("") }},
	{"backfilled, and closed before all keys were claimed", func(d *desk) idempotency.ID {
		d.backfilled(7, &idempotency.Range{Job: "renewals", From: hour(1), To: hour(1), Count: 1, Outcome: idempotency.Missed, Reason: "unfinished"})
		return renewals("42")
	}},
	{"run, of a due that was closed before all keys were claimed", func(d *desk) idempotency.ID {
		d.openDue()
		d.claimKeys("42")
		d.now = hour(1).Add(25 * time.Hour)
		d.closeDue(hour(1), &idempotency.Range{Job: "renewals", From: hour(1), To: hour(1), Count: 1, Outcome: idempotency.Missed, Reason: "source"})
		return renewals("42")
	}},
	{"by hand while it was paused", func(d *desk) idempotency.ID {
		d.must(d.client.Pause(d.t.Context(), "backup", ann))
		d.now = hour(1).Add(30 * time.Minute)
		c := d.must(d.client.Trigger(d.t.Context(), "backup", "", nil, by("r-1")))
		d.decideStretch("backup", idempotency.Skipped, "paused")
		return idempotency.ID{Job: "backup", Due: c.ID.Due, Request: "r-1"}
	}},
	{"skipped by hand before it was paused", func(d *desk) idempotency.ID {
		d.must(d.client.SkipNext(d.t.Context(), "backup", "", ann))
		d.must(d.client.Pause(d.t.Context(), "backup", ann))
		d.decideStretch("backup", idempotency.Skipped, "paused")
		return backup
	}},
	{"skipped by hand for all keys, the second of some that were missed", func(d *desk) idempotency.ID {
		id := idempotency.ID{Job: "renewals", Due: hour(2)}
		d.must(d.store.Submit(d.t.Context(), "test", idempotency.Command{Kind: idempotency.Skip, Request: "s", Actor: "ann", ID: id}))
		d.decideStretch("renewals", idempotency.Missed, "late")
		return id
	}},
	{"retention has removed the key's row", func(d *desk) idempotency.ID {
		d.openDue()
		d.claimKeys("41", "42", "43")
		all := bitmap(0, 1, 2, 3, 4, 5, 6, 7)
		d.pass(d.session, hour(1), all, all, 3)
		d.closeDue(hour(1), nil)
		d.now = d.now.Add(8 * 24 * time.Hour)
		if _, err := d.store.Prune(d.t.Context(), d.session, 3); err != nil {
			d.t.Fatal(err)
		}
		return renewals("42")
	}},
	{"it waits for a run on a replica that died", func(d *desk) idempotency.ID {
		_, b := d.claimed()
		d.dies(b)
		d.now = hour(1).Add(5 * time.Minute)
		c := d.must(d.client.Trigger(d.t.Context(), "backup", "", nil, by("r-1")))
		return idempotency.ID{Job: "backup", Due: c.ID.Due, Request: "r-1"}
	}},
	{"between two pauses, the first of which was not decided yet", func(d *desk) idempotency.ID {
		d.twoPauses()
		return backup
	}},
	{"between two pauses, decided", func(d *desk) idempotency.ID {
		d.twoPauses()
		d.decideStretch("backup", idempotency.Skipped, "paused")
		return backup
	}},
	{"in a pause that is over, not decided yet", func(d *desk) idempotency.ID {
		d.must(d.client.Pause(d.t.Context(), "backup", ann))
		d.now = hour(1).Add(time.Minute)
		d.must(d.client.Resume(d.t.Context(), "backup", ann))
		return backup
	}},
	{"after a pause that is over, not decided yet", func(d *desk) idempotency.ID {
		d.must(d.client.Pause(d.t.Context(), "backup", ann))
		d.now = hour(1)
		d.must(d.client.Resume(d.t.Context(), "backup", ann))
		d.now = hour(1).Add(time.Minute)
		return backup
	}},
	{"a key that is the job's name", func(d *desk) idempotency.ID {
		d.openDue()
		d.claimKeys("renewals")
		return renewals("renewals")
	}},
	{"canceled too late", func(d *desk) idempotency.ID {
		r, _ := d.claimed()
		d.must(d.client.Cancel(d.t.Context(), backup, ann))
		d.finish(r, idempotency.Finish{Outcome: idempotency.Done, Attempt: 1})
		return backup
	}},
}

// twoPauses pauses backup before and after its due at one o'clock, with a while between, while nobody decides.
func (d *desk) twoPauses() {
	d.t.Helper()
	d.now = hour(0).Add(10 * time.Minute)
	d.must(d.client.Pause(d.t.Context(), "backup", ann))
	d.now = d.now.Add(10 * time.Minute)
	d.must(d.client.Resume(d.t.Context(), "backup", ann))
	d.now = hour(1).Add(10 * time.Minute)
	d.must(d.client.Pause(d.t.Context(), "backup", ann))
}

// A record speaks for the dues that have none of their own, and for nothing by hand.
func TestExplainBeside(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for _, c := range beside {
		d := hourly(t)
		b.WriteString(explained(t, d.client, c.name, c.make(d)))
	}
	golden(t, "explain_beside.txt", b.String())
}
