package jobs

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
)

// Progress reaches whoever runs the handler, from any goroutine and any context below; outside a run it does nothing.
func TestProgress(t *testing.T) {
	t.Parallel()
	Progress(t.Context(), "nobody listens")
	var mu sync.Mutex
	var notes []string
	ctx := WithProgress(t.Context(), func(note string) {
		mu.Lock()
		defer mu.Unlock()
		notes = append(notes, note)
	})
	below, cancel := context.WithCancel(ctx)
	cancel() // a context that has ended tells all the same
	var all sync.WaitGroup
	for _, note := range []string{"a", "b", "c"} {
		all.Go(func() { Progress(below, note) })
	}
	all.Wait()
	Progress(WithProgress(ctx, func(string) {}), "to the nearest alone")
	slices.Sort(notes)
	if !slices.Equal(notes, []string{"a", "b", "c"}) {
		t.Errorf("%q", notes)
	}
}

func TestLogger(t *testing.T) {
	t.Parallel()
	if got := Logger(t.Context()); got != slog.Default() {
		t.Errorf("outside a run: %v", got)
	}
	var b bytes.Buffer
	ctx := WithLogger(t.Context(), slog.New(slog.NewTextHandler(&b, nil)).With("job", "renewals"))
	below, cancel := context.WithCancel(ctx)
	defer cancel()
	if Logger(below).Info("charged"); !strings.Contains(b.String(), "msg=charged job=renewals") {
		t.Errorf("%q", b.String())
	}
}
