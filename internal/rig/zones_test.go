//go:build unix

package rig

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// DP-10, F56: a replica that ZONEINFO gives other zones than the rest is reported by all, by it and by the others; and when it
// has gone, they say that they agree.
func TestOtherZones(t *testing.T) {
	t.Parallel()
	f := newFleet(t, spec{})
	other, err := filepath.Abs(filepath.Join("..", "..", "jobs", "internal", "zone", "testdata", "2023b"))
	if err != nil {
		t.Fatal(err)
	}
	f.start("a", nil)
	f.start("b", nil)
	f.zoneinfo = other
	odd := f.start("odd", nil)
	f.ready()
	f.says("a", "WARN", "members have other zone data", "others=\"zoneinfo-", ": odd\"")
	f.says("b", "WARN", "members have other zone data", "others=\"zoneinfo-", ": odd\"")
	f.says("odd", "INFO", "zones are those that ZONEINFO names", "zones=zoneinfo-")
	f.says("odd", "WARN", "members have other zone data", "zones=zoneinfo-", ": a, b\"")
	f.signal(odd, syscall.SIGTERM)
	f.drained(odd)
	f.says("a", "INFO", "the members have the same zone data again")
	f.says("b", "INFO", "the members have the same zone data again")
	f.settle(law{})
}

// says waits until a line of a replica's log has all words.
func (f *fleet) says(name string, words ...string) {
	f.Helper()
	f.await(name+"'s log has a line with "+strings.Join(words, " … "), func() bool {
		log, err := os.ReadFile(f.log(name))
		if err != nil {
			f.Fatal(err)
		}
		for line := range strings.Lines(string(log)) {
			all := true
			for _, w := range words {
				all = all && strings.Contains(line, w)
			}
			if all {
				return true
			}
		}
		return false
	})
}
