package bench

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/fleet"
	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// T16 in small: a replica is killed, a job edited; all is accounted for, and nothing is held that was not before.
func TestSoak(t *testing.T) {
	t.Parallel()
	var log, text bytes.Buffer
	s := &soak{length: 15 * time.Second, churn: 10 * time.Second, calm: 5 * time.Second, left: map[int]bool{}, log: &log}
	r, err := s.run(t.Context(), storeurl.URL{})
	if err != nil || r.Err() != nil {
		t.Errorf("%v; %v\n%s", err, r.Err(), strings.Join(r.Examples, "\n"))
	}
	if r.Occurrences < 400 || r.Done == 0 || r.Retried == 0 || len(r.Failed) != 3 || r.Kills != 1 || r.Edits != 1 || r.Rows["belfry_run"] == 0 || r.WALMB == 0 {
		t.Errorf("not all that was to be seen was: %+v", r)
	}
	r.Print(&text)
	line, _, _ := strings.Cut(text.String(), "\n")
	if t.Log(line); !strings.HasPrefix(line, "T16: 3 replicas on sqlite, 15 s: ") {
		t.Errorf("printed\n%s", &text)
	}
}

// TestSoakErr: each thing that is wrong with a soak fails it.
func TestSoakErr(t *testing.T) {
	t.Parallel()
	good := func() SoakReport {
		return SoakReport{Replicas: 3, Leaves: 1, Closed: 4, Occurrences: 10, Done: 10, Seconds: soakLong, Goroutines: SoakSpan{30, 30}, FDs: SoakSpan{20, 19}, Store: "sqlite",
			Series: soakSeries, Queue: soakQueue, WALMB: soakWAL, HeapMB: 60, HeapSlope: soakSlope, Rows: map[string]int64{"belfry_run": soakBound("belfry_run"), "belfry_pass": 1}}
	}
	if err := good().Err(); err != nil {
		t.Error(err)
	}
	for what, breaks := range map[string]func(*SoakReport){
		"lost":       func(r *SoakReport) { r.wrong(&r.Lost, "an example") },
		"double":     func(r *SoakReport) { r.Double++ },
		"wrong":      func(r *SoakReport) { r.Wrong++ },
		"goroutines": func(r *SoakReport) { r.Goroutines.End++ },
		"fds":        func(r *SoakReport) { r.FDs.End = 21 },
		"left":       func(r *SoakReport) { r.left("c", soakFigures{Goroutines: 4, GoroutinesBefore: 3}) },
		"open":       func(r *SoakReport) { r.left("c", soakFigures{FDs: 4, FDsBefore: 3}) },
		"silent":     func(r *SoakReport) { r.Closed-- },
		"series":     func(r *SoakReport) { r.Series++ },
		"queue":      func(r *SoakReport) { r.Queue++ },
		"rows":       func(r *SoakReport) { r.Rows["belfry_run"]++ },
		"other rows": func(r *SoakReport) { r.Rows["belfry_pass"] = soakBound("belfry_pass") + 1 },
		"wal":        func(r *SoakReport) { r.WALMB++ },
		"heap":       func(r *SoakReport) { r.HeapSlope += 0.1 },
	} {
		r := good()
		if breaks(&r); r.Err() == nil {
			t.Errorf("%s: nothing is wrong with %+v", what, r)
		}
	}
	pooled := good()
	pooled.Store, pooled.FDs.End = "postgres", 28
	if err := pooled.Err(); err != nil {
		t.Errorf("connections of pools: %v", err)
	}
	if pooled.FDs.End++; pooled.Err() == nil {
		t.Error("more descriptors than pools have connections are none too many")
	}
	short := good()
	short.Seconds, short.HeapSlope = 180, 100
	if err := short.Err(); err != nil {
		t.Errorf("the noise of a short soak: %v", err)
	}
}

// TestSoakFates: all ends come, and are what the record is held to.
func TestSoakFates(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range 10_000 {
		f := fateOf("customer", time.Unix(int64(i), 0))
		outcome, reason, attempts := f.end()
		if (outcome == idempotency.Done) != (reason == "") || attempts < 1 || attempts > 2 {
			t.Fatalf("%+v ends %v %q after %d", f, outcome, reason, attempts)
		}
		seen[reason] = true
	}
	if len(seen) != 4 {
		t.Error("some end never comes", seen)
	}
}

