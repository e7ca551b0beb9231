package rule

import (
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/belfry-go/belfry/idempotency"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	now     = time.Date(2026, 10, 1, 4, 0, 0, 0, time.UTC)
	claimer = Claimer{Now: now, Session: 1, Nonce: 7, Horizon: time.Hour, Tolerance: time.Second}
	ended   = Row{State: idempotency.Ended, Fence: 3, Session: 2}
	held    = Row{State: idempotency.Running, Fence: 3, Session: 2, Attempt: 1, Crashes: 1}
	idle    = Row{State: idempotency.Waiting, Fence: 3, Session: 2, Wake: now}
	later   = Row{State: idempotency.Waiting, Fence: 3, Session: 2, Wake: now.Add(time.Minute)}
	mine    = Row{State: idempotency.Running, Fence: 9, Session: 1, Nonce: 7}
	record  = &idempotency.Finish{Outcome: idempotency.Skipped}
)

// Every line of the table at idempotency.Runs, and which of two comes first where both apply.
func TestJudge(t *testing.T) {
	t.Parallel()
	insert := func(due time.Duration) idempotency.Claim {
		return idempotency.Claim{ID: idempotency.ID{Due: now.Add(due)}, Exclusive: true, OnBusy: record, OnExpired: record}
	}
	queue := insert(0)
	queue.OnQueued = record
	late := queue
	late.OnNewer = &idempotency.Finish{Outcome: idempotency.Wait, Wake: now}
	told := held
	told.Cancel = idempotency.Canceled
	takeUp := idempotency.Claim{Exclusive: true, TakeUp: true, Seen: 3}
	for name, c := range map[string]struct {
		claim   idempotency.Claim
		facts   Facts
		verdict idempotency.Verdict
		write   Write
	}{
		"won before stale":        {insert(0), Facts{Open: true, Row: &mine}, idempotency.Won, Nothing},
		"won before taken":        {insert(0), Facts{Fresh: true, Row: &mine}, idempotency.Won, Nothing},
		"stale before taken":      {insert(0), Facts{Open: true, Row: &held}, idempotency.StaleDefinition, Nothing},
		"stale before early":      {insert(time.Hour), Facts{}, idempotency.StaleDefinition, Nothing},
		"take-up won before":      {takeUp, Facts{Row: &mine}, idempotency.Won, Nothing},
		"take-up, stale":          {takeUp, Facts{Row: &held, Marked: true}, idempotency.StaleDefinition, Nothing},
		"taken before early":      {insert(time.Hour), Facts{Fresh: true, Row: &ended}, idempotency.Taken, Nothing},
		"taken before closed":     {insert(0), Facts{Fresh: true, Row: &ended}, idempotency.Taken, Nothing},
		"early before closed":     {insert(2 * time.Second), Facts{Fresh: true}, idempotency.Early, Nothing},
		"tolerated":               {insert(time.Second), Facts{Fresh: true, Open: true}, idempotency.Won, Insert},
		"expired of an open due":  {insert(-2 * time.Hour), Facts{Fresh: true, Open: true}, idempotency.Expired, RecordExpired},
		"expired before closed":   {insert(-2 * time.Hour), Facts{Fresh: true}, idempotency.Expired, Nothing},
		"as old as the horizon":   {insert(-time.Hour), Facts{Fresh: true, Open: true}, idempotency.Won, Insert},
		"closed before busy":      {insert(0), Facts{Fresh: true, Held: Older}, idempotency.Closed, Nothing},
		"busy":                    {insert(0), Facts{Fresh: true, Open: true, Held: Older}, idempotency.Busy, RecordBusy},
		"queued":                  {queue, Facts{Fresh: true, Open: true, Held: Older, Queued: true}, idempotency.Busy, RecordQueued},
		"queued, none waits":      {queue, Facts{Fresh: true, Open: true, Held: Older}, idempotency.Busy, RecordBusy},
		"newer before queued":     {late, Facts{Fresh: true, Open: true, Held: Newer, Queued: true}, idempotency.Busy, RecordNewer},
		"newer, not asked for":    {queue, Facts{Fresh: true, Open: true, Held: Newer}, idempotency.Busy, RecordBusy},
		"older, waits for newer":  {late, Facts{Fresh: true, Open: true, Held: Older}, idempotency.Busy, RecordBusy},
		"take-up, newer holds":    {takeUp, Facts{Fresh: true, Row: &idle, Held: Newer}, idempotency.Busy, Nothing},
		"free, though one waits":  {queue, Facts{Fresh: true, Open: true, Queued: true}, idempotency.Won, Insert},
		"not exclusive":           {idempotency.Claim{ID: idempotency.ID{Due: now}}, Facts{Fresh: true, Open: true, Held: Older}, idempotency.Won, Insert},
		"take-up of none":         {takeUp, Facts{Fresh: true}, idempotency.Taken, Nothing},
		"take-up of an end":       {takeUp, Facts{Fresh: true, Row: &ended}, idempotency.Taken, Nothing},
		"take-up from the living": {takeUp, Facts{Fresh: true, Row: &held}, idempotency.Taken, Nothing},
		"take-up, other fence":    {idempotency.Claim{TakeUp: true, Seen: 2}, Facts{Fresh: true, Row: &idle}, idempotency.Taken, Nothing},
		"take-up before its time": {takeUp, Facts{Fresh: true, Row: &later, Held: Older}, idempotency.Early, Nothing},
		"take-up, key held":       {takeUp, Facts{Fresh: true, Row: &idle, Held: Older}, idempotency.Busy, Nothing},
		"take-up of what waits":   {takeUp, Facts{Fresh: true, Row: &idle}, idempotency.Won, TakeUp},
		"take-up of one told":     {takeUp, Facts{Fresh: true, Row: &told, Marked: true, Held: Older}, idempotency.Taken, EndTold},
		"told, from the living":   {takeUp, Facts{Fresh: true, Row: &told}, idempotency.Taken, Nothing},
		"take-up of an orphan":    {takeUp, Facts{Fresh: true, Row: &held, Marked: true}, idempotency.Won, TakeUp},
	} {
		a, w := claimer.Judge(c.claim, c.facts)
		if a.Verdict != c.verdict || w != c.write {
			t.Errorf("%s: verdict %d, write %d; want %d and %d", name, a.Verdict, w, c.verdict, c.write)
		}
	}
}

