package jobs

import (
	"fmt"
	"sync"
	"time"
	_ "time/tzdata" // a host without a zone database computes the same dues
)

// zones keeps each *time.Location that was loaded: reading one costs 20 us and
// 4 KB. Only names the zone database knows get in, so it is bounded by that.
var zones sync.Map // string -> *time.Location

// loadZone finds a zone by its IANA name. "Local" is refused because it differs
// from host to host, and "" because it is a slip.
func loadZone(name string) (*time.Location, error) {
	if loc, ok := zones.Load(name); ok {
		return loc.(*time.Location), nil
	}
	if name == "" || name == "Local" {
		return nil, fmt.Errorf("zone %q would mean another clock on each host; name one, such as UTC or Europe/Berlin", name)
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("unknown zone %.80q; use an IANA name such as UTC or Europe/Berlin", name)
	}
	known, _ := zones.LoadOrStore(name, loc)
	return known.(*time.Location), nil
}
