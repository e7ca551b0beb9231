package postgres

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/idempotency/storetest"
	"github.com/belfry-go/belfry/internal/testservers"
)

func BenchmarkStore(b *testing.B) {
	storetest.Bench(b, func(b *testing.B) storetest.Store {
		return openAt(b, pool(b, testservers.Postgres(b).Database(b)), nil, serverClock)
	})
}

// rowsIn is how many ended runs a third side of BenchmarkNight finds in its table.
const rowsIn = "POSTGRES_BENCH_ROWS"

// rawClaim is what insertClaims writes, and no more: it looks at no session, entry, due or row that is there.
const rawClaim = `WITH u AS MATERIALIZED (
  SELECT * FROM unnest($1::text[], $2::timestamptz[], $3::bytea[], $4::bytea[]) WITH ORDINALITY u(job, due, key, request, n)),
held AS (
  INSERT INTO belfry_running (space, session, job, due, key, request, slot)
  SELECT 1, 1, job, due, key, request, '' FROM u ON CONFLICT DO NOTHING RETURNING job, due, key, request),
won AS (
  INSERT INTO belfry_run (space, job, due, key, request, state, exclusive, session, nonce, fence, replica, started)
  SELECT 1, job, due, key, request, 2, true, 1, 1, nextval('belfry_number'), 'a', clock_timestamp() FROM held ON CONFLICT DO NOTHING RETURNING fence)
SELECT array_agg(fence) FROM won`

// night is what both sides of BenchmarkNight do, each in tables of its own: claim and finish batches of new keys.
type night struct {
	b   *testing.B
	s   *Store
	due time.Time
	ses idempotency.Session
	raw *pgxpool.Pool // nil: through the store

	mu            sync.Mutex
	claim, finish time.Duration   // of all batches
	finishes      []time.Duration // of each
}

// BenchmarkNight claims and finishes batches of a thousand keys of one new due over four connections, through the store
// and as the bare statements, in turns, so that both meet the same machine. No ANALYZE has seen the due. It prints how
// much of the bare rate the store reaches, how much log a run writes, and how the time of a finish batch grows.
func BenchmarkNight(b *testing.B) {
	ctx := context.Background()
	// All of it fits into the server's memory, as the rows of one night do on a real one.
	server := testservers.StartPostgres(b, testservers.Options{Args: []string{"-c", "shared_buffers=1GB", "-c", "max_wal_size=8GB"}})
	p := pool(b, server.Database(b))
	config := p.Config()
	config.MaxConns = callConns
	config.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, `SET enable_seqscan = off; SET enable_hashjoin = off; SET enable_mergejoin = off; SET plan_cache_mode = force_generic_plan; SET jit = off`, pgx.QueryExecModeSimpleProtocol)
		return err
	}
	raw, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		b.Fatal(err)
	}
	defer raw.Close()
	sides := []*night{newNight(b, p, "store_"), newNight(b, p, "raw_")}
	sides[1].raw = raw
	if rows, _ := strconv.Atoi(os.Getenv(rowsIn)); rows > 0 {
		sides = append(sides, newNight(b, p, "full_"))
		sides[2].load(p, rows)
	}
	exec(b, p, `CHECKPOINT`)
	var log int64
	next := 0
	for b.Loop() {
		for i := range sides {
			n := sides[(next+i)%len(sides)]
			before := position(b, p)
			var wg sync.WaitGroup
			for client := range callConns {
				wg.Go(func() { n.batch(client, next) })
			}
			wg.Wait()
			if n == sides[0] {
				log += position(b, p) - before
			}
		}
		next++
	}
	runs := float64(next * callConns * idempotency.MaxBatch)
	store, bare := sides[0], sides[1]
	b.ReportMetric(runs*callConns/store.both().Seconds(), "store-runs/s")
	b.ReportMetric(runs*callConns/bare.both().Seconds(), "raw-runs/s")
	b.ReportMetric(100*bare.both().Seconds()/store.both().Seconds(), "%-of-raw")
	b.ReportMetric(100*bare.claim.Seconds()/store.claim.Seconds(), "%-of-raw-claim")
	b.ReportMetric(100*bare.finish.Seconds()/store.finish.Seconds(), "%-of-raw-finish")
	b.ReportMetric(float64(log)/runs, "WAL-B/run")
	early, late := store.trend()
	b.ReportMetric(early.Seconds()*1000, "first-finish-ms")
	b.ReportMetric(late.Seconds()*1000, "last-finish-ms")
	if len(sides) > 2 {
		b.ReportMetric(100*store.both().Seconds()/sides[2].both().Seconds(), "%-of-empty")
	}
}

func (n *night) both() time.Duration { return n.claim + n.finish }

// trend is what a finish batch took at the first and at the last: medians of a fifth of them each.
func (n *night) trend() (early, late time.Duration) {
	fifth := max(len(n.finishes)/5, 1)
	median := func(d []time.Duration) time.Duration { return slices.Sorted(slices.Values(d))[len(d)/2] }
	return median(n.finishes[:fifth]), median(n.finishes[len(n.finishes)-fifth:])
}

