package ordeal

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/faultproxy"
)

// T13 on a bad network: connections are reset and torn in the middle of messages, replies are lost, all is delayed.
func TestFaultyNetwork(t *testing.T) {
	each(t, onServer, func(t *testing.T, s *site) {
		p := s.through(t)
		a, b := s.open(t), s.open(t)
		oneIn := func(n int) faultproxy.Match { return func([]byte) bool { return rand.IntN(n) == 0 } }
		// Not each commit's answer is lost: no session could be opened then, and the trouble that comes with the questions
		// would never be over.
		someCommits := func(chunk []byte) bool { return s.commit(chunk) && rand.IntN(3) > 0 }
		faults := []func(on bool){
			func(bool) { p.Reset() },
			func(on bool) { p.ToClient.CutAfter(bytes(on, 5000), faultproxy.Reset) },
			func(on bool) { p.ToServer.CutAfter(bytes(on, 20_000), faultproxy.Close) },
			func(on bool) { p.ToClient.Lose(when(on, oneIn(30)), faultproxy.Reset) },
			func(on bool) { p.ToServer.Lose(when(on, oneIn(30)), faultproxy.Reset) },
			func(on bool) { s.lose(p, when(on, someCommits), faultproxy.Reset) },
			func(on bool) { p.ToClient.Lose(when(on, oneIn(100)), faultproxy.Hang) },
			func(on bool) {
				var d func() time.Duration
				if on {
					d = func() time.Duration { return time.Duration(rand.IntN(20)) * time.Millisecond }
				}
				p.ToServer.Delay(d)
				p.ToClient.Delay(d)
			},
		}
		l := life{seed: seed(t), until: *ops, deadline: time.Second, times: 2 * len(faults)}
		l.trouble = func(n int) {
			faults[n/2%len(faults)](n%2 == 0)
		}
		l.live(t, a, b)
		t.Logf("what the network did: %+v", p.Counts())
	})
}

func bytes(on bool, n int64) int64 {
	if on {
		return n
	}
	return -1
}

func when(on bool, m faultproxy.Match) faultproxy.Match {
	if on {
		return m
	}
	return nil
}

// F34, T6: the server commits, and its reply is lost. A driver may find out by itself; else the caller repeats the call
// as it was. A claim that is repeated is answered what was won, and a finish that it is no news.
func TestLostCommitReplies(t *testing.T) {
	each(t, onServer, func(t *testing.T, s *site) {
		p := s.through(t)
		h := s.open(t)
		r := open(t, h, "a")
		due := openDue(t, h)
		fences := make(map[string]int64)
		errs := 0
		for i := range *commits {
			end := faultproxy.Reset
			if i%30 == 29 {
				end = faultproxy.Hang
			}
			c := claims(due, fmt.Sprintf("%d-", i), 3)
			r.nonce++
			errs += s.loseOne(t, p, end, func(ctx context.Context) error {
				_, err := h.Claim(ctx, r.session, r.nonce, c)
				return err
			})
			r.nonce-- // the same again
			answers := r.wins(c)
			f := finishes(c, answers)
			errs += s.loseOne(t, p, end, func(ctx context.Context) error { _, err := h.Finish(ctx, namespace, f); return err })
			again, err := h.Finish(t.Context(), namespace, f)
			if err != nil {
				t.Fatal(err)
			}
			for j := range c {
				fences[c[j].ID.Key] = answers[j].Fence
				if again[j] != idempotency.Already {
					t.Fatalf("finish %d was committed; repeated it is answered %d, want already", i, again[j])
				}
			}
		}
		lost, double := reckon(t, list(t, h), fences)
		if s.lost(p.Counts()) != 2**commits {
			t.Errorf("%d replies were lost of %d", s.lost(p.Counts()), 2**commits)
		}
		t.Logf("T6: %s: %d replies to commits lost, %d of them errors to the caller; %d claims, %d lost, %d double",
			s.client, s.lost(p.Counts()), errs, len(fences), lost, double)
	})
}

