package scheduler

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

const (
	// zonesFact is the name under which the members learn which zone data a replica computes its dues with.
	zonesFact = "zones"
	// maxNamed bounds the members that a log line names for each version.
	maxNamed = 5
)

// tellZones says what became of ZONEINFO where it is set: whoever sets it wants other clocks than the program's, and has
// to know whether they are in use.
func (r *runner) tellZones() {
	path, zones := os.Getenv("ZONEINFO"), jobs.ZoneVersion()
	if err := jobs.ZoneErr(); err != nil {
		r.log.Warn("ZONEINFO is set and zones are the program's own all the same", "zones", zones, "err", err)
	} else if path != "" {
		r.log.Info("zones are those that ZONEINFO names", "ZONEINFO", path, "zones", zones)
	}
}

// watchZones hears the members' zone data when the owners change, and once a lease for what changes without them: one that
// drains tells its own until it is gone.
func (r *runner) watchZones() {
	tick := time.NewTicker(r.cfg.Lease)
	defer tick.Stop()
	differ := ""
	for {
		_, changed := r.cfg.Members.Watch()
		differ = r.hearZones(differ)
		select {
		case <-changed:
		case <-tick.C:
		case <-r.base.Done():
			return
		}
	}
}

// hearZones compares the zone data of the others with ours, and logs when what differs is not what differed before.
func (r *runner) hearZones(before string) string {
	zones := jobs.ZoneVersion()
	others := otherZones(r.cfg.Members.Facts(), zones)
	switch {
	case others == before:
	case others == "":
		r.log.Info("the members have the same zone data again", "zones", zones)
	default:
		r.log.Warn("members have other zone data: their dues may differ from ours where a country changed its clocks; "+
			"run one build, with one ZONEINFO or none, on all", "zones", zones, "others", others)
	}
	return others
}

// otherZones names the members with other zone data than ours, by the version of theirs, such as "2025b: a, b". Those who do
// not tell are left out: names alone, or replicas of before there was this fact.
func otherZones(facts map[string]map[string]string, ours string) string {
	by := map[string][]string{}
	for name, f := range facts {
		if v := f[zonesFact]; v != "" && v != ours {
			by[v] = append(by[v], name)
		}
	}
	var list []string
	for _, version := range slices.Sorted(maps.Keys(by)) {
		names := by[version]
		slices.Sort(names)
		text := version + ": " + strings.Join(names[:min(maxNamed, len(names))], ", ")
		if more := len(names) - maxNamed; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		list = append(list, text)
	}
	return strings.Join(list, "; ")
}
