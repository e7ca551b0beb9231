//go:build unix

package rig

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// row is a run as the store's history has it, and span a stretch of dues that did not run.
type row struct {
	run
	ended            bool
	outcome, reason  string
	text             string
	fence            int64
	attempt, crashes int
	finished         int64 // microseconds since 1970
}

type span struct {
	job             string
	from, to, count int64
	outcome, reason string
}

// law is what a test's story allows and knows.
type law struct {
	died, paused, cut map[int]bool // processes; cut: from the store
	troubled          []stretch    // when the store or the way to it was
	lease             time.Duration
	missed            bool   // dues may have been missed
	poison            string // the key whose runs fail after five crashes
}

// stretch is of time, in microseconds since 1970.
type stretch struct{ from, to int64 }

// judge holds what was due against what became of it. It knows schedules and identities only by its own reading of
// what they mean, and what the product told nobody.
type judge struct {
	works        []work
	since, limit int64
	rows         map[run]row
	spans        []span
	effects      []mark
	opened, lost int // sessions, and of those that were lost, of processes that no fault hit
	unexplained  int // of lost: when nobody waited for a processor, and nothing was the matter with the store
	abandoned    int // runs that five processes died of, or died with

	law
	losses map[int][]int64 // when a process's sessions came to their end by themselves, at the latest
	waits  []int64         // when a process had waited for a processor
	bad    []string
}

// mark is an effect that was committed together with the completion of its run.
type mark struct {
	idem  string
	fence int64
}

func newJudge(works []work, since, limit int64, rows []row, spans []span) *judge {
	j := &judge{works: works, since: since, limit: limit, rows: map[run]row{}, spans: spans, losses: map[int][]int64{}}
	for _, r := range rows {
		j.rows[r.run] = r
	}
	return j
}

func (j *judge) fail(format string, a ...any) { j.bad = append(j.bad, fmt.Sprintf(format, a...)) }

// dues of a work in (after, to], second by second.
func (w work) dues(after, to int64) (list []int64) {
	for s := after + 1; s <= to; s++ {
		every := int64(w.Every / time.Second)
		if every > 0 && s%every == int64(w.Phase/time.Second) || every == 0 && s == w.At.Unix() {
			list = append(list, s)
		}
	}
	return list
}

// runs of one due.
func (w work) runs(job string, due int64) (list []run) {
	if w.Keys == 0 {
		return []run{{job, job, due}}
	}
	for i := range w.Keys {
		list = append(list, run{job, key(i), due})
	}
	return list
}

// open lists what has not come to its end.
func (j *judge) open() (list []run) {
	for _, w := range j.works {
		dues := w.dues(j.since, j.limit)
		for _, name := range w.names() {
			for _, due := range dues {
				for _, r := range w.runs(name, due) {
					if !j.rows[r].ended && !j.spanned(name, due) {
						list = append(list, r)
					}
				}
			}
		}
	}
	for _, r := range j.rows {
		if !r.ended && r.due <= j.since {
			list = append(list, r.run)
		}
	}
	return list
}

func (j *judge) spanned(job string, due int64) bool {
	return slices.ContainsFunc(j.spans, func(s span) bool { return s.job == job && s.from <= due && due <= s.to })
}

// judge returns a line for each breach.
func (j *judge) judge(lines []line, l law) []string {
	j.law = l
	j.judgeSessions(lines)
	for _, r := range j.open() {
		j.fail("lost: %v has no outcome", r)
	}
	by := map[run][]line{}
	for _, l := range lines {
		by[l.run()] = append(by[l.run()], l)
	}
	j.judgeRows(by)
	j.judgeSpans()
	j.judgeOrder(lines)
	j.judgeEffects()
	for _, r := range slices.SortedFunc(maps.Keys(by), func(a, b run) int { return strings.Compare(a.String(), b.String()) }) {
		if r != (run{}) && r.due <= j.limit {
			j.judgeRun(r, by[r])
		}
	}
	for r, row := range j.rows {
		if row.outcome == "done" && by[r] == nil {
			j.fail("done without a word: %v", r)
		}
	}
	return j.bad
}

