package storetest

import (
	"fmt"
	"sync"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

const racers = 8

var raceLaws = []law{
	{"OneClaimerWins", oneClaimerWins},
	{"OneDueOfAKeyWins", oneDueOfAKeyWins},
	{"OlderDuesWaitForTheWinner", olderDuesWaitForTheWinner},
	{"OneTakeUpWins", oneTakeUpWins},
	{"OneDecisionWins", oneDecisionWins},
	{"OneFinishCounts", oneFinishCounts},
	{"NoBitIsLost", noBitIsLost},
	{"OneRecord", oneRecord},
	{"OneLeads", oneLeads},
	{"HighestTermLeads", highestTermLeads},
	{"LeadersFollowEachOther", leadersFollowEachOther},
	{"Mix", mix},
}

// race calls f at once from that many replicas; each has the other handle than
// its neighbour.
func race(b *bundle, f func(i int, r *replica) error) {
	b.Helper()
	raceOf(b, racers, f)
}

// raceOf is a race of n.
func raceOf(b *bundle, n int, f func(i int, r *replica) error) {
	b.Helper()
	second := b.second()
	field := make([]*replica, n)
	for i := range field {
		field[i] = b.ready(fmt.Sprintf("racer-%d", i), "h1")
		if i%2 == 1 {
			field[i].store = second
		}
	}
	errs := make([]error, n)
	gate := make(chan struct{})
	var wg sync.WaitGroup
	for i, r := range field {
		wg.Go(func() {
			<-gate
			errs[i] = f(i, r)
		})
	}
	close(gate)
	wg.Wait()
	for i, err := range errs {
		if err != nil {
			b.Fatalf("racer %d: %v", i, err)
		}
	}
}

// DESIGN §5.2: one insert wins, all others are no-ops. I1, F42.
func oneClaimerWins(b *bundle) {
	const dues = 20
	a := b.ready("a", "h1")
	due := repeat(dues, func(i int) time.Time { return b.ago(time.Duration(60-i) * time.Second) })
	a.opens(due...)
	var won [dues][racers]idempotency.Answer
	race(b, func(i int, r *replica) error {
		for d := range due {
			c := r.insert("k", due[d])
			c.Exclusive = false
			answers, err := r.store.Claim(b.Context(), r.session, int64(d), []idempotency.Claim{c})
			if err != nil {
				return err
			}
			won[d][i] = answers[0]
		}
		return nil
	})
	for d := range won {
		winners := 0
		for _, x := range won[d] {
			switch x.Verdict {
			case idempotency.Won:
				winners++
				want(b.T, "fence of the row", b.row(key("k", due[d])).Fence, x.Fence)
			case idempotency.Taken:
			default:
				b.Fatalf("verdict %d, want won or taken", x.Verdict)
			}
		}
		want(b.T, "winners of one due", winners, 1)
	}
}

// Claimers of one key and as many dues: one runs, the others record a skip.
func oneDueOfAKeyWins(b *bundle) {
	a := b.ready("a", "h1")
	due := repeat(racers, func(i int) time.Time { return b.ago(time.Duration(60-i) * time.Second) })
	a.opens(due...)
	race(b, func(i int, r *replica) error {
		c := r.insert("k", due[i])
		c.OnBusy = &idempotency.Finish{Outcome: idempotency.Skipped, Reason: "overlap"}
		answers, err := r.store.Claim(b.Context(), r.session, 1, []idempotency.Claim{c})
		if v := answers; err == nil && v[0].Verdict != idempotency.Won && v[0].Verdict != idempotency.Busy {
			return fmt.Errorf("verdict %d, want won or busy", v[0].Verdict)
		}
		return err
	})
	running := 0
	for _, x := range b.list(idempotency.Filter{}) {
		if x.State == idempotency.Running {
			running++
		}
	}
	want(b.T, "running", running, 1)
	want(b.T, "skipped", len(b.list(idempotency.Filter{Outcome: idempotency.Skipped})), racers-1)
}

// An orphan is taken up once.
func oneTakeUpWins(b *bundle) {
	dead := b.ready("dead", "h1")
	x := dead.runs(1, b.ago(time.Minute))[0]
	dead.close()
	race(b, func(_ int, r *replica) error {
		if err := r.store.MarkDead(b.Context(), r.session, []int64{dead.session.ID}); err != nil {
			return err
		}
		_, err := r.store.Claim(b.Context(), r.session, 1, []idempotency.Claim{r.takeUp(x.ID, x.Fence)})
		return err
	})
	want(b.T, "crashes", b.row(x.ID).Crashes, 1)
}

// Openers that saw the same: one decides.
func oneDecisionWins(b *bundle) {
	d := b.ready("a", "h1").decision(plain, b.ago(time.Minute))
	d.Claim = 1
	d.Ranges = []idempotency.Range{{Job: plain, From: b.ago(time.Hour), To: b.ago(time.Hour), Count: 1, Outcome: idempotency.Missed}}
	var won [racers]int
	race(b, func(i int, r *replica) error {
		a, err := r.store.Decide(b.Context(), r.session, 1, []idempotency.Decision{d})
		if err == nil && a[0].Won {
			won[i] = 1
		}
		return err
	})
	sum := 0
	for _, n := range won {
		sum += n
	}
	want(b.T, "won", sum, 1)
	want(b.T, "rows", len(b.list(idempotency.Filter{})), 1)
	want(b.T, "ranges", len(b.ranges("")), 1)
}

// A finish sent many times counts once. F34.
func oneFinishCounts(b *bundle) {
	x := b.ready("a", "h1").runs(1, b.ago(time.Minute))[0]
	var got [racers]idempotency.FinishAnswer
	race(b, func(i int, r *replica) error {
		a, err := r.store.Finish(b.Context(), namespace, []idempotency.Finish{done(x.ID, x.Fence)})
		if err == nil {
			got[i] = a[0]
		}
		return err
	})
	count := make(map[idempotency.FinishAnswer]int)
	for _, a := range got {
		count[a]++
	}
	want(b.T, "finished", count[idempotency.Finished], 1)
	want(b.T, "already", count[idempotency.Already], racers-1)
}

// Passes that are saved while others try to close the due: it is closed once
// all bits are there, and not before.
func noBitIsLost(b *bundle) {
	a := b.ready("a", "h1")
	due := b.ago(time.Minute)
	a.opens(due)
	race(b, func(i int, r *replica) error {
		for _, bits := range [][]byte{bitmap(), bitmap(i)} {
			if _, err := r.store.CloseDue(b.Context(), r.session, keyed, due, nil); err != nil {
				return err
			}
			v, err := r.store.SavePass(b.Context(), r.session, []idempotency.Pass{{Job: keyed, Due: due, Finished: bits}})
			if err != nil || v[0] != idempotency.Won {
				return fmt.Errorf("pass: %v %w", v, err)
			}
		}
		return nil
	})
	want(b.T, "closed", a.closes(due, nil), true)
}

// A due that many close as missed is recorded once.
func oneRecord(b *bundle) {
	a := b.ready("a", "h1")
	due := b.ago(2 * time.Hour)
	a.opens(due)
	race(b, func(_ int, r *replica) error {
		missed := &idempotency.Range{Job: keyed, From: due, To: due, Count: 1, Outcome: idempotency.Missed}
		closed, err := r.store.CloseDue(b.Context(), r.session, keyed, due, missed)
		if err == nil && !closed {
			return fmt.Errorf("the due is not closed")
		}
		return err
	})
	want(b.T, "ranges", len(b.ranges("")), 1)
}
