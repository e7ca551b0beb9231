package scheduler_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/scheduler"
)

// report is the due of the leader's job at one o'clock.
var report = idempotency.ID{Job: "report", Due: hour(1)}

// led is a desk whose store knows jobs of the leader; b is a second replica, without their code.
func led(t *testing.T) (d *desk, b idempotency.Session) {
	t.Helper()
	d = newDesk(t)
	for _, job := range []struct {
		name   string
		keyed  bool
		opened time.Time
	}{{"report", false, d.now}, {"pages", true, d.now}, {"cache", false, time.Time{}}} {
		def := idempotency.Definition{Job: job.name, Schedule: "@every 1h", Hash: "h1", Keyed: job.keyed, Leader: true}
		d.jobs = append(d.jobs, idempotency.Declaration{Definition: def, Opened: job.opened})
	}
	d.declare("other", "@manual", false, d.now)
	return d, d.open("b")
}

// leads makes a session the leader, by the store.
func (d *desk) leads(s idempotency.Session) idempotency.Leader {
	d.t.Helper()
	l, err := d.store.Lead(d.t.Context(), s, 0)
	if err != nil || l.Session != s.ID {
		d.t.Fatalf("%+v, %v", l, err)
	}
	return l
}

func (d *desk) resigns(s idempotency.Session, l idempotency.Leader, why string) {
	d.t.Helper()
	if err := d.store.Resign(d.t.Context(), s, l.Term, why); err != nil {
		d.t.Fatal(err)
	}
}

// decideAs decides the due of report at one o'clock, and claims it in a term.
func (d *desk) decideAs(term int64, claim int) idempotency.Run {
	d.t.Helper()
	e := d.entry("report")
	d.nonce++
	got, err := d.store.Decide(d.t.Context(), d.session, d.nonce, []idempotency.Decision{{
		Seen: e, Definition: e.Definition, Opened: d.now, Run: []time.Time{hour(1)}, Claim: claim, Term: term,
	}})
	if err != nil || !got[0].Won {
		d.t.Fatalf("%+v, %v", got, err)
	}
	return got[0].Runs[0]
}

// What is said of an occurrence of a job of the leader, by who leads.
func TestExplainLeader(t *testing.T) {
	t.Parallel()
	var text strings.Builder
	for _, c := range []struct {
		name string
		make func(d *desk, b idempotency.Session) idempotency.ID
	}{
		{"nobody has ever led", func(d *desk, _ idempotency.Session) idempotency.ID {
			d.now = hour(1).Add(5 * time.Minute)
			return report
		}},
		{"still to come, and somebody leads", func(d *desk, _ idempotency.Session) idempotency.ID {
			d.leads(d.session)
			return report
		}},
		{"not decided, and the leader has resigned", func(d *desk, _ idempotency.Session) idempotency.ID {
			l := d.leads(d.session)
			d.now = hour(1).Add(-3 * time.Second)
			d.resigns(d.session, l, "stopping: SIGTERM")
			d.now = hour(1).Add(time.Minute)
			return report
		}},
		{"not decided, and the leader is gone", func(d *desk, b idempotency.Session) idempotency.ID {
			d.leads(b)
			d.now = hour(1).Add(-time.Minute)
			d.dies(b)
			d.now = hour(1).Add(time.Minute)
			return report
		}},
		{"not decided, and the leader has not the code", func(d *desk, b idempotency.Session) idempotency.ID {
			d.leads(b)
			d.now = hour(1).Add(time.Minute)
			return report
		}},
		{"done", func(d *desk, _ idempotency.Session) idempotency.ID {
			l := d.leads(d.session)
			d.now = hour(1).Add(time.Second)
			d.finish(d.decideAs(l.Term, 1), idempotency.Finish{Outcome: idempotency.Done, Attempt: 1})
			return report
		}},
		{"it waits, and somebody leads", func(d *desk, _ idempotency.Session) idempotency.ID {
			l := d.leads(d.session)
			d.now = hour(1).Add(time.Second)
			d.decideAs(l.Term, 0)
			return report
		}},
		{"at work on a leader that is gone", func(d *desk, b idempotency.Session) idempotency.ID {
			l := d.leads(d.session)
			d.now = hour(1).Add(time.Second)
			d.decideAs(l.Term, 1)
			d.dies(d.session)
			return report
		}},
		{"a due of all keys, whose leader is gone", func(d *desk, b idempotency.Session) idempotency.ID {
			d.leads(d.session)
			d.now = hour(1).Add(time.Second)
			d.decide("pages", d.now, 0, []time.Time{hour(1)})
			if _, err := d.store.SavePass(d.t.Context(), d.session, []idempotency.Pass{{Job: "pages", Due: hour(1), Mine: bitmap(0, 1, 2, 3, 4, 5, 6, 7), Finished: bitmap()}}); err != nil {
				d.t.Fatal(err)
			}
			d.dies(d.session)
			return idempotency.ID{Job: "pages", Key: "42", Due: hour(1)}
		}},
		{"an efficiency job", func(d *desk, _ idempotency.Session) idempotency.ID {
			d.leads(d.session)
			return idempotency.ID{Job: "cache", Due: hour(1)}
		}},
	} {
		d, b := led(t)
		text.WriteString(explained(t, d.client, c.name, c.make(d, b)))
	}
	golden(t, "explain_leader.txt", text.String())
}

// recorder is a store that people can ask, and that does not keep who leads.
type recorder struct {
	idempotency.Store
	idempotency.History
	idempotency.Control
}

// Who leads is read from the store; one that does not keep it says so, and Explain goes without.
func TestClientLeader(t *testing.T) {
	t.Parallel()
	d, b := led(t)
	if l, err := d.client.Leader(t.Context()); err != nil || l != (idempotency.Leader{}) {
		t.Errorf("nobody has led: %+v, %v", l, err)
	}
	d.now = d.now.Add(time.Second)
	first := d.leads(b)
	got, err := d.client.Leader(t.Context())
	if err != nil || got != first || got.Replica != "b" || !got.Since.Equal(d.now) || got.Term == 0 {
		t.Errorf("%+v, %v; want %+v", got, err, first)
	}
	d.dies(b)
	if l, err := d.client.Leader(t.Context()); err != nil || l.Until.IsZero() || l.Why != "its session ended" {
		t.Errorf("%+v, %v", l, err)
	}
	without, err := scheduler.NewClient("test", recorder{d.store, d.store, d.store})
	if err != nil {
		t.Fatal(err)
	}
	_, err = without.Leader(t.Context())
	want(t, err, scheduler.ErrNoStore, "idempotency.Leaders")
	if x := explained(t, without, "", report); !strings.Contains(x, "this store does not keep who that is") {
		t.Error(x)
	}
	none, err := scheduler.New(scheduler.Config{Namespace: "test", Members: seat{newGossip(), "a"}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = none.Leader(t.Context())
	want(t, err, scheduler.ErrNoStore, "there is none")
	over, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = d.client.Leader(over)
	want(t, err, context.Canceled, "who leads")
	status, err := d.client.Jobs(t.Context())
	if err != nil || len(status) != 4 || !status[0].Leader || status[1].Leader {
		t.Errorf("%+v, %v", status, err)
	}
}
