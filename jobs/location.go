package jobs

import "time"

// Location is the zone to show a schedule's dues in: the one that its crontab lines
// name, by the zone data that its dues are computed with (package time may have other
// data). It is UTC where none names a zone, or several are named.
func (s Schedule) Location() *time.Location {
	if s.fault() != nil {
		return time.UTC
	}
	loc, name := time.UTC, ""
	s.mapped(func(leaf Schedule) Schedule {
		r, ok := leaf.cron()
		switch {
		case !ok || r.zone == "" || r.zone == name:
		case name == "":
			loc, name = r.Location(), r.zone
		default:
			loc = time.UTC
		}
		return leaf
	})
	return loc
}
