// Package zone finds the wall clock of a time zone: its offset from UTC at an
// instant, and where that offset changes.
package zone

import (
	"fmt"
	"math"
	"sync"
	"time"
	_ "time/tzdata" // a host without a zone database computes the same dues
)

// Zone is one time zone. It is immutable; there is one for each name.
type Zone struct{ loc *time.Location }

// UTC is the zone of a schedule that names none.
var UTC = &Zone{loc: time.UTC}

// zones keeps each zone that was loaded: reading one costs 20 us and 4 KB. Only
// names the zone database knows get in, so it is bounded by that.
var zones sync.Map // string -> *Zone

// Load finds a zone by its IANA name. "Local" is refused because it differs
// from host to host, and "" because it is a slip.
func Load(name string) (*Zone, error) {
	if z, ok := zones.Load(name); ok {
		return z.(*Zone), nil
	}
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("zone %q would mean another clock on each host; name one, such as UTC or Europe/Berlin", name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("unknown zone %.80q; use an IANA name such as UTC or Europe/Berlin", name)
	}
	known, _ := zones.LoadOrStore(name, &Zone{loc: loc})
	return known.(*Zone), nil
}

// Location is the zone as package time has it, for showing instants.
func (z *Zone) Location() *time.Location { return z.loc }

// Stretch is a time of constant offset: instants from Begin, up to but without
// End, in Unix seconds. Before is the offset just before Begin. The first stretch
// of a zone begins at math.MinInt64, with Before equal to Offset; the last ends at math.MaxInt64.
type Stretch struct{ Begin, End, Offset, Before int64 }

// At is the stretch that the instant is in.
func (z *Zone) At(unix int64) Stretch {
	at := time.Unix(unix, 0).In(z.loc)
	_, offset := at.Zone()
	s := Stretch{Begin: math.MinInt64, End: math.MaxInt64, Offset: int64(offset), Before: int64(offset)}
	begin, end := at.ZoneBounds()
	if !begin.IsZero() {
		_, before := begin.Add(-time.Second).Zone()
		s.Begin, s.Before = begin.Unix(), int64(before)
	}
	if !end.IsZero() {
		s.End = end.Unix()
	}
	if s.End <= unix {
		// Past a zone's last listed change Go (1.26) ends the stretches of a leap
		// year a day early, on 31 December, where no clock changes.
		s.End = unix - unix%day + day
	}
	return s
}

const day = 24 * 60 * 60

// Version names the zone data in use; replicas that differ in it may differ in their dues.
func Version() string { return "2025c" }
