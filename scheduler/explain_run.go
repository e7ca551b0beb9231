package scheduler

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belfry-go/belfry/idempotency"
)

// ending is an outcome as what a run was, or is.
func ending(o idempotency.Outcome) string {
	switch o {
	case idempotency.Skipped, idempotency.Missed:
		return "it was " + o.String()
	case idempotency.Failed:
		return "it has failed"
	}
	return "it is " + o.String()
}

// runFound is found for a run that has a row.
func (x *explainer) runFound() (short string, details func()) {
	r := x.run
	switch {
	case r.State == idempotency.Ended && r.Reason == "":
		return ending(r.Outcome), x.tellEnd
	case r.State == idempotency.Ended:
		return fmt.Sprintf("%s (%s)", ending(r.Outcome), r.Reason), x.tellEnd
	case r.State == idempotency.Waiting:
		return "it waits", x.tellWaiting
	case x.session(r.Session) == nil:
		return "it was at work on a replica that is gone", x.tellRunning
	case r.Cancel != "":
		return "it is at work, and told to end", x.tellRunning
	}
	return "it is at work", x.tellRunning
}

// session is a live session; nil: it is not live.
func (x *explainer) session(id int64) *idempotency.SessionStatus {
	i := slices.IndexFunc(x.overview.Sessions, func(s idempotency.SessionStatus) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return &x.overview.Sessions[i]
}

// tellClaim says who claimed the run last, and how late.
func (x *explainer) tellClaim() {
	r := x.run
	if r.Fence == 0 {
		x.say("No replica has claimed it.")
		return
	}
	last := ""
	if r.Attempt > 1 || r.Attempt == 1 && r.State != idempotency.Ended || r.Crashes > 0 {
		last = " last"
	}
	x.say("Replica %q claimed it%s at %s, %s after its due, with fence %d%s.", r.Replica, last, instant(r.Started), span(r.Started.Sub(r.ID.Due)), r.Fence, x.asLeader())
}

// tellTries says what it took so far.
func (x *explainer) tellTries() {
	r := x.run
	var s []string
	if r.Attempt > 1 || r.Attempt == 1 && r.State != idempotency.Ended {
		s = append(s, fmt.Sprintf("%d %s ended", r.Attempt, plural(r.Attempt, "attempt has", "attempts have")))
	}
	if r.Crashes > 0 {
		s = append(s, fmt.Sprintf("%d %s died while at work on it", r.Crashes, plural(r.Crashes, "replica has", "replicas have")))
	}
	if len(s) > 0 {
		x.say("%s.", strings.Join(s, "; "))
	}
}

// tellEnd says how and when a run ended.
func (x *explainer) tellEnd() {
	r := x.run
	if r.Outcome == idempotency.Done {
		x.tellClaim()
		x.say("Its handler returned without an error, or completed it in its own transaction; that was recorded at %s, %s after the claim.", instant(r.Finished), span(r.Finished.Sub(r.Started)))
		x.tellTries()
		return
	}
	x.say("%s", reasonFor(r.Reason, true))
	x.tellHolder()
	x.tellText()
	x.tellClaim()
	x.tellTries()
	x.say("Its end was recorded at %s.", instant(r.Finished))
	if r.Outcome == idempotency.Failed {
		x.say("A person can let it be tried again, with all its attempts (retry).")
	}
}

func (x *explainer) tellRunning() {
	r, now := x.run, x.overview.Now
	x.tellClaim()
	s := x.session(r.Session)
	if s == nil {
		next := "Another one takes the run up within seconds, if one has the job's code and a free worker."
		if x.entry.Leader {
			next = "The leader takes the run up within seconds, once somebody leads who has the job's code and a free worker."
		}
		x.say("The session of that claim is not alive any more: the replica died, stopped, or could not reach the store in time. %s", next)
	} else {
		x.say("It has been at work for %s, in attempt %d. That replica's session is alive: its lease lasts until %s, unless it is renewed before.", span(now.Sub(r.Started)), r.Attempt+1, instant(s.Expires))
	}
	switch r.Cancel {
	case "":
	case idempotency.Canceled:
		x.say("A person asked for it to end: its handler's context is ended, and it is failed (canceled) unless the handler returns nil.")
	case idempotency.Overtaken:
		x.say("A newer run of its key waits for it to end (jobs.OverlapCancel): its handler's context is ended, and it is skipped (overtaken) unless the handler returns nil.")
	}
	x.tellTries()
	if r.Attempt > 0 {
		x.tellText()
	}
}

func (x *explainer) tellWaiting() {
	r, now := x.run, x.overview.Now
	x.say("%s", reasonFor(r.Reason, false))
	x.tellText()
	if r.Fence > 0 {
		x.tellClaim()
	}
	x.tellTries()
	if r.Wake.After(now) {
		x.say("It can be claimed from %s on, in %s.", instant(r.Wake), span(r.Wake.Sub(now)))
		return
	}
	x.say("It could be claimed since %s, %s ago.", instant(r.Wake), span(now.Sub(r.Wake)))
	if h := x.holder; h != nil && x.session(h.Session) == nil {
		x.say("Another run of its key, that of due %s, was at work on replica %q, which is gone; it holds the key until another replica takes it up and ends it.", instant(h.ID.Due), h.Replica)
		return
	}
	if x.holder != nil {
		x.say("Another run of its key is at work, and unless Job.Overlap allows more, one at a time is: %s.", x.held())
		return
	}
	switch {
	case x.led():
		x.say("It waits for a free worker on the leader.")
	case x.entry.Leader:
		x.say("It waits for a replica that may run it.")
	default:
		x.say("It waits for a free worker on a replica that has the job's code.")
	}
}

// held names the run that holds the key, or held it.
func (x *explainer) held() string {
	h := x.holder
	s := fmt.Sprintf("that of due %s, at work on replica %q since %s", instant(h.ID.Due), h.Replica, instant(h.Started))
	if h.State == idempotency.Ended {
		s += " until " + instant(h.Finished)
	}
	return s
}

// maxLine bounds what is shown of an error, in bytes.
const maxLine = 300

// tellText shows the first line of what is recorded of an error.
func (x *explainer) tellText() {
	line := firstLine(x.run.Text)
	switch {
	case line == "":
	case x.run.Outcome == idempotency.Skipped || x.run.Outcome == idempotency.Missed:
		x.say("Recorded with it: %s", line)
	default:
		x.say("Its error: %s", line)
	}
	if _, note, had := strings.Cut(x.run.Text, "\nlast progress: "); had { // as the core writes it
		x.say("Its last progress: %s", firstLine(note))
	}
}

// firstLine is the first line of a text, cut where it is long.
func firstLine(text string) string {
	line, _, more := strings.Cut(strings.TrimSpace(text), "\n")
	line = strings.TrimSpace(line)
	if len(line) > maxLine {
		end := maxLine
		for !utf8.RuneStart(line[end]) {
			end--
		}
		line, more = line[:end], true
	}
	if more {
		line += " …"
	}
	return line
}

// span writes a duration for people; one below zero, since clocks differ a little, as none.
func span(d time.Duration) string {
	switch d = max(d, 0); {
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < 48*time.Hour:
		s := d.Round(time.Second).String()
		if strings.HasSuffix(s, "m0s") {
			s = strings.TrimSuffix(s, "0s")
		}
		if strings.HasSuffix(s, "h0m") {
			s = strings.TrimSuffix(s, "0m")
		}
		return s
	}
	return fmt.Sprintf("%d days", d/(24*time.Hour))
}

func plural(n int, one, more string) string {
	if n == 1 {
		return one
	}
	return more
}
