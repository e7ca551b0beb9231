package oracle_test

import (
	"archive/zip"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The long run: every zone, ten years, twenty lines, and every change of every clock; five minutes on one core.
//
//	go test ./internal/oracle -run 'TestProduct|TestRoundChanges' -count 1 -v -timeout 1h -oracle.zones all
var (
	zoneFlag  = flag.String("oracle.zones", "", "zones to compare in, with commas, or all; fifty odd ones if empty")
	fromFlag  = flag.Int("oracle.from", 2016, "first year of TestProduct")
	yearsFlag = flag.Int("oracle.years", 10, "how many years TestProduct compares")
)

// oddZones are zones whose clocks changed in unusual ways of late, and a few that are merely common.
var oddZones = strings.Fields(`
	Africa/Cairo Africa/Casablanca Africa/El_Aaiun Africa/Juba Africa/Khartoum Africa/Sao_Tome Africa/Windhoek
	America/Asuncion America/Caracas America/Chihuahua America/Ciudad_Juarez America/Grand_Turk America/Havana
	America/Metlakatla America/Miquelon America/New_York America/Nuuk America/Ojinaga America/Port-au-Prince
	America/Punta_Arenas America/Santiago America/Sao_Paulo America/Scoresbysund America/St_Johns Antarctica/Casey
	Antarctica/Macquarie Antarctica/Troll Antarctica/Vostok Asia/Almaty Asia/Amman Asia/Beirut Asia/Damascus Asia/Gaza
	Asia/Kathmandu Asia/Pyongyang Asia/Tehran Asia/Tomsk Atlantic/Azores Australia/Lord_Howe Europe/Chisinau
	Europe/Dublin Europe/Istanbul Europe/Volgograd Pacific/Apia Pacific/Bougainville Pacific/Chatham Pacific/Easter
	Pacific/Fiji Pacific/Norfolk Pacific/Tongatapu`)

// fewZones are for the race detector, under which a walk takes ten times as long.
var fewZones = strings.Fields("Africa/Monrovia Australia/Lord_Howe")

// underRace is set where the race detector is on.
var underRace bool

// zones are those to compare in.
func zones(t *testing.T) []string {
	switch {
	case *zoneFlag == "all":
		data, err := zoneData()
		if err != nil {
			t.Fatal(err)
		}
		return slices.Sorted(maps.Keys(data))
	case *zoneFlag != "":
		return strings.Split(*zoneFlag, ",")
	case underRace:
		return fewZones
	}
	return oddZones
}

// zoneData are the files of zone data by name, from the archive that the product embeds: both go by the same data, so
// that they differ in what they make of it only.
var zoneData = sync.OnceValues(func() (map[string][]byte, error) {
	archive, err := zip.OpenReader(filepath.FromSlash("../../jobs/internal/zone/zoneinfo.zip"))
	if err != nil {
		return nil, err
	}
	defer archive.Close()
	data := make(map[string][]byte)
	for _, f := range archive.File {
		if f.FileInfo().IsDir() {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, err
		}
		b, err := io.ReadAll(r)
		if err = errors.Join(err, r.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		data[f.Name] = b
	}
	return data, nil
})

// location is a zone of that archive.
func location(t *testing.T, name string) *time.Location {
	t.Helper()
	data, err := zoneData()
	if err != nil {
		t.Fatal(err)
	}
	if name == "UTC" {
		return time.UTC
	}
	loc, err := time.LoadLocationFromTZData(name, data[name])
	if err != nil {
		t.Fatalf("zone %s: %v", name, err)
	}
	return loc
}
