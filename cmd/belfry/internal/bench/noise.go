package bench

import "time"

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
