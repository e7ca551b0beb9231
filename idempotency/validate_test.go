package idempotency_test

import (
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var due = time.Date(2026, 10, 1, 4, 0, 0, 0, time.UTC)

func goodClaim() idempotency.Claim {
	return idempotency.Claim{ID: idempotency.ID{Job: "j", Key: "k", Due: due}, Hash: "h"}
}

func goodDecision() idempotency.Decision {
	def := idempotency.Definition{Job: "j", Hash: "h"}
	return idempotency.Decision{
		Seen: idempotency.Entry{Definition: def, Opened: due.Add(-time.Minute)}, Definition: def,
		Opened: due, Next: due.Add(time.Second), Run: []time.Time{due.Add(-time.Second), due},
		Ranges: []idempotency.Range{{Job: "j", From: due, To: due, Count: 1, Outcome: idempotency.Missed}},
	}
}

// Each refusal names what is wrong and what to do, and never drowns a log.
func TestRefusals(t *testing.T) {
	t.Parallel()
	claim := func(f func(c *idempotency.Claim)) error {
		c := goodClaim()
		f(&c)
		return c.Validate()
	}
	decision := func(f func(d *idempotency.Decision)) error {
		d := goodDecision()
		f(&d)
		return d.Validate()
	}
	finish := func(f idempotency.Finish) error {
		f.ID = goodClaim().ID
		return f.Validate()
	}
	for _, x := range []struct {
		err  error
		want string
	}{
		{claim(func(c *idempotency.Claim) { c.ID.Job = "a job" }), `job "a job": not a name; use 1 to 64 of A-Z a-z 0-9 . _ -`},
		{claim(func(c *idempotency.Claim) { c.ID.Job = strings.Repeat("j", 65) }), "not a name"},
		{claim(func(c *idempotency.Claim) { c.ID.Key = "" }), "key is empty; set it"},
		{claim(func(c *idempotency.Claim) { c.ID.Key = strings.Repeat("k", 256) }), "256 bytes; use at most 255"},
		{claim(func(c *idempotency.Claim) { c.ID.Request = strings.Repeat("r", 256) }), "request"},
		{claim(func(c *idempotency.Claim) { c.ID.Due = due.Add(1) }), "not a whole second"},
		{claim(func(c *idempotency.Claim) { c.ID.Due = time.Time{} }), "not a whole second"},
		{claim(func(c *idempotency.Claim) { c.Hash = "" }), "hash is empty"},
		{claim(func(c *idempotency.Claim) { c.Term = -1 }), "term -1; set the leader's, or 0"},
		{decision(func(d *idempotency.Decision) { d.Term = -1 }), "term -1; set zero or more"},
		{idempotency.CheckLead(-1), "lead: term -1; set the elector's, or 0"},
		{idempotency.CheckResign(0, ""), "resign: term 0; set the one that Lead answered"},
		{idempotency.CheckResign(1, strings.Repeat("w", 256)), "256 bytes; use at most 255"},
		{idempotency.CheckResign(1, "\xff"), "why is not valid UTF-8"},
		{claim(func(c *idempotency.Claim) { c.Seen = 3 }), "none for an insert"},
		{claim(func(c *idempotency.Claim) { c.TakeUp, c.Seen = true, -1 }), "seen fence -1"},
		{claim(func(c *idempotency.Claim) {
			c.TakeUp, c.OnBusy = true, &idempotency.Finish{Outcome: idempotency.Skipped}
		}), "a take-up records nothing"},
		{claim(func(c *idempotency.Claim) { c.OnBusy = &idempotency.Finish{Outcome: idempotency.Done} }), "never ran"},
		{claim(func(c *idempotency.Claim) { c.OnNewer = &idempotency.Finish{Outcome: idempotency.Wait, Wake: due} }), "OnNewer is a wait"},
		{claim(func(c *idempotency.Claim) { c.OnExpired = &idempotency.Finish{Outcome: idempotency.Wait} }), "set Wake"},
		{decision(func(d *idempotency.Decision) { d.Seen.Job = "other" }), `the entry of job "other"`},
		{decision(func(d *idempotency.Decision) { d.Claim = -1 }), "claim is -1"},
		{decision(func(d *idempotency.Decision) { d.Run = []time.Time{due, due} }), "out of order"},
		{decision(func(d *idempotency.Decision) { d.Run[0] = d.Seen.Opened }), "not in ("},
		{decision(func(d *idempotency.Decision) { d.Run[1] = d.Next }), "not in ("},
		{decision(func(d *idempotency.Decision) { d.Next = d.Next.Add(1) }), "not a whole second"},
		{decision(func(d *idempotency.Decision) { d.Ranges[0].Count = 0 }), "range of 0 dues"},
		{decision(func(d *idempotency.Decision) { d.Ranges[0].To = due.Add(-1) }), "set From <= To"},
		{decision(func(d *idempotency.Decision) { d.Ranges[0].Outcome = idempotency.Done }), "skipped or missed"},
		{finish(idempotency.Finish{Fence: 0, Outcome: idempotency.Done}), "fence 0"},
		{finish(idempotency.Finish{Fence: 1, Outcome: idempotency.Missed}), "outcome 4"},
		{finish(idempotency.Finish{Fence: 1}), "outcome 0"},
		{finish(idempotency.Finish{Fence: 1, Outcome: idempotency.Done, Attempt: -1}), "attempt -1"},
		{finish(idempotency.Finish{Fence: 1, Outcome: idempotency.Done, Text: "\xff"}), "not valid UTF-8"},
		{finish(idempotency.Finish{Fence: 1, Outcome: idempotency.Done, Text: strings.Repeat("t", 1<<20)}), "use at most 65536"},
		{idempotency.Pass{Job: "j", Due: due, Mine: []byte{0x10}}.Validate(4), "at or above partition 4"},
		{idempotency.Pass{Job: "j", Due: due, Mine: []byte{1}}.Validate(16), "1 bytes for 16 partitions; use 2 bytes"},
		{idempotency.LagQuery{Ranks: make([][]byte, 1001)}.Validate(8), "at most 1000 ranks"},
		{idempotency.Opening{}.Validate(), "boot is empty"},
		{idempotency.CheckDeclarations([]idempotency.Declaration{{Definition: idempotency.Definition{Job: "j", Hash: "h"}, Next: due}}), "opened is not set"},
		{idempotency.CheckClose("", due, nil), "idempotency: close due: job"},
	} {
		switch {
		case x.err == nil:
			t.Errorf("taken, want an error with %q", x.want)
		case !strings.Contains(x.err.Error(), x.want):
			t.Errorf("error %q, want %q", x.err, x.want)
		case len(x.err.Error()) > 600:
			t.Errorf("an error of %d bytes: %.100q…", len(x.err.Error()), x.err)
		}
	}
}

// A refusal names the element.
func TestBatchNamesItsElement(t *testing.T) {
	t.Parallel()
	bad := goodClaim()
	bad.ID.Key = ""
	err := idempotency.CheckBatch("claim", []idempotency.Claim{goodClaim(), bad}, idempotency.Claim.Validate)
	if want := "idempotency: claim: element 1: key is empty; set it"; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// What stands at a bound is taken.
func TestBoundsAreTaken(t *testing.T) {
	t.Parallel()
	c := goodClaim()
	c.ID.Job, c.ID.Key, c.ID.Request = strings.Repeat("j", 64), strings.Repeat("\x00", 255), strings.Repeat("\xff", 255)
	full := make([]byte, 1<<13)
	for i := range full {
		full[i] = 0xff
	}
	for name, err := range map[string]error{
		"claim":    c.Validate(),
		"decision": goodDecision().Validate(),
		"finish":   idempotency.Finish{ID: c.ID, Fence: 1, Outcome: idempotency.Wait, Wake: due, Text: strings.Repeat("é", 32<<10)}.Validate(),
		"pass":     idempotency.Pass{Job: "j", Due: due, Mine: full}.Validate(1 << 16),
		"bits":     idempotency.Pass{Job: "j", Due: due, Mine: []byte{0x0f}}.Validate(4),
		"no bits":  idempotency.LagQuery{Ranks: [][]byte{nil, {}}}.Validate(4),
		"opening":  idempotency.Opening{Namespace: "n", Replica: "r", Boot: "b", Partitions: 1, Lease: 1, Horizon: 1, Retention: 2}.Validate(),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
