package rule

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/belfry-go/belfry/idempotency"
)

// Refit maps a set of partitions to another number of them; one number divides the other. A key's partition is its
// slot mod P, so a partition that splits leaves what is true of it to each of its parts, while of
// partitions that merge only what is true of all of them is true of the whole.
func Refit(set []byte, from, to int) []byte {
	refitted := Bitmap(to)
	for p := range to {
		all := true
		for q := p % from; q < from; q += to {
			all = all && set[q/8]>>(q%8)&1 == 1
		}
		if all {
			refitted[p/8] |= 1 << (p % 8)
		}
	}
	return refitted
}

// RefitPasses maps the passes over all open dues of a namespace. One pass is left of each due, that of the lowest
// session: it says what all of them said together, because partitions that merge may be finished in different passes.
func RefitPasses(passes []idempotency.Pass, from, to int) (keep, drop []idempotency.Pass) {
	slices.SortFunc(passes, func(a, b idempotency.Pass) int {
		return cmp.Or(a.Due.Compare(b.Due), strings.Compare(a.Job, b.Job), cmp.Compare(a.Session, b.Session))
	})
	for _, p := range passes {
		if n := len(keep); n > 0 && keep[n-1].Job == p.Job && keep[n-1].Due.Equal(p.Due) {
			Or(keep[n-1].Finished, p.Finished)
			keep[n-1].Keys += p.Keys
			drop = append(drop, p)
			continue
		}
		finished := Bitmap(from)
		Or(finished, p.Finished)
		p.Finished = finished
		keep = append(keep, p)
	}
	for i := range keep {
		keep[i].Finished = Refit(keep[i].Finished, from, to)
		keep[i].Mine = keep[i].Finished
	}
	return keep, drop
}

// CheckPartitions refuses a number of partitions that no namespace can have.
func CheckPartitions(p int) error {
	if p < 1 || p > 1<<16 || p&(p-1) != 0 {
		return fmt.Errorf("%d partitions; set a power of two up to %d", p, 1<<16)
	}
	return nil
}
