package completion

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

var occurrence = jobs.Occurrence{Namespace: "ns", Job: "j", Key: "k", Due: time.Date(2026, 10, 1, 4, 0, 0, 0, time.UTC), Attempt: 2, Fence: 7}

func TestOneTransactionPerRun(t *testing.T) {
	t.Parallel()
	ctx, mark := With(t.Context(), occurrence)
	end, err := Begin(ctx, occurrence)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Begin(ctx, occurrence); !errors.Is(err, errBusy) {
		t.Errorf("a second one beside it: %v", err)
	}
	end(false)
	if mark.Committed() {
		t.Error("rolled back, and it counts as committed")
	}
	if err := Join(ctx, occurrence); err != nil {
		t.Error(err)
	}
	if end, err = Begin(ctx, occurrence); err != nil {
		t.Fatalf("after a rollback: %v", err)
	}
	end(true)
	if _, err := Begin(ctx, occurrence); !errors.Is(err, errTwice) || !mark.Committed() {
		t.Errorf("after a commit: %v, committed %v", err, mark.Committed())
	}
	if err := Join(ctx, occurrence); !errors.Is(err, errTwice) {
		t.Errorf("joining after a commit: %v", err)
	}
}

func TestMarkIsOfItsRun(t *testing.T) {
	t.Parallel()
	ctx, _ := With(t.Context(), occurrence)
	for _, change := range []func(*jobs.Occurrence){
		func(o *jobs.Occurrence) { o.Fence++ }, func(o *jobs.Occurrence) { o.Key = "l" },
		func(o *jobs.Occurrence) { o.Namespace = "other" }, func(o *jobs.Occurrence) { o.Request = "r" },
	} {
		o := occurrence
		change(&o)
		if _, err := Begin(ctx, o); !errors.Is(err, errOther) {
			t.Errorf("%+v: %v", o, err)
		}
		if err := Join(ctx, o); !errors.Is(err, errOther) {
			t.Errorf("%+v: %v", o, err)
		}
	}
	end, err := Begin(context.Background(), occurrence) // not of a handler
	if err != nil || Join(context.Background(), occurrence) != nil {
		t.Error(err)
	}
	end(true)
}

func TestOf(t *testing.T) {
	t.Parallel()
	f, err := Of(occurrence)
	if err != nil || f.Attempt != 2 || f.Fence != 7 || f.Outcome != idempotency.Done || f.ID.Key != "k" {
		t.Errorf("%+v, %v", f, err)
	}
	o := occurrence
	o.Fence = 0
	if _, err := Of(o); !errors.Is(err, errEfficiency) {
		t.Errorf("an efficiency job: %v", err)
	}
	for _, o := range []jobs.Occurrence{{}, {Namespace: "ns", Job: "j", Key: "k", Due: occurrence.Due, Fence: -1}, {Job: "j", Key: "k", Due: occurrence.Due, Fence: 7}} {
		if _, err := Of(o); err == nil {
			t.Errorf("%+v is taken for a run", o)
		}
	}
}

// Whatever became of the run, a holder that was overtaken learns that, and one that was not gets its own error back.
func TestResults(t *testing.T) {
	t.Parallel()
	failed, down := errors.New("40001"), errors.New("down")
	running, done := Row{true, idempotency.Running, 0, 7}, Row{true, idempotency.Ended, idempotency.Done, 7}
	for name, c := range map[string]struct {
		row                 Row
		asked               error
		refused, unanswered error // nil: none
	}{
		"running":        {running, nil, failed, failed},
		"done":           {done, nil, jobs.ErrOvertaken, nil},
		"failed":         {Row{true, idempotency.Ended, idempotency.Failed, 7}, nil, jobs.ErrOvertaken, jobs.ErrOvertaken},
		"waiting":        {Row{true, idempotency.Waiting, 0, 7}, nil, jobs.ErrOvertaken, jobs.ErrOvertaken},
		"taken up":       {Row{true, idempotency.Running, 0, 8}, nil, jobs.ErrOvertaken, jobs.ErrOvertaken},
		"done by others": {Row{true, idempotency.Ended, idempotency.Done, 8}, nil, jobs.ErrOvertaken, jobs.ErrOvertaken},
		"pruned":         {Row{}, nil, jobs.ErrOvertaken, jobs.ErrOvertaken},
		"not readable":   {Row{}, down, failed, failed},
	} {
		if err := Refused(occurrence, c.row, c.asked, failed); !errors.Is(err, c.refused) {
			t.Errorf("%s: refused: %v, want %v", name, err, c.refused)
		}
		if err := Unanswered(occurrence, c.row, c.asked, failed); !errors.Is(err, c.unanswered) {
			t.Errorf("%s: not answered: %v, want %v", name, err, c.unanswered)
		}
	}
	if err := Refused(occurrence, running, nil, failed); err != failed {
		t.Errorf("the handler's own conflict comes back as %v", err)
	}
}

// A handler may call from several goroutines.
func TestMarkIsSafe(t *testing.T) {
	t.Parallel()
	ctx, mark := With(t.Context(), occurrence)
	var all sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for range 16 {
		all.Go(func() {
			if end, err := Begin(ctx, occurrence); err == nil {
				mu.Lock()
				won++
				mu.Unlock()
				end(true)
			}
			_ = mark.Committed()
		})
	}
	all.Wait()
	if won != 1 {
		t.Errorf("%d of 16 began, want 1", won)
	}
}
