package electortest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// record keeps what a trial finds, where the test is that it finds something.
type record struct {
	*testing.T
	mu    sync.Mutex
	found []string
}

func (r *record) Errorf(format string, a ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.found = append(r.found, fmt.Sprintf(format, a...))
}

func (r *record) Error(a ...any) { r.Errorf("%s", fmt.Sprint(a...)) }

func (r *record) Fatalf(format string, a ...any) {
	r.Errorf(format, a...)
	runtime.Goexit()
}

// leadFunc is an Elector.
type leadFunc func(ctx context.Context, lead func(context.Context, int64) error) error

func (f leadFunc) Lead(ctx context.Context, lead func(context.Context, int64) error) error {
	return f(ctx, lead)
}

// broken is an election whose electors do one thing wrong, each by way of one that is right.
type broken struct {
	*queue
	breaks func(Elector) leadFunc
}

func (b broken) Elector(name string) Elector { return b.breaks(b.queue.Elector(name)) }

// deaf is an election that does not learn that a replica is gone.
type deaf struct{ *queue }

func (deaf) Kill(string) {}

type leader = func(context.Context, int64) error

// TestBrokenElectorIsCaught: each way to break the contract is found by Run, and is called what it is.
func TestBrokenElectorIsCaught(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		breaks func(Elector) leadFunc
		want   string
	}{
		{"terms do not rise", constantTerm, "term 1 is not above 1"},
		{"terms begin with 0", zeroTerm, "term 0, want one above 0"},
		{"two lead", everybody(), "its context has not ended"},
		{"calls overlap", overlapping, "while that for term"},
		{"the context is Lead's, and outlives the term", wrongContext, "has not ended within"},
		{"the context ends for no reason", causeless, "want one that says what happened"},
		{"a Lead that is over calls", hasty, "want nil and no call"},
		{"lead is called behind Lead", behind, "lead is called after Lead has returned"},
		{"Lead fails when it is over", failing, "when its context ended, want nil"},
		{"Lead does not wait for lead", impatient, "Lead has returned while lead runs"},
		{"Lead ends with lead", giveUp, "nobody is elected"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			catch(t, c.want, func(t *testing.T) Election { return broken{newQueue(t).(*queue), c.breaks} })
		})
	}
	t.Run("the context never ends", func(t *testing.T) {
		t.Parallel()
		catch(t, "Lead has not returned", func(t *testing.T) Election {
			ctx, end := context.WithCancel(context.Background())
			t.Cleanup(end)
			return broken{newQueue(t).(*queue), func(e Elector) leadFunc { return endless(ctx, e) }}
		})
	})
	t.Run("who is killed leads on", func(t *testing.T) {
		t.Parallel()
		catch(t, "nobody is elected", func(t *testing.T) Election { return deaf{newQueue(t).(*queue)} })
	})
}

// catch has each law tried, and wants what is found.
func catch(t *testing.T, want string, open func(*testing.T) Election) {
	r := &record{}
	for _, l := range laws {
		synctest.Test(t, func(t *testing.T) {
			r.T = t
			t.Cleanup(func() { <-time.After(time.Second) }) // at last: what an elector does late is done by then
			done := make(chan struct{})
			go func() { // which a Fatalf ends, and not the test
				defer close(done)
				l.holds(newTrial(r, open(t), 20))
			}()
			<-done
		})
	}
	if !strings.Contains(strings.Join(r.found, "\n"), want) {
		t.Errorf("Run finds %q, want %q", r.found, want)
	}
}

func constantTerm(e Elector) leadFunc {
	return func(ctx context.Context, lead leader) error {
		return e.Lead(ctx, func(ctx context.Context, _ int64) error { return lead(ctx, 1) })
	}
}

func zeroTerm(e Elector) leadFunc {
	return func(ctx context.Context, lead leader) error {
		return e.Lead(ctx, func(ctx context.Context, term int64) error { return lead(ctx, term-1) })
	}
}

// everybody leads at once, in a term that nobody else has.
func everybody() func(Elector) leadFunc {
	var term atomic.Int64
	return func(Elector) leadFunc {
		return func(ctx context.Context, lead leader) error {
			for ctx.Err() == nil {
				_ = lead(ctx, term.Add(1))
			}
			return nil
		}
	}
}

// overlapping calls lead again when the context has ended, and does not wait for the call before.
func overlapping(e Elector) leadFunc {
	return func(ctx context.Context, lead leader) error {
		return e.Lead(ctx, func(ctx context.Context, term int64) error {
			done := make(chan error, 1)
			go func() { done <- lead(ctx, term) }()
			select {
			case err := <-done:
				return err
			case <-ctx.Done():
			}
			_ = lead(ctx, term+1)
			return <-done
		})
	}
}

func wrongContext(e Elector) leadFunc {
	return func(ctx context.Context, lead leader) error {
		return e.Lead(ctx, func(_ context.Context, term int64) error { return lead(ctx, term) })
	}
}

// endless gives lead a context that ends with the test.
func endless(ctx context.Context, e Elector) leadFunc {
	return func(own context.Context, lead leader) error {
		return e.Lead(own, func(_ context.Context, term int64) error { return lead(ctx, term) })
	}
}

func causeless(e Elector) leadFunc {
	return func(ctx context.Context, lead leader) error {
		return e.Lead(ctx, func(ctx context.Context, term int64) error {
			own, end := context.WithCancel(context.WithoutCancel(ctx))
			defer end()
			defer context.AfterFunc(ctx, end)()
			return lead(own, term)
		})
	}
}

// hasty does not ask first whether it is over.
func hasty(e Elector) leadFunc {
	return func(ctx context.Context, lead leader) error {
		if ctx.Err() != nil {
			return lead(ctx, 1)
		}
		return e.Lead(ctx, lead)
	}
}

// behind calls lead once more a moment after it has returned.
func behind(e Elector) leadFunc {
	return func(ctx context.Context, lead leader) error {
		defer func() {
			go func() {
				<-time.After(time.Millisecond)
				_ = lead(ctx, 1)
			}()
		}()
		return e.Lead(ctx, lead)
	}
}

func failing(e Elector) leadFunc {
	return func(ctx context.Context, lead leader) error {
		return errors.Join(e.Lead(ctx, lead), ctx.Err())
	}
}

func impatient(e Elector) leadFunc {
	return func(ctx context.Context, lead leader) error {
		done := make(chan error, 1)
		go func() { done <- e.Lead(ctx, lead) }()
		select {
		case err := <-done:
			return err
		case <-ctx.Done():
			return nil
		}
	}
}

// giveUp stands no more once a lead has failed.
func giveUp(e Elector) leadFunc {
	return func(ctx context.Context, lead leader) error {
		ctx, end := context.WithCancel(ctx)
		defer end()
		return e.Lead(ctx, func(ctx context.Context, term int64) error {
			err := lead(ctx, term)
			if errors.Is(err, errLead) {
				end()
			}
			return err
		})
	}
}
