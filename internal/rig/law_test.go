//go:build unix

package rig

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// tale is a history to judge: one plain job each second, one with two keys each other second, and one each fourth whose
// effects join the transactions that complete its runs, for (100, 104].
type tale struct {
	rows    []row
	lines   []line
	spans   []span
	effects []mark
	law
}

var told = []work{
	{Name: "plain", Every: time.Second}, {Name: "keyed", Every: 2 * time.Second, Keys: 2}, {Name: "tx", Every: 4 * time.Second, InTx: true},
}

// calm is a tale in which nothing went wrong, in process 1.
func calm() *tale {
	t := &tale{law: law{died: map[int]bool{}, paused: map[int]bool{}, lease: 2 * time.Second}, lines: []line{{Phase: session, Pid: 1}, {Phase: session, Pid: 2}}}
	for due := int64(101); due <= 104; due++ {
		t.did(run{"plain", "plain", due}, due*10, 1)
		if due%2 == 0 {
			t.did(run{"keyed", key(0), due}, due*10+1, 1)
			t.did(run{"keyed", key(1), due}, due*10+2, 1)
		}
	}
	x := run{"tx", "tx", 104}
	t.tell(x, 1043, 1, claimed, started, applied, committed, returned)
	t.rows = append(t.rows, row{run: x, ended: true, outcome: "done", fence: 1043, attempt: 1, finished: 104e6 + 500})
	t.effects = []mark{{x.idem(), 1043}}
	return t
}

// did tells of a run from its claim to its end, as its row and lines.
func (t *tale) did(r run, fence int64, pid int) {
	t.tell(r, fence, pid, claimed, started, effect, returned, committed)
	t.rows = append(t.rows, row{run: r, ended: true, outcome: "done", fence: fence, attempt: 1, finished: r.due*1e6 + 500})
}

func (t *tale) tell(r run, fence int64, pid int, phases ...string) {
	for _, phase := range phases {
		l := line{Phase: phase, Pid: pid, Job: r.job, Key: r.key, Due: r.due, Fence: fence, Attempt: 1, At: r.due*1e6 + 100}
		switch phase {
		case started, effect, applied:
			l.Idem = r.idem()
		case committed:
			l.Text = "done"
		}
		t.lines = append(t.lines, l)
	}
}

func (t *tale) at(r run) *row {
	return &t.rows[slices.IndexFunc(t.rows, func(x row) bool { return x.run == r })]
}

func (t *tale) cut(r run, phase string) {
	t.lines = slices.DeleteFunc(t.lines, func(l line) bool { return l.run() == r && (phase == "" || l.Phase == phase) })
}

// cutOf is cut, of the lines under one fence.
func (t *tale) cutOf(r run, fence int64, phase string) {
	t.lines = slices.DeleteFunc(t.lines, func(l line) bool { return l.run() == r && l.Fence == fence && l.Phase == phase })
}

// fault says that a process is about to do one to itself in a run, behind the lines so far.
func (t *tale) fault(r run, fence int64, pid int, text string) {
	t.tell(r, fence, pid, faulted)
	t.lines[len(t.lines)-1].Text = text
}

// again repeats a run in process 2.
func (t *tale) again(r run, fence int64) {
	t.cut(r, committed)
	t.tell(r, fence, 2, claimed, started, effect, returned, committed)
	t.at(r).fence, t.at(r).crashes = fence, 1
}

