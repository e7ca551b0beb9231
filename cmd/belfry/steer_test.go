package main

import (
	"encoding/hex"
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
	"github.com/belfry-go/belfry/idempotency"
)

// TestSteer pauses and triggers through each kind of store, with tables of another prefix where there is one, and reads back what was
// asked; then a replica that leads takes the run up, with its payload.
func TestSteer(t *testing.T) {
	eachPlace(t, func(t *testing.T, p place) {
		prefix := "jobs_"
		if p.driver == "sqlite" {
			prefix = ""
		}
		where := []string{"--store", p.url, "--prefix", prefix}
		if r := belfry(t, "", append([]string{"migrate"}, where...)...); r.status != 0 {
			t.Fatalf("got %v", r)
		}
		where = append(where, "--namespace", "billing", "--json")
		if r := belfry(t, "", append([]string{"runs"}, where...)...); r.status != statusRejected {
			t.Errorf("a namespace that nobody has: %v", r)
		}
		d := deskOf(t, p.url, openStore(t, p.url, prefix))
		d.declare(job{name: "renewals", schedule: "@every 24h", keyed: true, opened: time.Now().UTC().Truncate(time.Second)})
		do := func(v any, args ...string) {
			t.Helper()
			r := belfry(t, "", slices.Concat(args, where)...)
			if err := json.Unmarshal([]byte(r.out), v); err != nil || r.status != 0 || r.err != "" {
				t.Fatalf("%v: got %v (%v)", args, r, err)
			}
		}

		var paused, triggered commandView
		do(&paused, "pause", "renewals", "--reason", "Zoë: \x1b[2J", "--request", "r-1")
		do(&triggered, "trigger", "renewals", "--key-hex", "00ff", "--payload", `{"month": 9}`, "--request", "r-2")
		var list []jobView
		if do(&list, "jobs"); len(list) != 1 || !time.Time(list[0].PausedFrom).Equal(time.Time(paused.At)) {
			t.Errorf("the job is not paused from %v: %+v", time.Time(paused.At), list)
		}
		var commands []commandView
		do(&commands, "commands")
		if len(commands) != 2 || commands[1].Request != "r-1" || commands[1].Reason != "Zoë: \x1b[2J" || commands[0].Kind != "trigger" || commands[0].Hex != "00ff" {
			t.Errorf("the commands are %+v", commands)
		}
		due := time.Time(triggered.Due)
		var e explanationView
		do(&e, "explain", "renewals", "--key-hex", "00ff", "--due", due.Format(time.RFC3339), "--request", "r-2")
		if e.Run == nil || e.Run.State != "waiting" || string(e.Run.Payload) != `{"month": 9}` || len(e.Sentences) < 2 {
			t.Fatalf("the explanation is %+v", e)
		}

		d.lead()
		var who leaderView
		if do(&who, "leader"); !who.Leads || who.Replica != "a" || who.Term != d.term || time.Time(who.Since).IsZero() || !time.Time(who.Until).IsZero() || who.Why == "" {
			t.Errorf("the leader of term %d is %+v", d.term, who)
		}
		d.nonce++
		a, err := d.store.Claim(t.Context(), d.session, d.nonce, []idempotency.Claim{{
			ID: idempotency.ID{Job: "renewals", Key: "\x00\xff", Due: due, Request: "r-2"}, Hash: "h", Exclusive: true, TakeUp: true, Term: d.term,
		}})
		if err != nil || a[0].Verdict != idempotency.Won || string(a[0].Payload) != `{"month": 9}` {
			t.Errorf("the run is not taken up: %+v (%v)", a, err)
		}
		var runs []runView
		if do(&runs, "runs"); len(runs) != 1 || runs[0].Term != d.term {
			t.Errorf("the run of term %d is %+v", d.term, runs)
		}
		var canceled commandView
		do(&canceled, "cancel", "renewals", "--key-hex", hex.EncodeToString([]byte("\x00\xff")), "--due", due.Format(time.RFC3339), "--request", "r-2")
		mine, err := d.store.Mine(t.Context(), d.session)
		if err != nil || len(mine) != 1 || mine[0].Cancel != idempotency.Canceled || canceled.Changed != 1 {
			t.Errorf("the run is not told to end: %+v (%v), %+v", mine, err, canceled)
		}
	})
}

func openStore(t *testing.T, text, prefix string) storeurl.Store {
	t.Helper()
	u, err := storeurl.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	c, err := storeurl.Connect(t.Context(), u)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	store, err := c.OpenMade(t.Context(), prefix)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	return store
}

func (i *instant) UnmarshalJSON(b []byte) error { return (*time.Time)(i).UnmarshalJSON(b) }
