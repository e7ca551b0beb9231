package membership

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// hinted counts the tokens that are there now.
func hinted(c *Cluster) bool {
	select {
	case <-c.Hints():
		return true
	default:
		return false
	}
}

// TestHint reaches the one member that it is for, within what a connection takes, and many are one.
func TestHint(t *testing.T) {
	t.Parallel()
	bubble(t, 3, func(f *fleet) {
		all := f.serve(3, Fast)
		begun := time.Now()
		if err := all[0].Hint(f.Context(), all[1].Self()); err != nil {
			f.Fatal(err)
		}
		<-all[1].Hints()
		took := time.Since(begun)
		if took > 50*time.Millisecond {
			f.Errorf("seed %d: took %s of fake time", f.seed, took)
		}
		f.Logf("seed %d: a hint took %s", f.seed, took)
		for range 100 {
			if err := all[0].Hint(f.Context(), all[1].Self()); err != nil {
				f.Fatal(err)
			}
		}
		time.Sleep(time.Second)
		if !hinted(all[1]) || hinted(all[1]) || hinted(all[2]) || hinted(all[0]) {
			f.Errorf("seed %d: a hundred hints are not one, or somebody else got them", f.seed)
		}
		if err := all[0].Hint(f.Context(), all[0].Self()); err != nil || !hinted(all[0]) {
			f.Errorf("to oneself: %v", err)
		}
	})
}

// TestHintFails names the member, and never waits longer than its context.
func TestHintFails(t *testing.T) {
	t.Parallel()
	bubble(t, 1, func(f *fleet) {
		all := f.serve(2, Fast)
		if err := all[0].Hint(f.Context(), "nobody"); err == nil || !strings.Contains(err.Error(), `"nobody"`) {
			f.Errorf("got %v", err)
		}
		f.net.Cut(all[0].Addr(), all[1].Addr())
		ctx, cancel := context.WithTimeout(f.Context(), 100*time.Millisecond)
		defer cancel()
		begun := time.Now()
		err := all[0].Hint(ctx, all[1].Self())
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(begun) > 200*time.Millisecond {
			f.Errorf("got %v after %s", err, time.Since(begun))
		}
		f.net.Heal()
		f.close(all[0])
		for _, c := range all {
			if err := all[0].Hint(f.Context(), c.Self()); err == nil || !strings.Contains(err.Error(), "closed") {
				f.Errorf("got %v", err)
			}
		}
	})
}
