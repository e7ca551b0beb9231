package scheduler

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/core"
	"github.com/belfry-go/belfry/jobs"
)

// F68: an observer that hangs makes nobody wait, also once there is no room left for what it is to be told; how much was left out
// is logged when it goes on.
func TestHungObserver(t *testing.T) {
	t.Parallel()
	const told = maxObserved + 100
	block, called := make(chan struct{}), make(chan struct{}, told)
	var log bytes.Buffer
	o := newObserver(t.Context(), []Hooks{{Started: func(context.Context, jobs.Occurrence) {
		called <- struct{}{}
		<-block
	}}}, slog.New(slog.NewTextHandler(&log, nil)))
	o.started(jobs.Occurrence{})
	<-called // from now on it hangs
	for range told - 1 {
		o.started(jobs.Occurrence{})
	}
	if n := o.dropped.Load(); n != told-1-maxObserved {
		t.Errorf("%d were left out of %d, with room for %d", n, told, maxObserved)
	}
	close(block)
	o.close()
	if n := len(called) + 1; n != maxObserved+1 {
		t.Errorf("%d were told in the end", n)
	}
	if !strings.Contains(log.String(), "dropped=99") {
		t.Errorf("the log says: %q", log.String())
	}
}

// What ended without its handler has no error to tell, and only what a person asked for has a request.
func TestLogFailed(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	r := &runner{log: slog.New(slog.NewTextHandler(&log, nil))}
	o := jobs.Occurrence{Job: "j", Key: "k", Due: time.Date(2026, 10, 1, 4, 0, 0, 0, time.UTC), Fence: 7, Attempt: 1}
	a := core.Finished{Occurrence: o, Outcome: idempotency.Failed, Reason: "abandoned"}
	r.logFinished(a)
	a.Reason, a.Err, a.Request = "permanent", errors.New("declined"), "k42"
	r.logFinished(a)
	lines := strings.Split(log.String(), "\n")
	for i, want := range []string{
		"job=j key=k due=2026-10-01T04:00:00.000Z fence=7 attempt=1 reason=abandoned",
		"job=j key=k due=2026-10-01T04:00:00.000Z request=k42 fence=7 attempt=1 reason=permanent err=declined",
	} {
		if !strings.HasSuffix(lines[i], ` msg="run failed for good" `+want) {
			t.Errorf("got %s, want its end %s", lines[i], want)
		}
	}
}
