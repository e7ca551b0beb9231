package demo

import (
	"errors"
	"fmt"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/fleet"
	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
)

// Options are what one can ask of the demo.
type Options struct {
	Nights    int           // 1 to 100
	Every     time.Duration // between nights, whole seconds; 0: as long as the kills need
	Customers int           // 1 to 200,000
	Replicas  int           // 1 to 20
	Kills     int           // in the second night, 0 to 20
	Store     storeurl.URL  // of a database to run in; zero: a SQLite file of the demo's own
	Dir       string        // for its files, kept; "": a temporary folder, removed

	// Hurry, once it is closed, makes replicas that are stopped not wait for their handlers. Nil: they may take their time.
	Hurry <-chan struct{}
}

const (
	maxNights, maxCustomers, maxReplicas, maxKills = 100, 200_000, 20, 20

	// perSecond is how many renewals a second the demo asks of one SQLite file on a modest machine.
	perSecond = 4000
	// latency bounds how long the provider takes for one call.
	minLatency, maxLatency = 10 * time.Millisecond, 500 * time.Millisecond
	maxConcurrency         = 64
	// lead is from the replicas' joining to the first night.
	lead = 3 * time.Second
)

func (o Options) withDefaults() Options {
	if o.Every == 0 {
		o.Every = max(8*time.Second, o.shortest()).Truncate(time.Second)
	}
	return o
}

// shortest is the least time between nights: one night must be over, with what a killed replica left behind, before
// the next is due, or its customers would be skipped because they still run.
func (o Options) shortest() time.Duration {
	d := time.Second + time.Duration(o.Customers)*time.Second/perSecond
	if o.Kills > 0 && o.Nights > 2 {
		d += fleet.Brisk(o.Replicas).Lease + time.Second + time.Duration(o.Kills)*time.Second
	}
	return (d + time.Second - 1).Truncate(time.Second)
}

// validate takes options with their defaults and returns all that is wrong with them.
func (o Options) validate() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf("demo: "+format, a...)) }
	between := func(flag string, n, low, high int) {
		if n < low || n > high {
			bad("--%s %d: give %d to %d", flag, n, low, high)
		}
	}
	between("nights", o.Nights, 1, maxNights)
	between("customers", o.Customers, 1, maxCustomers)
	between("replicas", o.Replicas, 1, maxReplicas)
	between("kills", o.Kills, 0, maxKills)
	if o.Kills > 0 && o.Nights == 1 {
		bad("--kills %d: they are made in the second night; give --nights 2 or more, or --kills 0", o.Kills)
	}
	switch {
	case o.Every < time.Second || o.Every%time.Second != 0:
		bad("--every %v: give whole seconds, such as 8s", o.Every)
	case len(errs) == 0 && o.Every < o.shortest():
		bad("--every %v: %d customers, %d replicas and %d kills need %v or more, so that a night is over before the next", o.Every, o.Customers, o.Replicas, o.Kills, o.shortest())
	}
	return errors.Join(errs...)
}

// concurrency is how many renewals a replica runs at once: few enough that a night takes several rounds.
func (o Options) concurrency() int {
	return min(max(o.Customers/(5*o.Replicas), 1), maxConcurrency)
}

// latency is how long the provider takes for one call on average, so that a night fills a quarter of the time to
// the next: long enough to be watched, and to be killed in.
func (o Options) latency() time.Duration {
	rounds := float64(o.Customers) / float64(o.Replicas*o.concurrency())
	return min(max(time.Duration(float64(o.Every)/4/rounds), minLatency), maxLatency)
}

// schedule is the instants of the nights, the first one lead after now.
func (o Options) schedule(now time.Time) []time.Time {
	first := now.Add(lead).Add(time.Second - 1).Truncate(time.Second).UTC()
	nights := make([]time.Time, o.Nights)
	for i := range nights {
		nights[i] = first.Add(time.Duration(i) * o.Every)
	}
	return nights
}
