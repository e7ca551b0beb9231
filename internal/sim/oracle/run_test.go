package oracle_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/sim/oracle"
)

// ended is the history of key a, which is running under fence 6 and whose handler ended so.
func (h history) ended(end oracle.End) {
	h.Claimed(claim())
	h.Started(a, 6, 1)
	h.Returned(6, end)
}

// finishes records an attempt of key a under fence 6.
func (h history) finishes(attempt int, o oracle.Outcome, reason string) {
	h.Finished(oracle.Finish{ID: a, Fence: 6, Outcome: o, Attempt: attempt, Reason: reason, Wake: epoch.Add(12 * time.Second), Answer: oracle.Finished})
}

// overtaken is a run of key a whose session 2 lapsed: session 1 took it up with fence 7.
func (h history) overtaken() {
	c := claim()
	c.Session = 2
	h.Claimed(c)
	h.at(40 * time.Second)
	h.SessionDead(2, false)
	h.Claimed(oracle.Claim{Hash: "ten", Session: 1, Nonce: 9, ID: a, Exclusive: true, TakeUp: true, Seen: 6, Fence: 7, Crashes: 1})
}

// second opens the due at 20 s, of which it returns key a.
func (h history) second() oracle.ID {
	h.at(21 * time.Second)
	d := h.decision("keyed")
	d.Keyed, d.Nonce, d.SeenOpened, d.Open, d.Next, d.Run = true, 9, d.Open, epoch.Add(21*time.Second), epoch.Add(30*time.Second), []int64{unix(20)}
	h.Decided(d)
	return id("keyed", "a", 20)
}

// skipped is the record of a run that found its key held.
func (h history) skipped(x oracle.ID) oracle.Row {
	return oracle.Row{ID: x, State: oracle.Ended, Outcome: oracle.Skipped}
}

// again takes key a up after an attempt that failed, and starts it as the one that follows.
func (h history) again(attempt int) {
	fence := int64(6 + attempt)
	h.at(time.Duration(12+attempt) * time.Second)
	h.Claimed(oracle.Claim{Hash: "ten", Session: 1, Nonce: 9, ID: a, Exclusive: true, TakeUp: true, Seen: fence - 1, Fence: fence, Attempt: attempt})
	h.Started(a, fence, attempt+1)
	h.Returned(fence, oracle.Error)
	f := finish(fence)
	f.ID, f.Outcome, f.Attempt, f.Wake = a, oracle.None, attempt+1, epoch.Add(12*time.Second)
	h.Finished(f)
}