// position is how much log the server has written.
func position(b *testing.B, p *pgxpool.Pool) (n int64) {
	if err := p.QueryRow(context.Background(), `SELECT pg_current_wal_insert_lsn() - '0/0'`).Scan(&n); err != nil {
		b.Fatal(err)
	}
	return n
}

func newNight(b *testing.B, p *pgxpool.Pool, prefix string) *night {
	ctx := context.Background()
	n := &night{b: b, s: openAt(b, p, &Options{Prefix: prefix}, serverClock)}
	var renewal idempotency.Renewal
	var err error
	n.ses, renewal, err = n.s.OpenSession(ctx, idempotency.Opening{
		Namespace: "ns", Replica: "a", Boot: "a", Partitions: 4096, Lease: 24 * time.Hour, Horizon: time.Hour, Retention: 2 * time.Hour,
	})
	if err != nil {
		b.Fatal(err)
	}
	n.due = renewal.Now.Truncate(time.Second)
	def := idempotency.Definition{Job: "renewals", Hash: "h1"}
	entries, err := n.s.Declare(ctx, n.ses, 0, []idempotency.Declaration{{Definition: def, Opened: n.due.Add(-time.Hour)}})
	if err != nil {
		b.Fatal(err)
	}
	d, err := n.s.Decide(ctx, n.ses, 1, []idempotency.Decision{{Seen: entries[0], Definition: def, Opened: n.due, Keyed: true, Run: []time.Time{n.due}}})
	if err != nil || !d[0].Won {
		b.Fatalf("opening the due: %+v %v", d, err)
	}
	return n
}

// load puts in the ended runs of nights before.
func (n *night) load(p *pgxpool.Pool, rows int) {
	exec(n.b, p, n.s.texts.of(fmt.Sprintf(`INSERT INTO belfry_run (space, job, due, key, request, state, outcome, attempt, exclusive, session, nonce, fence, replica, started, finished)
SELECT 1, 'renewals', timestamptz '%s' - (i / 200000 + 1) * interval '1 day', convert_to('customer-' || lpad((i * 7919 %% 200000)::text, 8, '0'), 'UTF8'), '', 3, 1, 1, true, 1, 1, i, 'a', now(), now()
FROM generate_series(0::bigint, %d - 1) i`, n.due.Format(time.RFC3339), rows)))
	exec(n.b, p, n.s.texts.of(`VACUUM ANALYZE belfry_run`))
}

func (n *night) batch(client, number int) {
	c := make([]idempotency.Claim, idempotency.MaxBatch)
	for i := range c {
		// Neighbours in the index are claimed at about the same time by different clients, as when each owns some keys.
		key := fmt.Sprintf("customer-%08d", (number*len(c)+i)*callConns+client)
		c[i] = idempotency.Claim{ID: idempotency.ID{Job: "renewals", Key: key, Due: n.due}, Hash: "h1", Exclusive: true}
	}
	start := time.Now()
	fences := n.claimAll(c, int64(number*callConns+client+2))
	claimed := time.Now()
	f := make([]idempotency.Finish, len(c))
	for i := range f {
		f[i] = idempotency.Finish{ID: c[i].ID, Fence: fences[i], Outcome: idempotency.Done, Attempt: 1}
	}
	n.finishAll(f)
	n.mu.Lock()
	defer n.mu.Unlock()

	n.claim += claimed.Sub(start)
	n.finish += time.Since(claimed)
	n.finishes = append(n.finishes, time.Since(claimed))
}

func (n *night) claimAll(c []idempotency.Claim, nonce int64) []int64 {
	var fences []int64
	if n.raw != nil {
		var k keys
		for i := range c {
			k.add(c[i].ID)
		}
		if err := n.raw.QueryRow(context.Background(), n.s.texts.of(rawClaim), k.job, k.due, k.key, k.request).Scan(&fences); err != nil || len(fences) != len(c) {
			n.b.Errorf("raw claim: %d of %d: %v", len(fences), len(c), err)
			return make([]int64, len(c))
		}
		return fences
	}
	answers, err := n.s.Claim(context.Background(), n.ses, nonce, c)
	if err != nil {
		n.b.Errorf("claim: %v", err)
		return make([]int64, len(c))
	}
	for _, a := range answers {
		fences = append(fences, a.Fence)
	}
	return fences
}

func (n *night) finishAll(f []idempotency.Finish) {
	if n.raw == nil {
		answers, err := n.s.Finish(context.Background(), "ns", f)
		if err != nil || answers[0] != idempotency.Finished {
			n.b.Errorf("finish: %v", err)
		}
		return
	}
	order := make([]int, len(f))
	for i := range order {
		order[i] = i
	}
	var finished []int64
	if err := n.raw.QueryRow(context.Background(), n.s.texts.of(finishRuns), finishArgs("ns", f, order)...).Scan(&finished); err != nil || len(finished) != len(f) {
		n.b.Errorf("raw finish: %d of %d: %v", len(finished), len(f), err)
	}
}