// TestJudge tells tales: the first ones are lawful, each of the others breaks a law, which the judge has to name.
func TestJudge(t *testing.T) {
	t.Parallel()
	r, k, x := run{"plain", "plain", 102}, run{"keyed", key(1), 102}, run{"tx", "tx", 104}
	for _, c := range []struct {
		name string
		tell func(t *tale)
		want string // the law; "": none is broken
	}{
		{"calm", func(*tale) {}, ""},
		{"died after the effect", func(t *tale) { t.died[1] = true; t.fault(k, 1022, 1, "K4 kill"); t.again(k, 2000) }, ""},
		{"paused after the effect", func(t *tale) { t.paused[1] = true; t.again(k, 2000) }, ""},
		{"cut from the store after the effect", func(t *tale) { t.law.cut = map[int]bool{1: true}; t.again(k, 2000) }, ""},
		{"died after the effect, in a session that it had opened after another", func(t *tale) {
			t.died[1] = true
			t.lines = append(t.lines, line{Phase: session, Pid: 1, At: k.due * 1e6})
			t.fault(k, 1022, 1, "K4 kill")
			t.again(k, 2000)
			t.at(k).crashes = 0
		}, ""},
		{"lost the session while it drained", func(t *tale) {
			t.lines = append(t.lines, line{Phase: lapsed, Pid: 1, At: k.due*1e6 + 3e6})
			t.again(k, 2000)
		}, ""},
		{"given up after six crashes, one of them of who was to give it up", func(t *tale) {
			t.cut(k, effect)
			t.cut(k, committed)
			for pid := 11; pid <= 16; pid++ { // the last died before it could give it up
				t.died[pid] = true
				t.tell(k, 1022+int64(pid), pid, claimed)
			}
			t.fault(k, 1033, 11, "K4 kill")
			*t.at(k) = row{run: k, ended: true, outcome: "failed", reason: "abandoned", fence: 1038, crashes: 6}
		}, ""},
		{"repeated, when a transaction had failed", func(t *tale) {
			t.tell(x, 2000, 2, claimed, started, applied, gaveUp, started, applied, committed)
			t.cut(x, started)
			t.cutOf(x, 1043, committed)
			t.at(x).fence, t.at(x).attempt, t.effects[0].fence = 2000, 2, 2000
		}, ""},
		{"overlapped", func(t *tale) {
			t.cut(run{"plain", "plain", 103}, "")
			*t.at(run{"plain", "plain", 103}) = row{run: run{"plain", "plain", 103}, ended: true, outcome: "skipped", reason: "overlap"}
			t.at(r).finished = 103e6 + 1
		}, ""},
		{"missed", func(t *tale) {
			t.cut(r, "")
			t.rows = slices.DeleteFunc(t.rows, func(x row) bool { return x.run == r })
			t.spans, t.missed = []span{{"plain", 102, 102, 1, "missed", "late"}}, true
		}, ""},

		{"no row", func(t *tale) {
			t.rows = slices.DeleteFunc(t.rows, func(x row) bool { return x.run == k })
			t.cut(k, "")
		}, "lost"},
		{"not ended", func(t *tale) { *t.at(k) = row{run: k, fence: 1022}; t.cut(k, committed) }, "lost"},
		{"extra", func(t *tale) { t.did(run{"keyed", key(1), 103}, 1032, 1) }, "extra"},
		{"not in the ledger", func(t *tale) { t.cut(k, "") }, "done without a word"},
		{"skipped for nothing", func(t *tale) {
			t.cut(k, "")
			*t.at(k) = row{run: k, ended: true, outcome: "skipped", reason: "overlap"}
		}, "skipped"},
		{"failed", func(t *tale) { t.at(k).outcome, t.at(k).reason = "failed", "exhausted"; t.cut(k, committed) }, "outcome"},
		{"missed against the law", func(t *tale) { t.spans = []span{{"plain", 90, 95, 6, "missed", "late"}} }, "span"},
		{"miscounted", func(t *tale) { t.spans, t.missed = []span{{"plain", 90, 95, 5, "missed", "late"}}, true }, "span"},
		{"one fence twice", func(t *tale) { t.tell(k, 1022, 2, started) }, "fence"},
		{"a lower fence", func(t *tale) { t.did(run{"keyed", key(1), 104 + 2}, 1000, 1) }, "fence"},
		{"early", func(t *tale) {
			i := slices.IndexFunc(t.lines, func(l line) bool { return l.run() == k && l.Phase == started })
			t.lines[i].At = 101e6
		}, "early"},
		{"another identity", func(t *tale) {
			i := slices.IndexFunc(t.lines, func(l line) bool { return l.run() == k && l.Phase == effect })
			t.lines[i].Idem = "rig:keyed/k0001@102"
		}, "key"},
		{"done twice", func(t *tale) { t.died[1] = true; t.tell(k, 1022, 1, committed) }, "double"},
		{"overtaken and done", func(t *tale) { t.died[1] = true; t.at(k).fence = 1023; t.tell(k, 1023, 2, effect) }, "overtaken"},
		{"attempt burnt", func(t *tale) { t.at(k).attempt = 2 }, "done"},
		{"no effect", func(t *tale) { t.cut(k, effect) }, "done"},
		{"repeated for nothing", func(t *tale) { t.again(k, 2000) }, "repeated"},
		{"repeated long before the session was lost", func(t *tale) {
			t.lines = append(t.lines, line{Phase: lapsed, Pid: 1, At: k.due*1e6 + 7e6})
			t.again(k, 2000)
		}, "repeated"},
		{"repeated long after another session was lost", func(t *tale) {
			t.lines = append(t.lines, line{Phase: session, Pid: 1, At: k.due*1e6 - 3e6})
			t.again(k, 2000)
		}, "repeated"},
		{"never stored", func(t *tale) { t.tell(run{"plain", "plain", 99}, 990, 1, started) }, "unknown"},
		{"poison that counts", func(t *tale) {
			t.poison = key(1)
			t.cut(k, committed)
			*t.at(k) = row{run: k, ended: true, outcome: "failed", reason: "abandoned", fence: 1022, crashes: 4}
		}, "poison"},
		{"poison that is started once more", func(t *tale) {
			t.cut(k, committed)
			for pid := 11; pid <= 16; pid++ {
				t.died[pid] = true
				t.tell(k, 1022+int64(pid), pid, claimed, started)
			}
			*t.at(k) = row{run: k, ended: true, outcome: "failed", reason: "abandoned", fence: 1038, crashes: 6}
		}, "poison"},
		{"given up after one crash", func(t *tale) {
			t.died[1] = true
			t.cut(k, committed)
			*t.at(k) = row{run: k, ended: true, outcome: "failed", reason: "abandoned", fence: 1022, crashes: 5}
		}, "abandoned"},
		{"another attempt for nothing", func(t *tale) { t.at(x).attempt = 2 }, "done"},
		{"an effect twice", func(t *tale) { t.effects = append(t.effects, mark{x.idem(), 1044}) }, "effects"},
		{"an effect of another holder", func(t *tale) { t.effects[0].fence = 1042 }, "effects"},
		{"no effect in the store", func(t *tale) { t.effects = nil }, "effects"},
		{"an effect of what is not done", func(t *tale) {
			t.at(x).outcome, t.at(x).reason = "failed", "exhausted"
			t.cut(x, committed)
		}, "effects"},
		{"K4, not repeated", func(t *tale) { t.died[1] = true; t.fault(k, 1022, 1, "K4 kill") }, "fault"},
		{"K6, repeated", func(t *tale) { t.died[1] = true; t.fault(k, 1022, 1, "K6 kill"); t.again(k, 2000) }, "fault"},
		{"K4 stop, not fenced", func(t *tale) { t.paused[1] = true; t.fault(k, 1022, 1, "K4 stop"); t.again(k, 2000) }, "fault"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			x := calm()
			c.tell(x)
			j := newJudge(told, 100, 104, x.rows, x.spans)
			j.effects = x.effects
			bad := j.judge(x.lines, x.law)
			named := slices.ContainsFunc(bad, func(text string) bool { return strings.HasPrefix(text, c.want+":") })
			if c.want == "" && len(bad) > 0 || c.want != "" && !named {
				t.Errorf("the judge says %q, want %q", bad, c.want)
			}
		})
	}
}