// TestSoakKeys: keys come and go by the minute, and a source yields just those of the due.
func TestSoakKeys(t *testing.T) {
	t.Parallel()
	one, other := time.Unix(600, 0), time.Unix(660, 0)
	a, b := slices.Collect(present(one)), slices.Collect(present(other))
	if len(a) < soakKeys-soakFickle || len(a) == soakKeys || slices.Equal(a, b) || !slices.IsSorted(a) {
		t.Errorf("%d keys, and a minute later %d", len(a), len(b))
	}
	var got []string
	for key, err := range soakSource(t.Context(), jobs.KeyRange{Due: one, Partitions: []int{0}, Count: 1, After: a[9]}) {
		if got = append(got, key); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(got, a[10:]) {
		t.Errorf("%d keys of a stream, want %d", len(got), len(a)-10)
	}
}

// soakRow is what becomes of an occurrence whose handler is sound.
func soakRow(due time.Time) (soakID, idempotency.Run) {
	for i := range soakTicks {
		id := soakID{fmt.Sprintf("tick-%d", i), fmt.Sprintf("tick-%d", i), due.Unix()}
		if fateOf(id.key, due).ill == sound {
			return id, idempotency.Run{ID: idempotency.ID{Job: id.job, Key: id.key, Due: due}, State: idempotency.Ended, Outcome: idempotency.Done, Attempt: 1}
		}
	}
	panic("no handler is sound")
}

// TestSoakLedger: what a row and the handlers tell is judged; here each is wrong in one way.
func TestSoakLedger(t *testing.T) {
	t.Parallel()
	due := time.Unix(1_790_000_001, 0).UTC()
	id, row := soakRow(due)
	started := func(fence int64) func(*soakLedger) {
		return func(l *soakLedger) {
			l.note(fleet.Started, soakEvent{Job: id.job, Key: id.key, Due: id.due, Fence: fence})
		}
	}
	ended := func(l *soakLedger) { l.note(soakEnded, soakEvent{Job: id.job, Key: id.key, Due: id.due}) }
	for what, c := range map[string]struct {
		steps               []func(*soakLedger)
		change              func(*idempotency.Run)
		double, wrong, lost int
	}{
		"in order":            {steps: []func(*soakLedger){started(1), ended}},
		"repeated":            {steps: []func(*soakLedger){started(1), started(2), ended}, change: func(r *idempotency.Run) { r.Crashes = 1 }},
		"ended twice":         {steps: []func(*soakLedger){started(1), started(2), ended, ended}, double: 1},
		"one fence twice":     {steps: []func(*soakLedger){started(1), started(1), ended}, double: 1},
		"never started":       {steps: []func(*soakLedger){ended}, wrong: 1},
		"another outcome":     {steps: []func(*soakLedger){started(1), ended}, change: func(r *idempotency.Run) { r.Outcome = idempotency.Failed }, wrong: 1},
		"still at work":       {steps: []func(*soakLedger){started(1)}, change: func(r *idempotency.Run) { r.State = idempotency.Running }, wrong: 1},
		"too many attempts":   {steps: []func(*soakLedger){started(1), ended}, change: func(r *idempotency.Run) { r.Attempt = 2 }, wrong: 1},
		"no record":           {steps: []func(*soakLedger){started(1), ended}, change: func(r *idempotency.Run) { r.ID.Due = time.Time{} }, lost: 1},
		"after its accounted": {steps: []func(*soakLedger){started(1), ended, func(l *soakLedger) { l.next = due.Add(time.Second) }, started(2)}, double: 1},
	} {
		r := SoakReport{}
		l := newSoakLedger(soakPlan{First: due, Last: due}, &r)
		for _, step := range c.steps {
			step(l)
		}
		row := row
		if c.change != nil {
			c.change(&row)
		}
		rows := map[soakID]idempotency.Run{}
		for other := range l.expected(due) {
			if other != id {
				_, rows[other] = soakRow(due)
				l.open[other] = &soakSeen{starts: []int64{1}}
				outcome, reason, attempts := fateOf(other.key, due).end()
				x := rows[other]
				x.ID = idempotency.ID{Job: other.job, Key: other.key, Due: due}
				x.Outcome, x.Reason, x.Attempt = outcome, reason, attempts
				rows[other] = x
				if attempts == 2 {
					l.open[other].starts = []int64{1, 2}
				}
			}
		}
		if !row.ID.Due.IsZero() {
			rows[id] = row
		}
		l.due(due, rows)
		if r.Double != c.double || r.Wrong != c.wrong || r.Lost != c.lost || len(rows) != 0 {
			t.Errorf("%s: %d double, %d wrong, %d lost, want %d, %d, %d: %q", what, r.Double, r.Wrong, r.Lost, c.double, c.wrong, c.lost, r.Examples)
		}
	}
}

// TestSoakEdited: of the job that is edited each second one must be there, and the others by its edition, but for the time round an edit.
func TestSoakEdited(t *testing.T) {
	t.Parallel()
	begin := time.Unix(1_790_000_000, 0).UTC()
	l := newSoakLedger(soakPlan{First: begin, Last: begin.Add(time.Hour)}, &SoakReport{})
	l.edits = []time.Time{begin.Add(60 * time.Second), begin.Add(120 * time.Second)}
	for second, want := range map[int]string{0: "must", 31: "must", 50: "must", 59: "may", 61: "may", 80: "must", 91: "none", 119: "may", 151: "must"} {
		due := begin.Add(time.Duration(second) * time.Second)
		must, there := l.expected(due)[soakID{soakEditedJob, soakEditedJob, due.Unix()}]
		got := "none"
		if there {
			got = map[bool]string{true: "must", false: "may"}[must]
		}
		if got != want {
			t.Errorf("second %d: %s, want %s", second, got, want)
		}
	}
}

// TestSlope: the heap's growth is found among odd samples.
func TestSlope(t *testing.T) {
	t.Parallel()
	var points []soakPoint
	begin := time.Unix(0, 0)
	for i := range 60 {
		p := soakPoint{at: begin.Add(time.Duration(i) * time.Minute)}
		p.Heap = 10<<20 + int64(i)<<20/60
		if i%7 == 0 {
			p.Heap += 5 << 20
		}
		points = append(points, p)
	}
	if s := slope(points); s < 0.9 || s > 1.1 {
		t.Errorf("%.2f MB an hour, want 1", s)
	}
	if s := slope(points[:1]); s != 0 {
		t.Errorf("one sample has the slope %.2f", s)
	}
}

// A soak whose context ends takes its processes and files with it.
func TestSoakEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	s := &soak{length: time.Hour, churn: time.Minute, calm: time.Second, left: map[int]bool{}, log: &bytes.Buffer{}}
	if _, err := s.run(ctx, storeurl.URL{}); err == nil {
		t.Error("it ended in order")
	}
}
