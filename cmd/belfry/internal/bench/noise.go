package bench

import (
	"fmt"
	"io"
	"time"
)

// withNoise runs measure, and sets how late timers fired meanwhile.
func withNoise(timer *Stats, measure func() error) error {
	noise := listen()
	err := measure()
	*timer = summarise(noise())
	return err
}

// printNoise writes the last line of each report for people.
func printNoise(w io.Writer, timer Stats) {
	fmt.Fprintf(w, "\nThe machine: a 10 ms timer in the parent fired %.1f ms late (p50), %.1f ms (p99), of %d.\n", timer.P50, timer.P99, timer.N)
}

// listen measures how late timers fire, until the function it returns is called, which returns the samples.
func listen() func() []time.Duration {
	stop, result := make(chan struct{}), make(chan []time.Duration)
	go func() {
		const wait = 10 * time.Millisecond
		var late []time.Duration
		timer := time.NewTimer(wait)
		defer timer.Stop()
		for began := time.Now(); ; {
			select {
			case <-timer.C:
				late = append(late, time.Since(began)-wait)
				began = time.Now()
				timer.Reset(wait)
			case <-stop:
				result <- late
				return
			}
		}
	}()
	return func() []time.Duration {
		close(stop)
		return <-result
	}
}