// TestSessionsLost counts sessions that were lost, and those for no reason: without a fault of the process, a wait for a processor or
// trouble with the store.
func TestSessionsLost(t *testing.T) {
	t.Parallel()
	const lease = 2e6
	at := func(phase string, pid int, at int64) line { return line{Phase: phase, Pid: pid, At: at} }
	for name, c := range map[string]struct {
		lines             []line
		law               law
		lost, unexplained int
	}{
		"none":                      {nil, law{}, 0, 0},
		"one":                       {[]line{at(session, 1, 10*lease)}, law{}, 1, 1},
		"one, which is said":        {[]line{at(lapsed, 1, 10*lease), at(session, 1, 10*lease)}, law{}, 1, 1},
		"one, when it drained":      {[]line{at(lapsed, 1, 10*lease)}, law{}, 1, 1},
		"after a wait":              {[]line{at(waited, 2, 9*lease), at(session, 1, 10*lease)}, law{}, 1, 0},
		"long after a wait":         {[]line{at(waited, 2, 7*lease), at(session, 1, 10*lease)}, law{}, 1, 1},
		"in a trouble of the store": {[]line{at(session, 1, 10*lease)}, law{troubled: []stretch{{8 * lease, 9 * lease}}}, 1, 0},
		"by a fault":                {[]line{at(session, 1, 10*lease)}, law{paused: map[int]bool{1: true}}, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := newJudge(nil, 100, 104, nil, nil)
			c.law.lease = lease * time.Microsecond
			j.judge(append([]line{at(session, 1, 0), at(session, 2, 0)}, c.lines...), c.law)
			if j.lost != c.lost || j.unexplained != c.unexplained {
				t.Errorf("%d lost, %d for no reason; want %d and %d", j.lost, j.unexplained, c.lost, c.unexplained)
			}
		})
	}
}
