package oracle_test

import (
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/internal/sim/oracle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var epoch = time.Unix(1_790_000_000, 0).UTC()

// history is an oracle with two live sessions, 1 and 2, a keyed job that was
// opened for the due at 10 s, and a plain one whose due is running under fence 5 of session 1.
type history struct {
	*oracle.Oracle
}

func unix(s int) int64 { return epoch.Unix() + int64(s) }

// breaks demands that the first violation is one of the law; empty: that there is none.
func (h history) breaks(t *testing.T, law string) {
	t.Helper()
	v := h.Violations()
	if law == "" && len(v) > 0 || law != "" && (len(v) == 0 || v[0].Law != law) {
		t.Errorf("found %v, want %q", v, law)
	}
}

func (h history) at(d time.Duration) { h.At(epoch.Add(d)) }

func id(job, key string, due int) oracle.ID { return oracle.ID{Job: job, Key: key, Due: unix(due)} }

var plain, a = id("plain", "plain", 10), id("keyed", "a", 10)

func begin() history {
	h := history{oracle.New(oracle.Rules{
		Tolerance: 100 * time.Millisecond, Horizon: time.Minute, MissedAfter: 10 * time.Second, Retention: 2 * time.Minute,
		Lease: 10 * time.Second, Sweep: time.Second, Attempts: 3, Crashes: 5, Partitions: 2,
		Fatal: func(oracle.ID) bool { return false }, Spare: 1,
	})}
	h.Define("ten", oracle.Schedule{Period: 10, Phase: epoch.Unix() % 10})
	h.at(0)
	h.Session(1, "one", epoch.Add(time.Hour), true)
	h.Session(2, "two", epoch.Add(30*time.Second), true)
	h.Present("keyed", "a", true)
	h.Present("keyed", "b", true)
	h.Copied("keyed", "gone", true)
	h.Copied("keyed", "gone", false)
	for s := range int64(2) {
		h.Announced(s+1, 1, map[string]string{"keyed": "ten", "plain": "ten"})
	}
	for _, job := range []string{"keyed", "plain"} {
		h.Has("one", job, "ten", oracle.Choice{Keep: 1, Reason: "late", MaxAge: time.Minute})
		h.Declared(1, job, "ten", "ten", epoch, epoch.Add(10*time.Second))
	}
	h.at(11 * time.Second)
	d := h.decision("keyed")
	d.Keyed = true
	h.Decided(d)
	d = h.decision("plain")
	d.Rows = []oracle.Row{{ID: plain, State: oracle.Running, Fence: 5}}
	h.Decided(d)
	for _, job := range []string{"keyed", "plain"} {
		h.ToldDecided("one", job, []int64{unix(10)}, 0, 0, 0)
	}
	h.Started(plain, 5, 1)
	h.Returned(5, oracle.Nil)
	return h
}

func (h history) decision(job string) oracle.Decision {
	return oracle.Decision{
		Session: 1, Nonce: 7, Job: job, SeenHash: "ten", Hash: "ten",
		SeenOpened: epoch, Open: epoch.Add(11 * time.Second), Next: epoch.Add(20 * time.Second), Run: []int64{unix(10)},
	}
}

// claim is the first of key a, with fence 6.
func claim() oracle.Claim {
	return oracle.Claim{Hash: "ten", Session: 1, Nonce: 8, ID: a, Exclusive: true, Fence: 6}
}

func finish(fence int64) oracle.Finish {
	return oracle.Finish{ID: plain, Fence: fence, Outcome: oracle.Done, Attempt: 1, Answer: oracle.Finished}
}

func TestLaws(t *testing.T) {
	t.Parallel()
	orphan := func(h history) oracle.Claim {
		c := claim()
		c.Session = 2
		h.Claimed(c)
		h.at(40 * time.Second)
		return oracle.Claim{Hash: "ten", Session: 1, Nonce: 9, ID: a, Exclusive: true, TakeUp: true, Seen: 6, Fence: 7, Crashes: 1}
	}
	opening := func(h history, to time.Duration, run []int64, ranges ...oracle.Range) oracle.Decision {
		d := h.decision("plain")
		d.Nonce, d.SeenOpened, d.Open, d.Run, d.Ranges = 9, d.Open, epoch.Add(to), run, ranges
		d.Next = epoch.Add(to.Truncate(10*time.Second) + 10*time.Second)
		for _, t := range run {
			d.Rows = append(d.Rows, oracle.Row{ID: oracle.ID{Job: "plain", Key: "plain", Due: t}, State: oracle.Waiting})
		}
		h.at(to)
		return d
	}
	next := func(h history, run []int64, ranges ...oracle.Range) oracle.Decision {
		return opening(h, 31*time.Second, run, ranges...)
	}
	missed := func(from, to int, reason string) oracle.Range {
		return oracle.Range{From: unix(from), To: unix(to), Count: int64(to-from)/10 + 1, Outcome: oracle.Missed, Reason: reason}
	}
	skip := func(h history) { h.Has("one", "plain", "ten", oracle.Choice{Reason: "late"}) }
	paused := func(h history) {
		h.Paused("plain", epoch.Add(15*time.Second))
		h.Resumed("plain", epoch.Add(25*time.Second))
	}
	cases := []struct {
		name, law string // no law: nothing is wrong
		play      func(h history)
	}{
		{"a good life", "", func(h history) {
			h.Finished(finish(5))
			h.Claimed(claim())
			h.Started(a, 6, 1)
			h.Returned(6, oracle.Nil)
			f := finish(6)
			f.ID = a
			h.Finished(f)
			h.Claimed(oracle.Claim{Hash: "ten", Session: 1, Nonce: 9, ID: id("keyed", "b", 10), Exclusive: true, Fence: 8})
			h.Passed(1, "keyed", unix(10), []int{0, 1})
			h.Closed(1, "keyed", unix(10), nil)
		}},
		{"a take-up", "", func(h history) { c := orphan(h); h.SessionDead(2, false); h.Claimed(c) }},
		{"a repeated claim", "", func(h history) { h.Claimed(claim()); h.Claimed(claim()) }},
		{"a repeated decision", "", func(h history) { h.Decided(h.decisionAgain()) }},
		{"two completions", "I1", func(h history) { h.Finished(finish(5)); h.Finished(finish(5)) }},
		{"a new claim of an old run", "I1", func(h history) { h.Claimed(claim()); c := claim(); c.Nonce, c.Fence = 9, 9; h.Claimed(c) }},
		{"done without a handler", "I1", func(h history) { h.Claimed(claim()); f := finish(6); f.ID, f.Attempt = a, 0; h.Finished(f) }},
		{"a due passed over", "I2", func(h history) { h.Decided(next(h, []int64{unix(20)})) }},
		{"a due that is none", "I2", func(h history) { h.Decided(next(h, []int64{unix(20), unix(25), unix(30)})) }},
		{"a range that counts wrong", "I2", func(h history) {
			h.Decided(next(h, []int64{unix(30)}, oracle.Range{From: unix(20), To: unix(20), Count: 2, Outcome: oracle.Missed}))
		}},
		{"a range that begins at no due", "I2", func(h history) {
			h.Decided(next(h, []int64{unix(30)}, oracle.Range{From: unix(19), To: unix(20), Count: 1, Outcome: oracle.Missed, Reason: "late"}))
		}},
		{"a young due missed", "plan", func(h history) {
			h.Decided(next(h, []int64{unix(20)}, oracle.Range{From: unix(30), To: unix(30), Count: 1, Outcome: oracle.Missed}))
		}},
		{"a due of a pause skipped after it", "", func(h history) {
			paused(h)
			h.Decided(next(h, []int64{unix(30)}, oracle.Range{From: unix(20), To: unix(20), Count: 1, Outcome: oracle.Skipped, Reason: "paused"}))
		}},
		{"a due of a pause runs after it", "pause", func(h history) { paused(h); h.Decided(next(h, []int64{unix(20), unix(30)})) }},
		{"a due of a pause missed", "pause", func(h history) {
			paused(h)
			h.Decided(next(h, []int64{unix(30)}, oracle.Range{From: unix(20), To: unix(20), Count: 1, Outcome: oracle.Missed}))
		}},
		{"paused for nothing", "pause", func(h history) {
			h.Decided(next(h, []int64{unix(30)}, oracle.Range{From: unix(20), To: unix(20), Count: 1, Outcome: oracle.Skipped, Reason: "paused"}))
		}},
		{"a run never ends", "I2", func(h history) { h.Settled(epoch.Add(15 * time.Second)) }},
		{"a key forgotten", "I2", func(h history) {
			h.Claimed(claim())
			h.Passed(1, "keyed", unix(10), []int{0, 1})
			h.Closed(1, "keyed", unix(10), nil)
		}},
		{"a stored run that nobody wrote", "I2", func(h history) {
			h.Audit(slices.Values([]oracle.Row{{ID: plain, State: oracle.Running, Fence: 5}, {ID: a, State: oracle.Waiting}}))
		}},
		{"a fence again", "I3", func(h history) { c := claim(); c.Fence = 5; h.Claimed(c) }},
		{"a fence that falls", "I3", func(h history) { c := orphan(h); h.SessionDead(2, false); c.Fence = 4; h.Claimed(c) }},
		{"a finish by an old fence", "I4", func(h history) { h.Finished(finish(4)) }},
		{"a claim of a dead session", "I4", func(h history) { h.at(31 * time.Second); c := claim(); c.Session = 2; h.Claimed(c) }},
		{"a lapsed session renewed", "I4", func(h history) { h.at(31 * time.Second); h.Session(2, "two", epoch.Add(time.Hour), false) }},
		{"a take-up without the mark", "I4", func(h history) { h.Claimed(orphan(h)) }},
		{"a start under a lapsed session", "I9", func(h history) {
			c := claim()
			c.Session = 2
			h.Claimed(c)
			h.at(31 * time.Second)
			h.Started(a, 6, 1)
		}},
		{"a finish told that nobody accepted", "I14", func(h history) { h.ToldFinished(plain, 5, oracle.Done) }},
		{"a finish told as another", "I14", func(h history) { h.Finished(finish(5)); h.ToldFinished(plain, 5, oracle.Failed) }},
		{"a finish told twice", "I14", func(h history) {
			h.Finished(finish(5))
			h.ToldFinished(plain, 5, oracle.Done)
			h.ToldFinished(plain, 5, oracle.Done)
		}},
		{"a finish never told", "I14", func(h history) { h.Finished(finish(5)); h.Told(epoch, epoch.Add(time.Hour)) }},
		{"a holder told as fenced", "I14", func(h history) { h.ToldFenced(plain, 5) }},
		{"an efficiency due that ran twice", "I5", func(h history) {
			h.Fired(id("local", "local", 20))
			h.Fired(id("local", "local", 20))
			h.Lone("local", oracle.Schedule{Period: 10, Phase: epoch.Unix() % 10}, unix(10), unix(20))
		}},
		{"a forgotten run that is claimed again", "horizon", func(h history) {
			h.Finished(finish(5))
			h.at(10 * time.Minute)
			h.Forget()
			h.Claimed(oracle.Claim{Hash: "ten", Session: 1, Nonce: 9, ID: plain, Exclusive: true, Fence: 9})
		}},
		{"the holder is fenced", "I4", func(h history) { f := finish(5); f.Answer = oracle.Fenced; h.Finished(f) }},
		{"a claim before its due", "I8", func(h history) { h.at(9 * time.Second); h.Claimed(claim()) }},
		{"a claim between its due and its start", "I8", func(h history) { h.Spread("keyed", 4*time.Second); h.Claimed(claim()) }},
		{"a claim at its start", "", func(h history) { h.Spread("keyed", 2*time.Second); h.Claimed(claim()) }},
		{"a handler before its start", "I8", func(h history) {
			h.Spread("plain", 4*time.Second)
			h.Finished(finish(5))
			h.Claimed(claim())
			h.Spread("keyed", 4*time.Second)
			h.Started(a, 6, 1)
		}},
		{"a waiting run too early", "I8", func(h history) {
			f := finish(5)
			f.Outcome, f.Wake = oracle.None, epoch.Add(time.Minute)
			h.Finished(f)
			h.Claimed(oracle.Claim{Hash: "ten", Session: 1, Nonce: 9, ID: plain, Exclusive: true, TakeUp: true, Seen: 5, Fence: 9, Attempt: 1})
		}},
		{"a crash not counted", "I10", func(h history) { c := orphan(h); h.SessionDead(2, false); c.Crashes = 0; h.Claimed(c) }},
		{"an attempt that nobody made", "I10", func(h history) {
			h.Claimed(claim())
			f := finish(6)
			f.ID, f.Outcome = a, oracle.None
			h.Finished(f)
		}},
		{"a failure too soon", "I10", func(h history) { f := finish(5); f.Outcome = oracle.Failed; h.Finished(f) }},
		{"an older due runs than one that is missed", "plan", func(h history) {
			h.Decided(opening(h, 49*time.Second, []int64{unix(20), unix(40)}, missed(30, 30, "late")))
		}},
		{"the newest one of two late ones runs", "", func(h history) {
			h.Decided(opening(h, 49*time.Second, []int64{unix(30), unix(40)}, missed(20, 20, "late")))
		}},
		{"all late ones run, by a policy that lets one", "plan", func(h history) {
			h.Decided(opening(h, 49*time.Second, []int64{unix(20), unix(30), unix(40)}))
		}},
		{"none of the late ones runs, by that policy", "plan", func(h history) {
			h.Decided(opening(h, 49*time.Second, []int64{unix(40)}, missed(20, 30, "late")))
		}},
		{"none of the late ones runs, by one that its process has too", "", func(h history) {
			skip(h)
			h.Decided(opening(h, 49*time.Second, []int64{unix(40)}, missed(20, 30, "late")))
		}},
		{"missed for another reason", "plan", func(h history) {
			h.Decided(opening(h, 49*time.Second, []int64{unix(30), unix(40)}, missed(20, 20, "max")))
		}},
		{"too old ones are missed", "", func(h history) {
			h.Decided(opening(h, 89*time.Second, []int64{unix(70), unix(80)}, missed(20, 20, "age"), missed(30, 60, "late")))
		}},
		{"a due recorded as done", "plan", func(h history) {
			h.Decided(next(h, []int64{unix(20)}, oracle.Range{From: unix(30), To: unix(30), Count: 1, Outcome: oracle.Done}))
		}},
		{"too late to start, without a bound", "plan", func(h history) {
			h.Decided(next(h, []int64{unix(30)}, oracle.Range{From: unix(20), To: unix(20), Count: 1, Outcome: oracle.Skipped, Reason: "deadline"}))
		}},
		{"offered too late", "I2", func(h history) {
			d := next(h, []int64{unix(20), unix(30)})
			d.Next = epoch.Add(50 * time.Second)
			h.Decided(d)
		}},
		{"a due that nobody decides", "I2", func(h history) {
			h.Finished(finish(5))
			h.at(time.Minute)
			h.Settled(epoch.Add(20 * time.Second))
		}},
		{"a definition that its process never had", "I2", func(h history) { h.Define("x", oracle.Schedule{}); d := next(h, nil); d.Hash = "x"; h.Decided(d) }},
		{"the dues of a definition that was never in force", "force", func(h history) {
			h.Define("x", oracle.Schedule{Period: 10, Phase: epoch.Unix() % 10})
			d := next(h, []int64{unix(20), unix(30)})
			d.SeenHash = "x"
			h.Decided(d)
		}},
		{"an older definition put in force", "force", func(h history) {
			h.Define("x", oracle.Schedule{Period: 10, Phase: epoch.Unix() % 10})
			h.Has("one", "plain", "x", oracle.Choice{Keep: 1, Reason: "late"})
			h.Session(2, "two", epoch.Add(time.Hour), false)
			h.Announced(2, 2, map[string]string{"plain": "x"})
			h.Announced(2, 3, map[string]string{"plain": "y"})
			h.Announced(1, 2, map[string]string{"plain": "x"})
			d := next(h, []int64{unix(20), unix(30)})
			d.Hash = "x"
			h.Decided(d)
		}},
		{"the younger one put in force", "", func(h history) {
			h.Define("x", oracle.Schedule{Period: 10, Phase: epoch.Unix() % 10})
			h.Has("one", "plain", "x", oracle.Choice{Keep: 1, Reason: "late"})
			h.Announced(1, 2, map[string]string{"plain": "x"})
			d := next(h, []int64{unix(20), unix(30)})
			d.Hash = "x"
			h.Decided(d)
		}},
		{"a claim by what a session announces no more", "force", func(h history) {
			h.Announced(1, 3, map[string]string{"plain": "ten"})
			h.Announced(1, 2, map[string]string{"keyed": "ten"}) // comes late
			h.Claimed(claim())
		}},
		{"a decision told", "", func(h history) {
			h.Decided(opening(h, 49*time.Second, []int64{unix(30), unix(40)}, missed(20, 20, "late")))
			h.ToldDecided("one", "plain", []int64{unix(30), unix(40)}, 1, 0, 0)
			h.Told(epoch, epoch.Add(time.Hour))
		}},
		{"a decision told wrong", "I14", func(h history) {
			h.Decided(next(h, []int64{unix(20), unix(30)}))
			h.ToldDecided("one", "plain", []int64{unix(20), unix(30)}, 1, 0, 0)
		}},
		{"a decision told by another", "I14", func(h history) {
			h.Decided(next(h, []int64{unix(20), unix(30)}))
			h.ToldDecided("two", "plain", []int64{unix(20), unix(30)}, 0, 0, 0)
		}},
		{"a decision told twice", "I14", func(h history) { h.ToldDecided("one", "plain", []int64{unix(10)}, 0, 0, 0) }},
		{"a decision never told", "I14", func(h history) { h.Decided(next(h, []int64{unix(20), unix(30)})); h.Told(epoch, epoch.Add(time.Hour)) }},
		{"fenced for nothing", "I14", func(h history) { h.Finished(finish(5)); h.ToldFenced(plain, 5) }},
		{"fenced, and told so", "", func(h history) {
			c := orphan(h)
			h.SessionDead(2, false)
			h.Claimed(c)
			f := finish(6)
			f.ID, f.Answer = a, oracle.Fenced
			h.Finished(f)
			h.ToldFenced(a, 6)
			h.ToldTakenUp(a, 7, 1)
		}},
		{"a take-up told with other crashes", "I14", func(h history) { c := orphan(h); h.SessionDead(2, false); h.Claimed(c); h.ToldTakenUp(a, 7, 2) }},
		{"what is due in a calm is done", "", func(h history) { h.Finished(finish(5)); h.AllDone("plain", unix(1), unix(11)) }},
		{"a due of a calm is not done", "I6", func(h history) { h.AllDone("plain", unix(1), unix(11)) }},
		{"a key of a calm is not done", "I6", func(h history) { h.AllDone("keyed", unix(1), unix(11)) }},
		{"a due of a calm is not opened", "I6", func(h history) { h.AllDone("keyed", unix(11), unix(21)) }},
		{"a due given up at the horizon", "", func(h history) {
			h.at(71 * time.Second)
			h.Closed(1, "keyed", unix(10), &oracle.Range{From: unix(10), To: unix(10), Count: 1, Outcome: oracle.Missed, Reason: "source"})
		}},
		{"a due given up as another", "open", func(h history) {
			h.at(71 * time.Second)
			h.Closed(1, "keyed", unix(10), &oracle.Range{From: unix(0), To: unix(10), Count: 2, Outcome: oracle.Missed, Reason: "source"})
		}},
		{"opened moves back", "I13", func(h history) {
			d := h.decision("plain")
			d.Nonce, d.SeenOpened, d.Open, d.Run = 9, d.Open, epoch.Add(5*time.Second), nil
			h.Decided(d)
		}},
		{"opened ahead of the store", "I13", func(h history) {
			d := next(h, []int64{unix(20), unix(30)})
			h.at(30 * time.Second)
			h.Decided(d)
		}},
		{"a handler twice under one fence", "I15", func(h history) { h.Started(plain, 5, 1) }},
		{"two runs of a key", "overlap", func(h history) {
			d := next(h, []int64{unix(20), unix(30)})
			d.Rows[0].State, d.Rows[0].Fence = oracle.Running, 9
			h.Decided(d)
		}},
		{"skipped for nothing", "overlap", func(h history) { h.Recorded(1, oracle.Row{ID: a, State: oracle.Ended, Outcome: oracle.Skipped}) }},
		{"a claim past the horizon", "horizon", func(h history) { h.at(71 * time.Second); h.Claimed(claim()) }},
		{"a due closed unfinished", "open", func(h history) { h.Passed(1, "keyed", unix(10), []int{1}); h.Closed(1, "keyed", unix(10), nil) }},
		{"a due given up too soon", "open", func(h history) {
			h.Closed(1, "keyed", unix(10), &oracle.Range{From: unix(10), To: unix(10), Count: 1, Outcome: oracle.Missed})
		}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := begin()
			if v := h.Violations(); len(v) > 0 {
				t.Fatalf("the beginning: %v", v[0])
			}
			c.play(h)
			v := h.Violations()
			switch {
			case c.law == "" && len(v) > 0:
				t.Errorf("found %v in a good history", v[0])
			case c.law != "" && len(v) == 0:
				t.Errorf("found nothing, want a violation of %s", c.law)
			case c.law != "" && !slices.ContainsFunc(v, func(x oracle.Violation) bool { return x.Law == c.law }):
				t.Errorf("found %v, want a violation of %s", v[0], c.law)
			}
		})
	}
}

func (h history) decisionAgain() oracle.Decision {
	d := h.decision("plain")
	d.Rows = []oracle.Row{{ID: plain, State: oracle.Running, Fence: 5}}
	return d
}
