package jobs

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func nothing(context.Context, Occurrence) error { return nil }

func TestJobDefaults(t *testing.T) {
	t.Parallel()
	given := Job{Name: "j", Schedule: Every(time.Hour), Run: nothing, Payload: []byte("p")}
	j := given.WithDefaults()
	if want := (Retry{Attempts: 3, First: time.Second, Max: 5 * time.Minute}); j.Timeout != time.Hour || j.Retry != want {
		t.Fatalf("%+v", j)
	}
	j.Payload[0] = 'x'
	if string(given.Payload) != "p" || given.Timeout != 0 || given.Retry != (Retry{}) {
		t.Fatalf("the caller's job changed: %+v", given)
	}
	off := Job{Timeout: -1, Retry: Retry{Attempts: -1}}.WithDefaults()
	if off.Timeout >= 0 || off.Retry.Attempts != 1 {
		t.Fatalf("%+v", off)
	}
	if again := off.WithDefaults(); again.Timeout != off.Timeout || again.Retry != off.Retry {
		t.Fatalf("twice: %+v", again)
	}
	if long := (Retry{First: time.Hour}).WithDefaults(); long.Max != time.Hour {
		t.Fatalf("Max %v is below First", long.Max)
	}
}

func TestJobValidateNamesEachProblem(t *testing.T) {
	t.Parallel()
	good := Job{Name: "renewals", Schedule: Cron("0 2 * * *"), Run: nothing, Keys: KeyList("a")}
	if err := errors.Join(good.Validate(), good.WithDefaults().Validate()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		spoil func(*Job)
		says  string
	}{
		{func(j *Job) { j.Name = "" }, "name is empty"},
		{func(j *Job) { j.Name = "a/b" }, `byte "/" is not allowed`},
		{func(j *Job) { j.Name = strings.Repeat("n", 65) }, "65 bytes are too long"},
		{func(j *Job) { j.Schedule = Schedule{} }, "set Schedule"},
		{func(j *Job) { j.Schedule = Cron("0 0 30 2 *") }, "never fires"},
		{func(j *Job) { j.Run = nil }, "set Run"},
		{func(j *Job) { j.Keys = KeyFunc(nil) }, "nil KeyFunc"},
		{func(j *Job) { j.Keys = AllKeys(nil) }, "nil function"},
		{func(j *Job) { j.Keys = KeyList("") }, "key is empty"},
		{func(j *Job) { j.Keys = KeyList(strings.Repeat("k", 256)) }, "256 bytes are too long"},
		{func(j *Job) { j.Guarantee = 7 }, "guarantee 7"},
		{func(j *Job) { j.Missed = Missed{Max: -1, MaxAge: -1} }, "Missed.Max is -1; set it from 1 to 10000"},
		{func(j *Job) { j.Missed = Missed{Max: -1, MaxAge: -1} }, "Missed.MaxAge is -1ns; set it above 0"},
		{func(j *Job) { j.Spread = -1 }, "spread is -1ns; set it from 0 (no delay) to 24h"},
		{func(j *Job) { j.Spread = 24*time.Hour + 1 }, "spread is 24h0m0.000000001s; set it from 0 (no delay) to 24h"},
		{func(j *Job) { j.Retry.First = -1 }, "Attempts to -1"},
		{func(j *Job) { j.Retry.Max = -1 }, "leave Max 0"},
		{func(j *Job) { j.Retry.Max = time.Millisecond }, "shorter than the first"},
		{func(j *Job) { j.Revision = -1 }, "revision -1"},
	} {
		j := good
		c.spoil(&j)
		err := j.Validate()
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v; want it to say %q", err, c.says)
			continue
		}
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if !strings.HasPrefix(line, fmt.Sprintf("jobs: job %q: ", j.Name)) {
				t.Errorf("%q does not name the job", line)
			}
		}
	}
	err := Job{Revision: -1}.Validate()
	if n := strings.Count(err.Error(), `jobs: job "": `); n != 4 {
		t.Errorf("%d problems, want name, Schedule, Run and revision: %v", n, err)
	}
}

