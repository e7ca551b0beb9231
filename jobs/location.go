package jobs

import (
	"strings"
	"time"

	"github.com/belfry-go/belfry/jobs/internal/zone"
)

// Location is the zone to show a schedule's dues in: the one whose wall clock it
// follows, by the zone data that its dues are computed with (package time may
// have other data). It is UTC for what follows no wall clock, or those of several zones.
func (s Schedule) Location() *time.Location {
	name := ""
	for i, word := range strings.FieldsFunc(s.String(), func(r rune) bool { return strings.ContainsRune(" (;", r) }) {
		if i == 0 && word == "@custom" {
			break // the rest is the user's
		}
		named, ok := strings.CutPrefix(word, "TZ=")
		if ok && name != "" && named != name {
			return time.UTC
		}
		if ok {
			name = named
		}
	}
	z, err := zone.Load(name)
	if err != nil {
		return time.UTC
	}
	return z.Location()
}
