package oracle_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/sim/oracle"
)

// once is the history of key a of a job whose runs start once at most, and within five seconds: it is claimed with fence 6.
func once() history {
	h := history{oracle.New(oracle.Rules{
		Tolerance: 100 * time.Millisecond, Horizon: time.Minute, MissedAfter: 10 * time.Second, Retention: 2 * time.Minute,
		Crashes: 5, Partitions: 2,
		Policy: func(string) oracle.Policy { return oracle.Policy{Attempts: 1, Once: true, Within: 5 * time.Second} },
	})}
	h.Define("ten", oracle.Schedule{Period: 10, Phase: epoch.Unix() % 10})
	h.at(0)
	h.Session(1, "one", epoch.Add(time.Hour), true)
	h.Present("keyed", "a", true)
	h.Present("keyed", "b", true)
	h.Has("one", "keyed", "ten", oracle.Choice{Keep: 1, Reason: "late", MaxAge: time.Minute})
	h.Announced(1, 1, map[string]string{"keyed": "ten"})
	h.Declared(1, "keyed", "ten", "ten", epoch, epoch.Add(10*time.Second))
	h.at(11 * time.Second)
	d := h.decision("keyed")
	d.Keyed = true
	h.Decided(d)
	h.Claimed(claim())
	return h
}

func ends(o oracle.Outcome, reason string) oracle.Finish {
	return oracle.Finish{ID: a, Fence: 6, Outcome: o, Reason: reason, Answer: oracle.Finished}
}

// What people and policies let happen is no violation; what they do not, is.
func TestPolicies(t *testing.T) {
	t.Parallel()
	orphan := func(h history) {
		h.Session(2, "two", epoch.Add(time.Hour), true)
		h.Announced(2, 1, map[string]string{"keyed": "ten"})
		h.SessionDead(1, true)
		c := claim()
		c.Session, c.TakeUp, c.Seen, c.Fence, c.Crashes = 2, true, 6, 9, 1
		h.Claimed(c)
	}
	for _, c := range []struct {
		name string
		law  string
		play func(h history)
	}{
		{"started in time", "", func(h history) { h.Started(a, 6, 1) }},
		{"started too late", "I16", func(h history) { h.at(30 * time.Second); h.Started(a, 6, 1) }},
		{"started too late, as the clock was set", "", func(h history) { h.at(30 * time.Second); h.Stepped(); h.Started(a, 6, 1) }},
		{"started too late, long after the clock was set", "I16", func(h history) {
			h.at(9 * time.Second)
			h.Stepped()
			h.at(30 * time.Second)
			h.Started(a, 6, 1)
		}},
		{"started too late, by a host that could not know", "", func(h history) {
			h.Misled("one", time.Minute)
			h.at(30 * time.Second)
			h.Started(a, 6, 1)
		}},
		{"started twice", "I16", func(h history) { h.Started(a, 6, 1); orphan(h); h.Started(a, 9, 1) }},
		{"abandoned", "", func(h history) {
			h.Started(a, 6, 1)
			orphan(h)
			f := ends(oracle.Failed, "abandoned")
			f.Fence = 9
			h.Finished(f)
		}},
		{"abandoned and never started", "I16", func(h history) { h.Finished(ends(oracle.Failed, "abandoned")) }},
		{"abandoned, and retried by hand", "", func(h history) {
			h.Started(a, 6, 1)
			h.Finished(ends(oracle.Failed, "abandoned"))
			h.Retried(a)
			c := claim()
			c.TakeUp, c.Seen, c.Fence, c.Nonce = true, 6, 9, 12
			h.at(40 * time.Second)
			h.Claimed(c)
			h.Started(a, 9, 1)
		}},
		{"skipped past its deadline", "", func(h history) { h.at(16 * time.Second); h.Finished(ends(oracle.Skipped, "deadline")) }},
		{"skipped before it", "I16", func(h history) { h.Finished(ends(oracle.Skipped, "deadline")) }},
		{"skipped for nothing", "I16", func(h history) { h.Finished(ends(oracle.Skipped, "overtaken")) }},
		{"canceled", "", func(h history) { h.Canceled(a); h.Finished(ends(oracle.Failed, "canceled")) }},
		{"canceled by nobody", "I16", func(h history) { h.Finished(ends(oracle.Failed, "canceled")) }},
		{"taken up though canceled", "I16", func(h history) { h.Canceled(a); orphan(h) }},
		{"claimed beside others", "overlap", func(h history) {
			c := claim()
			c.Exclusive, c.ID.Key, c.Fence = false, "b", 9
			h.Claimed(c)
		}},
		{"retried though it has not failed", "I1", func(h history) { h.Retried(a) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := once()
			c.play(h)
			h.breaks(t, c.law)
		})
	}
}
