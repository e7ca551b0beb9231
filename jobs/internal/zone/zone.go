// Package zone finds the wall clock of a time zone: its offset from UTC at an
// instant, and where that offset changes. The zones are the program's own, or
// those that the variable ZONEINFO names; never the host's, which differ from
// image to image.
package zone

import (
	"fmt"
	"math"
	"sync"
	"time"
)

// Zone is one time zone. It is immutable; there is one for each name.
type Zone struct {
	loc *time.Location
	table
}

// UTC is the zone of a schedule that names none.
var UTC = &Zone{time.UTC, table{begins: []int64{math.MinInt64}, offsets: []int32{0}, until: math.MaxInt64}}

// zones keeps each zone that was loaded: making one costs 0.1 ms and 9 KB at
// most. Only names that the data knows get in, so it is bounded by that.
var zones sync.Map // string -> *Zone

// Load finds a zone by its IANA name, of which one form is known: no other case,
// no path. "Local" is refused because it differs from host to host, and "" because
// it is a slip.
func Load(name string) (*Zone, error) {
	if z, ok := zones.Load(name); ok {
		return z.(*Zone), nil
	}
	switch name {
	case "UTC":
		return UTC, nil
	case "", "Local":
		return nil, fmt.Errorf("zone %q would mean another clock on each host; name one, such as UTC or Europe/Berlin", name)
	}
	z, err := current().load(name)
	if err != nil {
		return nil, err
	}
	known, _ := zones.LoadOrStore(name, z)
	return known.(*Zone), nil
}

// Location is the zone as package time has it, for showing instants.
func (z *Zone) Location() *time.Location { return z.loc }

// Stretch is a time of constant offset: instants from Begin, up to but without
// End, in Unix seconds. Before is the offset just before Begin. The first stretch
// of a zone begins at math.MinInt64, with Before equal to Offset; the last ends at math.MaxInt64.
// Where clocks change the offset does, so Before differs from Offset.
type Stretch struct{ Begin, End, Offset, Before int64 }

// At is the stretch that the instant is in.
func (z *Zone) At(unix int64) Stretch {
	if unix < z.until {
		return z.find(unix)
	}
	return walk(z.loc, unix)
}

// Version names the zone data in use; replicas that differ in it may differ in their dues. It is the release of the
// IANA data that the program has, such as 2025c; or, where ZONEINFO names data with other contents, "zoneinfo-" and 12
// digits of their hash.
func Version() string { return current().version }

// Err is why what ZONEINFO names is not in use; nil where it is, or where ZONEINFO is not set.
func Err() error { return current().err }
