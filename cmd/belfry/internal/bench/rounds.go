package bench

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"time"
)

// between is the error of a flag outside its bounds.
func between[T cmp.Ordered](flag string, v, least, most T) error {
	if v < least || v > most {
		return fmt.Errorf("bench: --%s %v: give %v to %v", flag, v, least, most)
	}
	return nil
}

// event is something that is made to happen over and over, and how long others take to make up for it.
type event struct {
	what string
	into *Stats
	run  func(context.Context) (time.Duration, error)
}

// measure measures each event n times, and tells log each time.
func measure(ctx context.Context, n int, log io.Writer, events ...event) error {
	for _, m := range events {
		var took []time.Duration
		for i := range n {
			d, err := m.run(ctx)
			if err != nil {
				return err
			}
			fmt.Fprintf(log, "%s, %d of %d: %v\n", m.what, i+1, n, d.Round(100*time.Microsecond))
			took = append(took, d)
		}
		*m.into = summarise(took)
	}
	return nil
}