func TestDefinitionIsOfTheDues(t *testing.T) {
	t.Parallel()
	j := Job{Name: "j", Schedule: Cron("0 2 * * *"), Run: nothing}
	if got := j.Definition(); got != "492818226bc3b9e6" {
		t.Errorf("%s: two versions of a program would not know each other", got)
	}
	same := j
	same.Name, same.Payload, same.Timeout, same.Revision, same.Schedule = "other", []byte("p"), 1, 9, Cron("0  2 * * *")
	if same.Definition() != j.Definition() {
		t.Error("what does not move a due counts")
	}
	later, keyed := j, j
	later.Schedule, keyed.Keys = Cron("0 3 * * *"), KeyList()
	if later.Definition() == j.Definition() || keyed.Definition() == j.Definition() {
		t.Error("what decides the dues does not count")
	}
	led, other := j, j
	led.Placement, other.Placement = Leader, EveryReplica
	if got := led.Definition(); got != "5b20091050bc1387" || led.WithDefaults().Definition() != got {
		t.Errorf("of the leader's: %s: two versions of a program would not know each other", got)
	}
	if other.Definition() != j.Definition() {
		t.Error("a placement that is not the leader's counts")
	}
}

func TestRetryDelay(t *testing.T) {
	t.Parallel()
	almost := 1 - 1e-9
	for _, c := range []struct {
		r       Retry
		attempt int
		limit   time.Duration
	}{
		{Retry{}, 1, time.Second}, {Retry{}, 2, 2 * time.Second}, {Retry{}, 9, 256 * time.Second},
		{Retry{}, 10, 5 * time.Minute}, {Retry{}, 1 << 40, 5 * time.Minute}, {Retry{}, 0, time.Second},
		{Retry{First: time.Minute, Max: time.Minute}, 5, time.Minute},
		{Retry{First: 3, Max: 1<<63 - 1}, 100, 1<<63 - 1},
	} {
		if got := c.r.Delay(c.attempt, almost); got > c.limit || float64(got) < 0.999*float64(c.limit)-1 {
			t.Errorf("%+v attempt %d: %v, want just below %v", c.r, c.attempt, got, c.limit)
		}
		if got := c.r.Delay(c.attempt, 0); got != 0 {
			t.Errorf("%+v attempt %d: %v without jitter", c.r, c.attempt, got)
		}
	}
}

// A second implementation, by powers in floating point.
func TestRetryDelayBounds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		first := time.Duration(rapid.Int64Range(1, int64(time.Hour)).Draw(t, "first"))
		r := Retry{First: first, Max: first + time.Duration(rapid.Int64Range(0, int64(100*time.Hour)).Draw(t, "more"))}
		attempt := rapid.IntRange(1, 70).Draw(t, "attempt")
		u := rapid.Float64Range(0, almostOne).Draw(t, "u")
		limit := float64(first)
		for range attempt - 1 {
			limit *= 2
		}
		limit = min(limit, float64(r.Max))
		if got := float64(r.Delay(attempt, u)); got < u*limit*(1-1e-9)-1 || got > u*limit*(1+1e-9)+1 || got > float64(r.Max) {
			t.Fatalf("%+v attempt %d u %v: %v, want about %v", r, attempt, u, time.Duration(got), time.Duration(u*limit))
		}
	})
}

const almostOne = 1 - 1e-12

func TestPermanent(t *testing.T) {
	t.Parallel()
	declined := errors.New("card declined")
	err := fmt.Errorf("charge: %w", Permanent(declined))
	if !IsPermanent(err) || !errors.Is(err, declined) || err.Error() != "charge: card declined" {
		t.Fatalf("%v", err)
	}
	if IsPermanent(declined) || IsPermanent(nil) || Permanent(nil) != nil {
		t.Fatal("permanent without having been made so")
	}
}