// judgeSessions looks for sessions that were lost: who has opened another one has lost the one before, as it has where it says so.
func (j *judge) judgeSessions(lines []line) {
	again, said := map[int][]int64{}, map[int][]int64{}
	has := map[int]bool{}
	for _, l := range lines {
		switch l.Phase {
		case session:
			if j.opened++; has[l.Pid] {
				again[l.Pid] = append(again[l.Pid], l.At)
			}
			has[l.Pid] = true
		case lapsed:
			said[l.Pid] = append(said[l.Pid], l.At)
		case waited:
			j.waits = append(j.waits, l.At)
		}
	}
	for pid := range has {
		j.losses[pid] = slices.Concat(again[pid], said[pid])
		if !j.struck(pid) {
			j.lost += max(len(again[pid]), len(said[pid]))
			j.unexplained += max(j.unexplainedOf(again[pid]), j.unexplainedOf(said[pid]))
		}
	}
}

// unexplainedOf counts losses of a process that nothing explains: for up to two leases before a loss is seen there was no renewal, and
// who waited then says so when it goes on.
func (j *judge) unexplainedOf(losses []int64) (n int) {
	lease := j.lease.Microseconds()
	for _, at := range losses {
		if !slices.ContainsFunc(j.waits, func(w int64) bool { return at-2*lease <= w && w <= at+lease }) &&
			!slices.ContainsFunc(j.troubled, func(s stretch) bool { return s.from <= at && at <= s.to+2*lease }) {
			n++
		}
	}
	return n
}

// struck says that a fault of the story hit the process.
func (j *judge) struck(pid int) bool { return j.died[pid] || j.paused[pid] || j.cut[pid] }

// hit says that a fault hit the process, or that about then it lost a session, for whatever reason.
func (j *judge) hit(l line) bool { return j.struck(l.Pid) || j.stood(l) }

// stood says that the process of a line lost a session about then. What it does in the last lease of one it may do late, when the
// machine lets it go on.
func (j *judge) stood(l line) bool {
	return slices.ContainsFunc(j.losses[l.Pid], func(at int64) bool {
		return (at-l.At) <= 3*j.lease.Microseconds() && (l.At-at) <= j.lease.Microseconds()
	})
}

// crashedForNothing says that a run counts a crash, and no process that had to do with it died or lost its session about then.
func (j *judge) crashedForNothing(r run, lines []line) bool {
	return j.rows[r].crashes > 0 && !slices.ContainsFunc(lines, func(l line) bool { return l.run() == r && j.hit(l) })
}

func (j *judge) judgeRows(by map[run][]line) {
	wanted := map[run]bool{}
	for _, w := range j.works {
		for _, name := range w.names() {
			for _, due := range w.dues(j.since-3600, j.limit+3600) {
				for _, r := range w.runs(name, due) {
					wanted[r] = true
				}
			}
		}
	}
	for r, row := range j.rows {
		if !wanted[r] {
			j.fail("extra: %v is no due", r)
		}
		if r.due > j.limit || !row.ended {
			continue
		}
		switch {
		case row.outcome == "done":
		case row.outcome == "skipped" && row.reason == "overlap":
			if !j.overlapped(r) {
				j.fail("skipped: %v, and no earlier run of its key was under way", r)
			}
		case row.outcome == "failed" && row.reason == "abandoned":
			j.abandoned++
			// Who takes up a run that crashed five times starts it no more, and may die itself before it has given it up.
			if n := starts(by[r]); row.crashes < 5 || n > 5 || row.attempt != 0 {
				j.fail("poison: %v failed after %d crashes, %d starts and %d attempts, want five crashes, as many starts at most, and no attempt", r, row.crashes, n, row.attempt)
			}
			if n := j.holders(by[r]); n < 4 && (j.poison == "" || r.key != j.poison) { // one may have died before it could write down its claim
				j.fail("abandoned: %v, and only %d processes that had to do with it were hit", r, n)
			}
		default:
			j.fail("outcome: %v is %s (%s): %.200s", r, row.outcome, row.reason, row.text)
		}
	}
}

