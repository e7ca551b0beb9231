package main

import (
	"encoding/hex"
	"time"
	"unicode/utf8"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// The views are what --json prints. Their fields are promised to programs in docs/commands.md: more may come, none changes.

// instant is null where there is none.
type instant time.Time

func (i instant) MarshalJSON() ([]byte, error) {
	t := time.Time(i)
	if t.IsZero() {
		return []byte("null"), nil
	}
	return t.UTC().AppendFormat(nil, `"`+time.RFC3339Nano+`"`), nil
}

// keyView is a key: text or, where its bytes are none, null beside their digits.
type keyView struct {
	Key *string `json:"key"`
	Hex string  `json:"key_hex,omitempty"`
}

func viewKey(key string) keyView {
	switch {
	case key == "":
		return keyView{}
	case utf8.ValidString(key):
		return keyView{Key: &key}
	}
	return keyView{Hex: hex.EncodeToString([]byte(key))}
}

type jobView struct {
	Job        string   `json:"job"`
	Schedule   string   `json:"schedule"`
	Keyed      bool     `json:"keyed"`
	Guarantee  string   `json:"guarantee"`
	Leader     bool     `json:"leader"`
	Next       instant  `json:"next"`
	Opened     instant  `json:"opened"`
	PausedFrom instant  `json:"paused_from"`
	Retired    instant  `json:"retired"`
	Replicas   []string `json:"replicas"`
	Last       *runView `json:"last"`
}

func (o *operation) viewJob(j scheduler.JobStatus) jobView {
	v := jobView{
		Job: j.Name, Schedule: j.Schedule, Keyed: j.Keyed, Guarantee: "correctness", Leader: j.Leader, Next: instant(j.Next), Opened: instant(j.Opened),
		PausedFrom: instant(j.PausedFrom), Retired: instant(j.Retired), Replicas: j.Announced,
	}
	if j.Efficiency {
		v.Guarantee = "efficiency"
	}
	if v.Replicas == nil {
		v.Replicas = []string{}
	}
	if j.Last != nil {
		last := o.viewRun(*j.Last)
		v.Last = &last
	}
	return v
}

type runView struct {
	ID  string `json:"id"`
	Job string `json:"job"`
	keyView
	Due      instant `json:"due"`
	Request  string  `json:"request"`
	State    string  `json:"state"`
	Outcome  string  `json:"outcome"`
	Reason   string  `json:"reason"`
	Text     string  `json:"text"`
	Cancel   string  `json:"cancel"`
	Attempts int     `json:"attempts"`
	Crashes  int     `json:"crashes"`
	Fence    int64   `json:"fence"`
	Term     int64   `json:"term"`
	Replica  string  `json:"replica"`
	Wake     instant `json:"wake"`
	Started  instant `json:"started"`
	Finished instant `json:"finished"`
	Payload  []byte  `json:"payload"`
}

func (o *operation) viewRun(r idempotency.Run) runView {
	v := runView{
		ID: o.idOf(r.ID), Job: r.ID.Job, keyView: viewKey(r.ID.Key), Due: instant(r.ID.Due), Request: r.ID.Request,
		State: r.State.String(), Reason: r.Reason, Text: r.Text, Cancel: r.Cancel, Attempts: r.Attempt, Crashes: r.Crashes,
		Fence: r.Fence, Term: r.Term, Replica: r.Replica, Wake: instant(r.Wake), Started: instant(r.Started), Finished: instant(r.Finished), Payload: r.Payload,
	}
	if r.State == idempotency.Ended {
		v.Outcome = r.Outcome.String()
	}
	return v
}

// idOf is the occurrence's name, as logs and receivers have it.
func (o *operation) idOf(id idempotency.ID) string {
	return jobs.Occurrence{Namespace: o.namespace, Job: id.Job, Key: id.Key, Due: id.Due, Request: id.Request}.ID()
}

type leaderView struct {
	Leads   bool    `json:"leads"`
	Replica string  `json:"replica"`
	Term    int64   `json:"term"`
	Since   instant `json:"since"`
	Until   instant `json:"until"`
	Why     string  `json:"why"`
}

func viewLeader(l idempotency.Leader) leaderView {
	return leaderView{Leads: leads(l), Replica: l.Replica, Term: l.Term, Since: instant(l.Since), Until: instant(l.Until), Why: l.Why}
}

type explanationView struct {
	Job string `json:"job"`
	keyView
	Due       instant  `json:"due"`
	Request   string   `json:"request"`
	Run       *runView `json:"run"`
	Sentences []string `json:"sentences"`
}

type gapView struct {
	Job   string  `json:"job"`
	From  instant `json:"from"`
	To    instant `json:"to"`
	Count int64   `json:"count"`

	Undecided bool `json:"undecided"`
}

type commandView struct {
	Request string `json:"request"`
	Kind    string `json:"kind"`
	Job     string `json:"job"`
	keyView
	Due        instant `json:"due"`
	Last       instant `json:"last"`
	RunRequest string  `json:"run_request"`
	Actor      string  `json:"actor"`
	Reason     string  `json:"reason"`
	At         instant `json:"at"`
	Changed    int     `json:"changed"`
}

func viewCommand(c idempotency.Command) commandView {
	return commandView{
		Request: c.Request, Kind: c.Kind.String(), Job: c.ID.Job, keyView: viewKey(c.ID.Key), Due: instant(c.ID.Due), Last: instant(c.Last), RunRequest: c.ID.Request,
		Actor: c.Actor, Reason: c.Reason, At: instant(c.At), Changed: c.Changed,
	}
}

// viewAll is a list that is never null.
func viewAll[T, V any](list []T, view func(T) V) []V {
	views := make([]V, 0, len(list))
	for _, x := range list {
		views = append(views, view(x))
	}
	return views
}