// What becomes of a run follows from how its handler ended, and from who had drawn its fence.
func TestRuns(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		law  string // no law: nothing is wrong
		play func(h history)
	}{
		{"nil is done", "", func(h history) { h.ended(oracle.Nil); h.finishes(1, oracle.Done, "") }},
		{"nil is done, though it was late", "", func(h history) { h.ended(oracle.Overdue | oracle.Nil); h.finishes(1, oracle.Done, "") }},
		{"nil has failed", "I10", func(h history) { h.ended(oracle.Nil); h.finishes(1, oracle.None, "retry") }},
		{"nil is given back", "I10", func(h history) { h.ended(oracle.Interrupted | oracle.Nil); h.finishes(0, oracle.None, "released") }},
		{"an error is done", "I1", func(h history) { h.ended(oracle.Error); h.finishes(1, oracle.Done, "") }},
		{"a panic is done", "I1", func(h history) { h.ended(oracle.Panic); h.finishes(1, oracle.Done, "") }},
		{"an error is tried again", "", func(h history) { h.ended(oracle.Error); h.finishes(1, oracle.None, "retry") }},
		{"an error is not counted", "I10", func(h history) { h.ended(oracle.Error); h.finishes(0, oracle.None, "released") }},
		{"an error of a lost session", "", func(h history) { h.ended(oracle.Interrupted | oracle.Error); h.finishes(0, oracle.None, "released") }},
		{"an end that its handler does not heed", "", func(h history) { h.ended(oracle.Overdue); h.finishes(1, oracle.None, "timeout") }},
		{"a skip", "", func(h history) { h.ended(oracle.Skip); h.finishes(1, oracle.Skipped, "handler") }},
		{"an error is a skip", "I16", func(h history) { h.ended(oracle.Error); h.finishes(1, oracle.Skipped, "handler") }},
		{"it waits after its last attempt", "I10", func(h history) {
			h.ended(oracle.Error)
			h.finishes(1, oracle.None, "retry")
			h.again(1)
			h.again(2)
		}},
		{"it fails after its last attempt", "", func(h history) {
			h.ended(oracle.Error)
			h.finishes(1, oracle.None, "retry")
			h.again(1)
			h.at(20 * time.Second)
			h.Claimed(oracle.Claim{Hash: "ten", Session: 1, Nonce: 9, ID: a, Exclusive: true, TakeUp: true, Seen: 7, Fence: 8, Attempt: 2})
			h.Started(a, 8, 3)
			h.Returned(8, oracle.Panic)
			h.Finished(oracle.Finish{ID: a, Fence: 8, Outcome: oracle.Failed, Attempt: 3, Reason: "panic", Answer: oracle.Finished})
		}},
		{"it starts once too often", "I10", func(h history) {
			h.Claimed(claim())
			h.Started(a, 6, 4)
		}},
		{"who was overtaken starts", "I9", func(h history) { h.overtaken(); h.Started(a, 6, 1) }},
		{"who was overtaken starts after the end", "I9", func(h history) {
			h.overtaken()
			h.Started(a, 7, 1)
			h.Returned(7, oracle.Nil)
			h.Finished(oracle.Finish{ID: a, Fence: 7, Outcome: oracle.Done, Attempt: 1, Answer: oracle.Finished})
			h.Started(a, 6, 1)
		}},
		{"who was overtaken did not know, since the clock was set", "", func(h history) {
			h.Stepped()
			h.overtaken()
			h.Started(a, 6, 1)
		}},
		{"a young key is missed", "I2", func(h history) { h.Recorded(1, oracle.Row{ID: a, State: oracle.Ended, Outcome: oracle.Missed}) }},
		{"an old key is missed", "", func(h history) {
			h.at(71 * time.Second)
			h.Recorded(1, oracle.Row{ID: a, State: oracle.Ended, Outcome: oracle.Missed})
		}},
		{"a key is recorded as done", "I1", func(h history) { h.Recorded(1, oracle.Row{ID: a, State: oracle.Ended, Outcome: oracle.Done}) }},
		{"a key that never was", "I12", func(h history) { c := claim(); c.ID.Key = "c"; h.Claimed(c) }},
		{"a key that was gone", "I12", func(h history) { c := claim(); c.ID.Key = "gone"; h.Claimed(c) }},
		{"a key that never was is missed", "I12", func(h history) {
			h.at(71 * time.Second)
			h.Recorded(1, oracle.Row{ID: id("keyed", "c", 10), State: oracle.Ended, Outcome: oracle.Missed})
		}},
		{"a key that one copy has", "", func(h history) { h.Copied("keyed", "c", true); c := claim(); c.ID.Key = "c"; h.Claimed(c) }},
		{"a key that goes later", "", func(h history) {
			h.Present("keyed", "a", false)
			h.Copied("keyed", "a", false)
			h.Claimed(claim())
		}},
		{"a key is skipped for an older run", "", func(h history) { h.Claimed(claim()); h.Recorded(1, h.skipped(h.second())) }},
		{"a key is skipped for a newer run", "overlap", func(h history) {
			c := claim()
			c.ID = h.second()
			h.Claimed(c)
			h.Recorded(1, h.skipped(a))
		}},
		{"a key is recorded as its claim does not say", "overlap", func(h history) { h.Misrecorded(a, "skipped") }},
		{"a take-up from a session that is forgotten", "", func(h history) {
			c := claim()
			c.Session = 2
			h.Claimed(c)
			h.SessionDead(2, true)
			h.at(10 * time.Minute)
			h.Forget()
			h.Claimed(oracle.Claim{Hash: "ten", Session: 1, Nonce: 9, ID: a, Exclusive: true, TakeUp: true, Seen: 6, Fence: 7, Crashes: 1})
		}},
		{"the end of an orphan whose session is forgotten", "", func(h history) {
			c := claim()
			c.Session = 2
			h.Claimed(c)
			h.Canceled(a)
			h.SessionDead(2, true)
			h.at(10 * time.Minute)
			h.Forget()
			h.Refused(a, 6)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := begin()
			c.play(h)
			h.breaks(t, c.law)
		})
	}
}

// A key's partition is xxhash64 modulo their number: 0xd24ec4f1a98c6e5b for "a", by the hash's own publication.
func TestPartition(t *testing.T) {
	t.Parallel()
	const most = 1 << 16 // partitions, a second each
	o := oracle.New(oracle.Rules{Partitions: most})
	if got, want := o.Start(a, most*time.Second), epoch.Add((10+0xd24ec4f1a98c6e5b%most)*time.Second); !got.Equal(want) {
		t.Errorf("%v starts at %v, want %v", a, got, want)
	}
}