// holders counts the processes that had to do with a run and were hit.
func (j *judge) holders(lines []line) int {
	held := map[int]bool{}
	for _, l := range lines {
		if j.hit(l) {
			held[l.Pid] = true
		}
	}
	return len(held)
}

// judgeEffects holds the effects that are in the store's database against the runs that they are of: one for each that is
// done, none for others.
func (j *judge) judgeEffects() {
	marks := map[string][]int64{}
	for _, m := range j.effects {
		marks[m.idem] = append(marks[m.idem], m.fence)
	}
	for r, row := range j.rows {
		if m := marks[r.idem()]; row.outcome == "done" && j.inTx(r.job) && (len(m) != 1 || m[0] != row.fence) {
			j.fail("effects: %v is done under fence %d, its effects are under %d", r, row.fence, m)
		} else if row.outcome == "done" {
			delete(marks, r.idem())
		}
	}
	for idem, fences := range marks {
		j.fail("effects: %s has effects under %d, and is not done", idem, fences)
	}
}

// inTx says that a job's effects are in the store's database.
func (j *judge) inTx(job string) bool {
	return slices.ContainsFunc(j.works, func(w work) bool { return w.InTx && slices.Contains(w.names(), job) })
}

func (j *judge) overlapped(r run) bool {
	for other, row := range j.rows {
		if other.job == r.job && other.key == r.key && other.due < r.due && (!row.ended || row.finished >= r.due*1e6-1e5) {
			return true
		}
	}
	return false
}

// judgeSpans counts what the spans speak for.
func (j *judge) judgeSpans() {
	for _, s := range j.spans {
		if !j.missed || s.outcome != "missed" {
			j.fail("span: %s of %s (%s) in [%d, %d]", s.outcome, s.job, s.reason, s.from, s.to)
		}
		var n int64
		for _, w := range j.works {
			if !slices.Contains(w.names(), s.job) {
				continue
			}
			for _, due := range w.dues(s.from-1, s.to) {
				if _, ran := j.rows[w.runs(s.job, due)[0]]; !ran {
					n++
				}
			}
		}
		if n != s.count {
			j.fail("span: of %s in [%d, %d] counts %d dues, there are %d that did not run", s.job, s.from, s.to, s.count, n)
		}
	}
}

// judgeOrder: no fence starts or is claimed twice, and per key it only rises.
func (j *judge) judgeOrder(lines []line) {
	type once struct {
		phase string
		fence int64
	}
	seen := map[once]run{}
	top := map[string]int64{}
	for _, l := range lines {
		if l.Phase != claimed && l.Phase != started && l.Phase != effect {
			continue
		}
		k := once{l.Phase, l.Fence}
		if r, had := seen[k]; had && (l.Phase != claimed || r != l.run()) {
			j.fail("fence: %s twice under %d, %v and %v", l.Phase, l.Fence, r, l.run())
		}
		seen[k] = l.run()
		lane := l.Job + "/" + l.Key
		if l.Fence < top[lane] && !j.hit(l) {
			j.fail("fence: %v %s under %d after %d, in process %d that nothing hit", l.run(), l.Phase, l.Fence, top[lane], l.Pid)
		}
		top[lane] = max(top[lane], l.Fence)
		if l.Phase == started && l.At < l.Due*1e6-1e5 {
			j.fail("early: %v started %d µs before its due", l.run(), l.Due*1e6-l.At)
		}
	}
}

