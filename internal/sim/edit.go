package sim

import (
	"slices"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// edits is how many versions of the code an exploration may edit its jobs into, beside those that Deploy brings.
const edits = 5

// edited adds those versions to jobs, which have up to two: other schedules, other missed policies, and jobs that are
// removed. In each one the plain job may have another name, under which it does the same. The last version has all
// of them, as the first has, so that what any version has left behind must come to its end after the calm.
func (p *plan) edited(list []Job, second func(low, high int64) time.Duration) []Job {
	r := p.dice
	for i := range list {
		if j := &list[i]; len(j.Plans) == 1 {
			j.Plans = append(j.Plans, j.Plans[0])
		}
	}
	renamed := Job{Name: "renamed", Plans: []Plan{{Gone: true}, {Gone: true}}, Work: p.work}
	for v := range edits {
		last := v == edits-1
		for i := range list {
			j := &list[i]
			x := j.Plans[r.IntN(len(j.Plans))]
			switch {
			case len(x.At) == 0 && r.IntN(2) == 0:
				x.Every = second(1, 8)
				x.Phase = second(0, int64(x.Every/time.Second)-1)
			case len(x.At) > 0 && r.IntN(2) == 0:
				x.At = append(slices.Clone(x.At), second(1, 22))
			}
			x.Missed = []jobs.Missed{{}, {Policy: jobs.MissedSkip}, {Policy: jobs.MissedAll, Max: 3}, {MaxAge: 9 * time.Second}}[r.IntN(4)]
			x.Gone = !last && r.IntN(4) == 0
			j.Plans = append(j.Plans, x)
			if j.Name == "plain" {
				x.Gone = !last && !x.Gone
				renamed.Plans = append(renamed.Plans, x)
			}
		}
	}
	return append(list, renamed)
}

// edit brings a version of the code to all replicas, or to some, one after the other: their processes change jobs as
// they run, leave and come back with it, or die over it. Other edits may be under way.
func (p *plan) edit() {
	w := p.w
	version := 2 + w.rand.IntN(edits)
	w.note("", "edit", version)
	for _, r := range w.replicas {
		if w.rand.IntN(4) == 0 {
			continue // it is forgotten
		}
		w.After(w.between(0, 2*time.Second), func() {
			if w.calm {
				return
			}
			switch w.rand.IntN(4) {
			case 0:
				r.Version = version
				r.Kill()
				r.Restart(w.between(100*time.Millisecond, 2*time.Second))
			case 1:
				r.Version = version
				r.Drain(func() { r.Restart(w.between(50*time.Millisecond, 500*time.Millisecond)) })
			default:
				r.Change(version)
			}
		})
	}
}
