package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/fleet"
)

// replicas is how many there are on a store: the most that Brisk gives its shortest lease to.
const replicas = 3

// withFleet runs use on a fleet of its own, on a new file, whose processes are started with the arguments "bench",
// child and a name. When it returns, the processes have ended and the files are gone.
func withFleet(ctx context.Context, s fleet.Spec, child string, use func(*fleet.Fleet) error) (err error) {
	dir, err := os.MkdirTemp("", "belfry-bench-")
	if err != nil {
		return fmt.Errorf("bench: temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s.Namespace, s.Store = "bench", "sqlite:"+filepath.Join(dir, "belfry.db")
	f := fleet.New(dir, s, "bench", child)
	defer func() {
		if end := f.Close(); ctx.Err() == nil {
			err = errors.Join(err, end)
		}
	}()
	return use(f)
}

// start starts the replicas, one after the other, and tells them the plan once all gossip.
func start(ctx context.Context, f *fleet.Fleet, plan any) error {
	for i := range replicas {
		if _, err := f.Start(nth("replica", i)); err != nil {
			return err
		}
		if err := f.Await(ctx, ignore, f.Joined); err != nil {
			return err
		}
	}
	return f.Go(plan)
}

// nth is the name of the replica or member that is started as the i-th, from 0.
func nth(what string, i int) string { return fmt.Sprintf("%s-%d", what, i+1) }

// agree waits until all replicas live and see each other as owners.
func agree(ctx context.Context, f *fleet.Fleet) error {
	return f.Await(ctx, ignore, func() bool { return len(f.Agreed()) == replicas })
}

// wait hands events to see while d goes by.
func wait(ctx context.Context, f *fleet.Fleet, d time.Duration, see func(fleet.Event)) error {
	ctx, cancel := context.WithTimeoutCause(ctx, d, errWaited)
	defer cancel()
	if err := f.Await(ctx, see, func() bool { return false }); err != errWaited {
		return err
	}
	return nil
}

var errWaited = errors.New("bench: waited")

func ignore(fleet.Event) {}
