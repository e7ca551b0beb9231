package storetest

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// Bench measures the calls that a night consists of: claims that win, claims
// that lose, and finishes, in batches of 1, 100 and 1000. It reports keys a
// second besides the time of a call. Whoever opened the store closes it, in
// b.Cleanup.
func Bench(b *testing.B, open func(b *testing.B) Store) {
	for _, size := range []int{1, 100, idempotency.MaxBatch} {
		for _, x := range []struct {
			name  string
			bench func(*testing.B, *load)
		}{{"Claim", benchClaim}, {"LosingClaim", benchLosingClaim}, {"Finish", benchFinish}} {
			b.Run(fmt.Sprintf("%s/%d", x.name, size), func(b *testing.B) {
				x.bench(b, newLoad(b, open(b), size))
				b.ReportMetric(float64(b.N*size)/b.Elapsed().Seconds(), "keys/s")
			})
		}
	}
}

// load is a store with one open due, and claims of ever new keys of it.
type load struct {
	Store
	session idempotency.Session
	due     time.Time
	size    int
	next    int
	nonce   int64
}

func newLoad(b *testing.B, s Store, size int) *load {
	ctx := context.Background()
	session, renewal, err := s.OpenSession(ctx, idempotency.Opening{
		Namespace: namespace, Replica: "a", Boot: "a", Partitions: 4096,
		Lease: time.Hour, Horizon: time.Hour, Retention: 2 * time.Hour,
	})
	if err != nil {
		b.Fatal(err)
	}
	due := renewal.Now.Truncate(time.Second)
	def := idempotency.Definition{Job: keyed, Hash: "h1"}
	entries, err := s.Declare(ctx, session, 0, []idempotency.Declaration{{Definition: def, Opened: due.Add(-time.Hour)}})
	if err != nil {
		b.Fatal(err)
	}
	decided, err := s.Decide(ctx, session, 1, []idempotency.Decision{{
		Seen: entries[0], Definition: def, Opened: due, Keyed: true, Run: []time.Time{due},
	}})
	if err != nil || !decided[0].Won {
		b.Fatalf("opening the due: %+v %v", decided, err)
	}
	return &load{Store: s, session: session, due: due, size: size}
}

// batch makes claims of new keys.
func (l *load) batch() []idempotency.Claim {
	return repeat(l.size, func(int) idempotency.Claim {
		l.next++
		return idempotency.Claim{ID: key(fmt.Sprintf("customer-%08d", l.next), l.due), Hash: "h1", Exclusive: true}
	})
}

func (l *load) claim(b *testing.B, c []idempotency.Claim, want idempotency.Verdict) []idempotency.Answer {
	l.nonce++
	answers, err := l.Claim(context.Background(), l.session, l.nonce, c)
	if err != nil || answers[0].Verdict != want {
		b.Fatalf("claim: %+v %v", answers, err)
	}
	return answers
}

func benchClaim(b *testing.B, l *load) {
	for b.Loop() {
		l.claim(b, l.batch(), idempotency.Won)
	}
}

func benchLosingClaim(b *testing.B, l *load) {
	c := l.batch()
	l.claim(b, c, idempotency.Won)
	for b.Loop() {
		l.claim(b, c, idempotency.Taken)
	}
}

func benchFinish(b *testing.B, l *load) {
	for b.Loop() {
		b.StopTimer()
		c := l.batch()
		won := l.claim(b, c, idempotency.Won)
		b.StartTimer()
		f := repeat(len(c), func(i int) idempotency.Finish { return done(c[i].ID, won[i].Fence) })
		answers, err := l.Store.Finish(context.Background(), namespace, f)
		if err != nil || answers[0] != idempotency.Finished {
			b.Fatalf("finish: %v %v", answers, err)
		}
	}
}