// Only a crash raises crashes, and nothing here raises attempt.
func TestJudgeCounts(t *testing.T) {
	t.Parallel()
	for crashes, f := range map[int]Facts{
		1: {Fresh: true, Row: &held, Marked: true, BootLives: true},
		2: {Fresh: true, Row: &held, Marked: true},
	} {
		a, _ := claimer.Judge(idempotency.Claim{TakeUp: true, Seen: 3}, f)
		if a.Crashes != crashes || a.Attempt != held.Attempt {
			t.Errorf("boot lives %v: %d crashes and %d attempts, want %d and %d", f.BootLives, a.Crashes, a.Attempt, crashes, held.Attempt)
		}
	}
}

func TestCeil(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		at := time.Unix(rapid.Int64Range(-1e10, 1e10).Draw(t, "seconds"), rapid.Int64Range(0, 1e9-1).Draw(t, "nanoseconds"))
		c := Ceil(at)
		if c.Before(at) || c.Nanosecond() != 0 || c.Sub(at) >= time.Second {
			t.Fatalf("Ceil(%v) is %v", at, c)
		}
	})
}

// One key that kills its process is offered at a time, and nothing beyond the limit.
func TestRunsAdd(t *testing.T) {
	t.Parallel()
	l := Lag{Now: now, Partitions: 1, Query: idempotency.LagQuery{Ranks: [][]byte{nil, {1}}, Grace: time.Minute, Limit: 3}}
	l.Entry(idempotency.Entry{Definition: idempotency.Definition{Job: "j", Hash: "h"}}, "h")
	runs := l.Orphaned()
	add := func(job string, crashes int, ago time.Duration) bool {
		return runs.Add(idempotency.Run{ID: idempotency.ID{Job: job, Key: "k"}, Crashes: crashes}, now.Add(-ago))
	}
	add("unknown", 0, time.Hour)
	add("j", 0, time.Second) // rank 1 waits a grace
	if len(runs.List) > 0 {
		t.Errorf("%v was taken, which is not this replica's to take yet", runs.List)
	}
	add("j", 1, time.Minute)
	add("j", 4, time.Minute)
	if len(runs.List) != 1 {
		t.Errorf("%d runs with crashes were taken, want the first", len(runs.List))
	}
	if add("j", 0, time.Minute) || !add("j", 0, time.Minute) {
		t.Error("the limit of 3 was not kept")
	}
}
