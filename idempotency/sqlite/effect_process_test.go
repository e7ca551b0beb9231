package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// occurrenceOf is what the handler of a claimed run gets.
func occurrenceOf(f idempotency.Finish) jobs.Occurrence {
	return jobs.Occurrence{Namespace: "ns", Job: f.ID.Job, Key: f.ID.Key, Due: f.ID.Due, Attempt: 1, Fence: f.Fence}
}

// playEffect claims a run, writes its effect and waits for its death: before the commit, or after it.
func playEffect(ctx context.Context, path string, commits bool) error {
	s, err := Open(ctx, path, nil)
	if err != nil {
		return err
	}
	w, err := startWorker(ctx, s, "dying", 5*time.Second)
	if err != nil {
		return err
	}
	f, err := w.tryClaim(ctx, 1, 1)
	if err != nil || len(f) != 1 {
		return fmt.Errorf("claimed %d: %w", len(f), err)
	}
	die := func() {
		fmt.Fprintln(os.Stdout, w.session.ID, f[0].Fence)
		select {}
	}
	err = InTx(ctx, s, occurrenceOf(f[0]), func(tx *sql.Tx) error {
		err := note(ctx, tx, "of the first")
		if err == nil && !commits {
			die()
		}
		return err
	})
	if err == nil {
		die()
	}
	return err
}

// F05: the process is killed after the effect: before the commit its successor's is the only one, after it its own is.
func TestKilledAfterEffect(t *testing.T) {
	t.Parallel()
	for role, want := range map[string]string{"effect": "of the second", "effect, committed": "of the first"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			path := file(t)
			db := application(t, path)
			c := start(t, role, path)
			c.release()
			var session, fence int64
			if !c.lines.Scan() {
				t.Fatal("the child says nothing")
			}
			if _, err := fmt.Sscan(c.lines.Text(), &session, &fence); err != nil {
				t.Fatalf("the child says %q", c.lines.Text())
			}
			if err := c.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			c.all()
			s := openAt(t, path, nil, time.Now)
			w := newWorker(t, s)
			takeUp := w.batch(1, 1)
			takeUp[0].TakeUp, takeUp[0].Seen = true, fence
			var a idempotency.Answer
			tick := time.NewTicker(50 * time.Millisecond)
			defer tick.Stop()
			for ended := false; a.Verdict != idempotency.Won && !ended; <-tick.C {
				if err := s.MarkDead(t.Context(), w.session, []int64{session}); err != nil {
					t.Fatal(err)
				}
				w.nonce++
				answers, err := s.Claim(t.Context(), w.session, w.nonce, takeUp)
				if err != nil {
					t.Fatal(err)
				}
				a = answers[0]
				for r := range s.List(t.Context(), idempotency.Filter{Namespace: "ns"}) {
					ended = r.State == idempotency.Ended
				}
			}
			if a.Verdict == idempotency.Won {
				o := occurrenceOf(idempotency.Finish{ID: takeUp[0].ID, Fence: a.Fence})
				if err := InTx(t.Context(), s, o, func(tx *sql.Tx) error { return note(t.Context(), tx, "of the second") }); err != nil || a.Fence <= fence {
					t.Errorf("the successor, with fence %d after %d: %v", a.Fence, fence, err)
				}
			}
			if got := notes(t, db); !slices.Equal(got, []string{want}) {
				t.Errorf("effects %q, want one, %q", got, want)
			}
		})
	}
}