// judgeRun holds the lines of one run against its row.
func (j *judge) judgeRun(r run, lines []line) {
	row, had := j.rows[r]
	if !had {
		if slices.ContainsFunc(lines, func(l line) bool { return l.Phase != faulted && l.Phase != refused }) {
			j.fail("unknown: %v is in the ledger, the store has no row", r)
		}
		return
	}
	attempts, gave, completions, last := 1, 0, 0, int64(0)
	for _, l := range lines {
		if l.Idem != "" && l.Idem != r.idem() {
			j.fail("key: %v has the idempotency key %q, want %q", r, l.Idem, r.idem())
		}
		if l.Phase == faulted && (strings.HasSuffix(l.Text, throw) || strings.HasSuffix(l.Text, hang)) {
			attempts++
		}
		if l.Phase == gaveUp {
			gave++
		}
		if l.Phase == committed && l.Text != "wait" {
			completions++
			if l.Fence != row.fence || l.Text != row.outcome {
				j.fail("overtaken: %v was completed as %s under fence %d, its row is %s under %d", r, l.Text, l.Fence, row.outcome, row.fence)
			}
		}
		if l.Phase == effect || l.Phase == applied {
			last = max(last, l.Fence)
		}
	}
	if completions > 1 {
		j.fail("double: %v was completed %d times", r, completions)
	}
	if row.outcome == "done" && (last != row.fence || row.attempt < attempts || row.attempt > attempts+gave) {
		j.fail("done: %v under fence %d in attempt %d; its last effect has fence %d, and it had %d attempts", r, row.fence, row.attempt, last, attempts)
	}
	for _, l := range lines {
		if l.Phase == effect && l.Fence < last && !j.hit(l) {
			j.fail("repeated: the effect of %v under fence %d, in process %d that nothing hit; again under %d", r, l.Fence, l.Pid, last)
		}
		if l.Phase == faulted && row.ended {
			j.judgeFault(l, row, lines)
		}
	}
}

// idem is the identity that every repeat must carry.
func (r run) idem() string {
	return fmt.Sprintf("%s:%s/%s@%s", namespace, r.job, r.key, time.Unix(r.due, 0).UTC().Format(time.RFC3339))
}

// starts counts the handlers that were started.
func starts(lines []line) (n int) {
	for _, l := range lines {
		if l.Phase == started {
			n++
		}
	}
	return n
}

// judgeFault demands what each point promises of the run that it hit.
func (j *judge) judgeFault(f line, row row, lines []line) {
	has := func(phase, text string) bool {
		return slices.ContainsFunc(lines, func(l line) bool {
			return l.Phase == phase && l.Fence == f.Fence && l.Pid == f.Pid && strings.Contains(l.Text, text)
		})
	}
	later := row.fence > f.Fence
	crashed := later && (row.crashes > 0 || j.stood(f))        // who has lost a session and has another did not crash
	over := row.outcome == "done" || row.reason == "abandoned" // whether it was hit often enough for that is judged elsewhere
	ok := true
	switch f.Text {
	case "K2 kill", "K3 kill", "K3 crash":
		ok = crashed // taken up with a higher fence
	case "K4 kill":
		ok = crashed && over
	case "K5 kill":
		ok = later == !has(committed, "done") || !later // committed or repeated, never both
	case "K6 kill", "K7 kill":
		ok = !later && row.outcome == "done"
	case "K4 stop":
		ok = later == has(refused, "fenced") && later != has(committed, "done") && has(returned, "session lost")
	case "K5 stop":
		ok = later == has(refused, "fenced") && later != has(committed, "done")
	case "K3 throw", "K3 hang":
		ok = later && over
	}
	if !ok {
		j.fail("fault: %s of %v under fence %d in process %d; its row: %s (%s) under %d after %d crashes; its lines: %v",
			f.Text, f.run(), f.Fence, f.Pid, row.outcome, row.reason, row.fence, row.crashes, lines)
	}
}

// tally counts rows by outcome.
func (j *judge) tally() string {
	n := map[string]int{}
	for _, r := range j.rows {
		if r.due <= j.limit {
			n[r.outcome]++
		}
	}
	for _, s := range j.spans {
		n["in spans "+s.outcome] += int(s.count)
	}
	var list []string
	for _, k := range slices.Sorted(maps.Keys(n)) {
		list = append(list, fmt.Sprintf("%d %s", n[k], k))
	}
	return strings.Join(list, ", ")
}
