package sim

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime/debug"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
)

// Roomy lets the heap of a program that simulates grow to five times what is alive of it, unless GOGC says how far: a world is a
// few megabytes, and leaves ten times as much behind in an hour, so that collecting it takes a fifth of the time otherwise.
func Roomy() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(400)
	}
}

// Summary adds up reports. Two that were added the same reports in the same order are equal.
type Summary struct {
	Trials, Faults, Occurrences, Events, Violations int
	Lived                                           time.Duration // by clusters

	first string
	sum   *xxhash.Digest
}

// Add adds a report.
func (s *Summary) Add(r Report) {
	if s.Trials++; s.Trials == 1 {
		s.first, s.sum = r.Digest, xxhash.New()
	}
	_, _ = s.sum.WriteString(r.Digest)
	s.Faults, s.Occurrences, s.Events, s.Lived = s.Faults+r.Faults, s.Occurrences+r.Occurrences, s.Events+r.Events, s.Lived+r.At
	if r.Err != nil {
		s.Violations++
	}
}

// Hours is how long clusters lived, rounded to a thousandth.
func (s *Summary) Hours() float64 { return math.Round(s.Lived.Hours()*1000) / 1000 }

// Digest stands for all that happened: the digest of one trial, or that of the digests of several.
func (s *Summary) Digest() string {
	switch s.Trials {
	case 0:
		return ""
	case 1:
		return s.first
	}
	return fmt.Sprintf("%016x", s.sum.Sum64())
}

// Each runs n trials, of t's seed and those after it, so many at a time, and tells each report in the order of the seeds. It
// returns early where ctx ends.
func (t Trial) Each(ctx context.Context, n, atOnce int, tell func(Trial, Report)) error {
	type slot struct {
		trial  Trial
		report chan Report
	}
	slots := make(chan slot, atOnce)
	var running sync.WaitGroup
	running.Go(func() {
		defer close(slots)
		limit := make(chan struct{}, atOnce)
		for i := range n {
			s := slot{trial: t, report: make(chan Report, 1)}
			s.trial.Seed += uint64(i)
			select {
			case <-ctx.Done():
				return
			case limit <- struct{}{}:
			}
			running.Go(func() {
				s.report <- s.trial.Run(ctx)
				<-limit
			})
			slots <- s
		}
	})
	for s := range slots {
		if r := <-s.report; ctx.Err() == nil {
			tell(s.trial, r)
		}
	}
	running.Wait()
	return ctx.Err()
}
