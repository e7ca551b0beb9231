package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/sqlite"
)

// ill is what is wrong with an occurrence.
type ill int

const (
	sound ill = iota
	panics
	hangs // until its context ends
	fails
)

// fate is what an occurrence does. It follows from its name, so that the record can be held to it.
type fate struct {
	ill      ill
	recovers bool // at the second attempt
	deaf     bool // where it hangs: it does not return when its context ends
}

func fateOf(key string, due time.Time) fate {
	h := xxhash.Sum64String(fmt.Sprintf("%s@%d", key, due.Unix()))
	f := fate{recovers: h>>32&1 == 1, deaf: h>>33&7 == 0}
	switch n := h % 10000; {
	case n < 500:
		f.ill = panics
	case n < 1000:
		f.ill = hangs
	case n < 1500:
		f.ill = fails
	}
	return f
}

// end is how the record must say that it ended.
func (f fate) end() (outcome idempotency.Outcome, reason string, attempts int) {
	switch {
	case f.ill == sound:
		return idempotency.Done, "", 1
	case f.recovers:
		return idempotency.Done, "", 2
	}
	return idempotency.Failed, map[ill]string{panics: "panic", hangs: "timeout", fails: "exhausted"}[f.ill], 2
}

// over reports whether no run waits or is at work, and all dues are closed.
func (w *soakWork) over(ctx context.Context, store *sqlite.Store) (bool, error) {
	ended := 0
	for r, err := range store.List(ctx, idempotency.Filter{Namespace: "soak", Job: soakJob}) {
		if err != nil {
			return false, err
		}
		if r.State == idempotency.Ended {
			ended++
		}
	}
	return ended >= w.keys*w.dues, nil
}

// account holds the record to what was to happen: each occurrence has one row, which ended as it had to, after as many
// attempts as were started.
func (w *soakWork) account(ctx context.Context, store *sqlite.Store, r *SoakReport) error {
	index := make(map[string]int32, len(w.names))
	for i, name := range w.names {
		index[name] = int32(i)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	seen := 0
	for row, err := range store.List(ctx, idempotency.Filter{Namespace: "soak", Job: soakJob}) {
		if err != nil {
			return fmt.Errorf("bench: reading the record: %w", err)
		}
		seen++
		r.count(row)
		outcome, reason, attempts := fateOf(row.ID.Key, row.ID.Due).end()
		starts := w.starts[soakRun{index[row.ID.Key], int32(row.ID.Due.Sub(w.first) / w.every)}]
		if row.State != idempotency.Ended || row.Outcome != outcome || row.Reason != reason || row.Attempt != attempts || starts != attempts {
			r.wrong(fmt.Sprintf("%s at %s: %s %s %q after %d attempts, %d starts; want %s %q after %d", row.ID.Key, row.ID.Due.Format(time.RFC3339),
				row.State, row.Outcome, row.Reason, row.Attempt, starts, outcome, reason, attempts))
		}
	}
	r.Missing = r.Occurrences - seen
	r.Late = summarise(w.late)
	return nil
}
