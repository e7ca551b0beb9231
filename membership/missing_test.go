package membership

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// A name is missing from when its process vanishes until it lives again, or for 15 minutes; who leaves is not.
func TestMissing(t *testing.T) {
	t.Parallel()
	if missingFor != jobs.MissingFor {
		t.Fatalf("a member is missing for %v, jobs say %v", missingFor, jobs.MissingFor)
	}
	bubble(t, 1, func(f *fleet) {
		all := slices.Clone(f.serve(5, Fast))
		see := func(most time.Duration, cs []*Cluster, want ...string) {
			f.Helper()
			f.within(most, fmt.Sprintf("missing %v", want), func() bool {
				return !slices.ContainsFunc(cs, func(c *Cluster) bool { return !slices.Equal(c.Missing(), want) })
			})
		}
		see(time.Second, all)
		at := addrs(all)
		f.net.Split(at[:2], at[2:])
		see(10*time.Second, all[:2], "m02", "m03", "m04")
		see(10*time.Second, all[2:], "m00", "m01")
		f.net.Heal()
		see(merged, all)

		joining := f.join(Config{Name: "never-announced", Seeds: at[:1]}) // it is no member yet
		time.Sleep(5 * time.Second)
		f.crash(joining)
		f.crash(all[4])
		if err := all[3].Close(); err != nil {
			f.Fatal(err)
		}
		f.all = slices.DeleteFunc(f.all, func(c *Cluster) bool { return c == all[3] })
		rest := all[:3]
		see(10*time.Second, rest, "m04")
		f.agree(10*time.Second, rest, names(3))
		time.Sleep(time.Second)
		see(time.Second, rest, "m04")

		again := f.join(Config{Name: "m04", Seeds: at[:1]}) // another process
		f.announce(again, Serving)
		see(10*time.Second, rest)
		f.crash(again)
		see(10*time.Second, rest, "m04")
		time.Sleep(missingFor)
		see(0, rest)
	})
}
