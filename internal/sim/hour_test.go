package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/sim"
)

// BenchmarkHour says how many hours of a cluster of five replicas with fifty jobs a minute pass in a second. Its oracle
// judges, and its digest is taken.
func BenchmarkHour(b *testing.B) {
	together := func(int) time.Duration { return 0 }
	apart := func(i int) time.Duration { return time.Duration(i) * time.Second }
	b.Run("together", func(b *testing.B) { benchHour(b, together, nil) })
	b.Run("apart", func(b *testing.B) { benchHour(b, apart, nil) })
	b.Run("faults", func(b *testing.B) { benchHour(b, apart, troubled) })
}

func benchHour(b *testing.B, phase func(int) time.Duration, trouble func(*sim.World)) {
	const count = 50
	jobs := make([]sim.Job, count)
	for i := range jobs {
		jobs[i] = sim.Job{Name: fmt.Sprintf("job%02d", i), Plans: []sim.Plan{{Every: time.Minute, Phase: phase(i)}}}
	}
	var s sim.Stats
	seed := uint64(0)
	for b.Loop() {
		seed++
		w := sim.New(sim.Config{Seed: seed, Replicas: 5, Timing: sim.Normal(), Jobs: jobs})
		if trouble != nil {
			trouble(w)
		}
		if err := w.Run(time.Hour); err != nil {
			b.Fatalf("seed %d at %v: %v", seed, w.Now(), err)
		}
		if err := w.Settle(58 * time.Minute); err != nil {
			b.Fatalf("seed %d: %v", seed, err)
		}
		if s = w.Stats; s.Started < 59*count {
			b.Fatalf("seed %d: %d handlers started, want %d at least", seed, s.Started, 59*count)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "hours/s")
	b.ReportMetric(float64(s.Events), "events/hour")
	b.ReportMetric(float64(s.Calls), "calls/hour")
	b.ReportAllocs()
}

// troubled does a fault every five minutes until the last ones: a process is killed, stands still, or does not reach the store.
func troubled(w *sim.World) {
	for i := range 10 {
		r := w.Replica(i % 5)
		w.At(time.Duration(5*i+3)*time.Minute, func() {
			switch i % 3 {
			case 0:
				r.Kill()
				r.Restart(time.Second)
			case 1:
				r.Freeze(20 * time.Second)
			case 2:
				r.Blind(20 * time.Second)
			}
		})
	}
}