// loseOne makes a call of which one commit's reply is lost, and returns 1 where its caller gets an error: from the reset,
// or, where the connection hangs, by giving up once the reply is lost.
func (s *site) loseOne(t *testing.T, p *faultproxy.Proxy, end faultproxy.End, call func(context.Context) error) (errs int) {
	t.Helper()
	var lost atomic.Bool
	s.lose(p, func(chunk []byte) bool { return s.commit(chunk) && lost.CompareAndSwap(false, true) }, end)
	defer s.lose(p, nil, end)
	before := s.lost(p.Counts())
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	answered := make(chan error, 1)
	go func() { answered <- call(ctx) }()
	if end == faultproxy.Hang {
		tick := time.NewTicker(time.Millisecond)
		defer tick.Stop()
		for ctx.Err() == nil && s.lost(p.Counts()) == before {
			<-tick.C
		}
		cancel()
	}
	if err := <-answered; err != nil {
		errs = 1
	}
	if s.lost(p.Counts()) != before+1 {
		t.Fatalf("%d replies to commits were lost, want one", s.lost(p.Counts())-before)
	}
	return errs
}

// F35: the server is silent, and connections stay open. Each call ends with its context, and all work once the network
// does.
func TestHalfOpen(t *testing.T) {
	const deadline = 500 * time.Millisecond
	each(t, onServer, func(t *testing.T, s *site) {
		p := s.through(t)
		h := s.open(t)
		r := open(t, h, "a")
		due := openDue(t, h)
		r.works(due, "before")
		swallow := func(on bool) {
			p.ToServer.Swallow(on)
			p.ToClient.Swallow(on)
		}
		swallow(true)
		var wg sync.WaitGroup
		calls := r.calls(due)
		over := make([]time.Duration, len(calls))
		for i, c := range calls {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(t.Context(), deadline)
				defer cancel()
				begun := time.Now()
				err := c.make(ctx)
				over[i] = time.Since(begun) - deadline
				if !errors.Is(err, context.DeadlineExceeded) || over[i] > tooLate {
					t.Errorf("%s: %v, %v after its deadline; want it to end then", c.name, err, over[i])
				}
			})
		}
		wg.Wait()
		swallow(false)
		healed := time.Now()
		works(t, h)
		again := time.Since(healed)
		r.works(due, "after")
		t.Logf("%d calls ended at most %v after their deadlines; %v after the network healed all works",
			len(calls), slices.Max(over).Round(time.Millisecond), again.Round(time.Millisecond))
	})
}

// F36: the server takes its time. Renewals get through in theirs, though claims fill all other connections; and claims
// that wait do not each open one.
func TestSlow(t *testing.T) {
	const deadline, claimers, renewals = 2 * time.Second, 30, 4
	each(t, onServer, func(t *testing.T, s *site) {
		p := s.through(t)
		h := s.open(t)
		r := open(t, h, "a")
		due := openDue(t, h)
		r.works(due, "before")
		p.ToClient.Delay(func() time.Duration { return 200*time.Millisecond + rand.N(300*time.Millisecond) })
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		var won, late atomic.Int64
		for i := range claimers {
			wg.Go(func() {
				for n := 0; ctx.Err() == nil; n++ {
					ctx, cancel := context.WithTimeout(ctx, deadline)
					_, err := h.Claim(ctx, r.session, int64(1000*(i+1)+n), claims(due, fmt.Sprintf("%d-%d-", i, n), 1))
					cancel()
					if err == nil {
						won.Add(1)
					} else {
						late.Add(1)
					}
				}
			})
		}
		for i := range renewals {
			ctx, cancel := context.WithTimeout(ctx, deadline)
			_, err := h.RenewSession(ctx, r.session)
			cancel()
			if err != nil {
				t.Errorf("renewal %d: %v", i, err)
			}
		}
		open := s.ask(t, s.connections)
		cancel()
		wg.Wait()
		p.ToClient.Delay(nil)
		works(t, h)
		r.works(due, "after")
		if open > claimers/2 {
			t.Errorf("%d connections for %d calls that wait", open, claimers)
		}
		t.Logf("%d renewals in time beside %d claims answered and %d given up, over %d connections", renewals, won.Load(), late.Load(), open)
	})
}
