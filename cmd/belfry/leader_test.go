package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestLeader: who leads, who led last and how that ended, and that nobody ever has; where nobody does, the status says so too.
func TestLeader(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(dusk))
		d := newDesk(t)
		if r := d.belfry("leader"); r.status != statusRejected || !strings.HasPrefix(r.err, `belfry: namespace "billing" has no job in this store; `) {
			t.Errorf("without a job: %v", r)
		}
		d.declare(hourly)
		want := func(when string, status int, text, views string) {
			t.Helper()
			term := strconv.FormatInt(d.term, 10)
			text, views = strings.ReplaceAll(text, "TERM", term), strings.ReplaceAll(views, "TERM", term)
			if r := d.belfry("leader"); r != (result{status, text, ""}) {
				t.Errorf("%s: got %v, want status %d, out %q", when, r, status, text)
			}
			r := d.belfry("leader", "--json")
			if r.status != status || r.err != "" || strings.TrimSpace(r.out) != views || !json.Valid([]byte(r.out)) {
				t.Errorf("%s --json: got %v, want %s", when, r, views)
			}
		}
		want("before the first", statusAmiss, "nobody leads, and nobody ever has\n",
			`{"leads":false,"replica":"","term":TERM,"since":null,"until":null,"why":""}`)
		d.lead()
		d.pass(time.Minute)
		want("led", 0, "a leads since 2026-09-30T23:00:00Z (1 min ago), in term TERM\nwhy: nobody led before\n",
			`{"leads":true,"replica":"a","term":TERM,"since":"2026-09-30T23:00:00Z","until":null,"why":"nobody led before"}`)
		d.resign("draining:\n\x1b[2Jall is well")
		d.pass(time.Minute)
		want("resigned", statusAmiss, "nobody leads since 2026-09-30T23:01:00Z (1 min ago)\n"+
			`a led last, since 2026-09-30T23:00:00Z (2 min ago), in term TERM: resigned: draining:\n\x1b[2Jall is well`+"\n",
			`{"leads":false,"replica":"a","term":TERM,"since":"2026-09-30T23:00:00Z","until":"2026-09-30T23:01:00Z","why":"resigned: draining:\n\u001b[2Jall is well"}`)
		d.lead()
		d.check(d.store.CloseSession(t.Context(), d.session))
		want("gone", statusAmiss, "nobody leads since 2026-09-30T23:02:00Z (now)\na led last, since 2026-09-30T23:02:00Z (now), in term TERM: its session ended\n",
			`{"leads":false,"replica":"a","term":TERM,"since":"2026-09-30T23:02:00Z","until":"2026-09-30T23:02:00Z","why":"its session ended"}`)
	})
}
