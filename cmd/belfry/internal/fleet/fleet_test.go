package fleet

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
	"github.com/belfry-go/belfry/internal/procs"
	"github.com/belfry-go/belfry/jobs"
)

// TestMain lets the test binary be a replica: "fleet NAME".
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "fleet" {
		ctx, parent := procs.Attach(context.Background(), os.Stdin, os.Stdout)
		if err := Replica(ctx, parent, declare); err != nil {
			os.Stderr.WriteString(err.Error() + "\n")
			os.Exit(4)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

// declare makes a job of each second, whose handler the plan may ask to stay until it is told to end, or the error that it asks for.
func declare(_ Spec, _ *storeurl.Client, plan []byte, report func(Event)) ([]jobs.Job, error) {
	if string(plan) == `"fail"` {
		return nil, errors.New("asked to fail")
	}
	return []jobs.Job{{Name: "tick", Schedule: jobs.Every(time.Second), Timeout: time.Hour, Run: func(ctx context.Context, o jobs.Occurrence) error {
		report(Event{Kind: Started, Job: o.Job, Due: o.Due, At: time.Now()})
		if string(plan) == `"stay"` {
			<-ctx.Done()
		}
		return ctx.Err()
	}}}, nil
}

func newFleet(t *testing.T) *Fleet {
	t.Helper()
	dir := t.TempDir()
	return New(dir, Spec{Namespace: "test", Store: "sqlite:" + filepath.Join(dir, "belfry.db"), Concurrency: 2, Timing: Brisk(3)}, "fleet")
}

// TestLife takes real replicas through all that can happen to one: killed, started again, let go.
func TestLife(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	await := func(done func() bool) {
		t.Helper()
		if err := f.Await(t.Context(), func(Event) {}, done); err != nil {
			t.Fatal(err)
		}
	}
	agree := func(names ...string) {
		t.Helper()
		await(func() bool { return slices.Equal(f.Agreed(), names) })
	}
	start := func(name string) int {
		t.Helper()
		pid, err := f.Start(name)
		if err != nil {
			t.Fatal(err)
		}
		await(f.Joined)
		return pid
	}
	defer func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	}()
	pid := start("a")
	start("b")
	if f.Agreed() != nil {
		t.Error("replicas without a plan own keys")
	}
	if err := f.Go("run"); err != nil {
		t.Fatal(err)
	}
	agree("a", "b")
	var started, memory Event
	if err := f.Await(t.Context(), func(e Event) {
		switch e.Kind {
		case Started:
			started = e
		case Memory:
			memory = e
		}
	}, func() bool { return started.Pid != 0 && memory.Bytes > 1<<20 }); err != nil {
		t.Fatal(err)
	}
	if started.Job != "tick" || started.At.Before(started.Due.Add(-time.Second)) || f.Pid(started.Replica) != started.Pid {
		t.Errorf("started: %+v", started)
	}
	if killed := f.Kill("a"); killed != pid || f.Pid("a") != 0 {
		t.Errorf("killed process %d, want %d; there is %d", killed, pid, f.Pid("a"))
	}
	agree("b")
	if again := start("a"); again == pid {
		t.Error("the new process is the old one")
	}
	agree("a", "b")
	f.Release("b")
	agree("a")
}

// TestHurry closes a fleet whose handler would stay for the whole drain of an hour.
func TestHurry(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	f.base.Timing.Drain = time.Hour
	hurry := make(chan struct{})
	f.Hurry = hurry
	if _, err := f.Start("a"); err != nil {
		t.Fatal(err)
	}
	if err := f.Go("stay"); err != nil {
		t.Fatal(err)
	}
	started := false
	if err := f.Await(t.Context(), func(e Event) { started = started || e.Kind == Started }, func() bool { return started }); err != nil {
		t.Fatal(err)
	}
	close(hurry)
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestDeathIsTold(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	defer f.Close()
	if _, err := f.Start("a"); err != nil {
		t.Fatal(err)
	}
	if err := f.Go("fail"); err != nil {
		t.Fatal(err)
	}
	err := f.Await(t.Context(), func(Event) {}, func() bool { return false })
	for _, part := range []string{`replica "a"`, "ended by itself: exit status 4", "asked to fail"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
	if live := f.Live(); len(live) > 0 {
		t.Errorf("%q live", live)
	}
}

// TestCloseTellsWhy is of a replica that has failed, and whose end nobody has read yet.
func TestCloseTellsWhy(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	if _, err := f.Start("a"); err != nil {
		t.Fatal(err)
	}
	if err := f.Go("fail"); err != nil {
		t.Fatal(err)
	}
	<-f.live["a"].child.Done()
	err := f.Close()
	for _, part := range []string{`replica "a"`, "exit status 4", "asked to fail"} {
		if err == nil || !strings.Contains(err.Error(), part) {
			t.Errorf("%v does not say %q", err, part)
		}
	}
}

// TestFewSeeds: membership takes a bounded list, and calls all that are on it.
func TestFewSeeds(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for i := range 5 {
		f.live[string(rune('a'+i))] = &replica{addr: "somewhere"}
	}
	f.live["new"] = &replica{}
	if s := f.seeds(); len(s) != 3 || slices.Contains(s, "") {
		t.Errorf("got %q, want three addresses", s)
	}
}

func TestCloseBeforeGo(t *testing.T) {
	t.Parallel()
	f := newFleet(t)
	for _, name := range []string{"a", "b"} {
		if _, err := f.Start(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Await(t.Context(), func(Event) {}, f.Joined); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}

func TestNoFolder(t *testing.T) {
	t.Parallel()
	f := New(filepath.Join(t.TempDir(), "missing"), Spec{}, "fleet")
	defer f.Close()
	if _, err := f.Start("a"); err == nil || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
