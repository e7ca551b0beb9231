package scheduler

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"

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
