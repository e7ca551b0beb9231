package scheduler

import (
	"fmt"
	"time"

	"github.com/belfry-go/belfry/internal/core"
	"github.com/belfry-go/belfry/jobs"
)

// checkPosture refuses a Posture that nobody could keep.
func (c Config) checkPosture(j jobs.Job) error {
	if _, ok := c.Members.(Missing); ok || j.Posture == jobs.PostureRun {
		return nil
	}
	return fmt.Errorf("scheduler: job %q: its Posture needs Members that can tell who is missing, and Config.Members (%T) has no Missing method; "+
		"use membership.Join, add the method, or leave Posture out", j.Name, c.Members)
}

// missingTicks come when it is to be asked who is missing; never where the members cannot tell.
func (r *runner) missingTicks() (ticks <-chan time.Time, stop func()) {
	if _, ok := r.cfg.Members.(Missing); !ok {
		return nil, func() {}
	}
	t := time.NewTicker(r.cfg.Sweep)
	return t.C, t.Stop
}

// hearMissing tells the core and the log how many members are missing, and how many in sight, where that has changed.
func (r *runner) hearMissing(before core.MissingChanged) core.MissingChanged {
	members, ok := r.cfg.Members.(Missing)
	if !ok {
		return before
	}
	gone := members.Missing()
	now := core.MissingChanged{Missing: len(gone), InSight: len(r.inSight())}
	if now == before {
		return before
	}
	r.mail.post(now)
	switch {
	case now.Missing > before.Missing:
		r.log.Warn("members are missing: they vanished without leaving; jobs with a Posture act by it", "missing", names(gone), "in sight", now.InSight)
	case now.Missing == 0 && before.Missing > 0:
		r.log.Info("no member is missing any more", "in sight", now.InSight)
	}
	return now
}

// inSight are the names of the live members, with this replica's own: those that own keys, and those that only tell us facts.
func (r *runner) inSight() map[string]bool {
	seen := map[string]bool{r.cfg.Members.Self(): true}
	owners, _ := r.cfg.Members.Watch()
	for _, name := range owners {
		seen[name] = true
	}
	for name := range r.cfg.Members.Facts() {
		seen[name] = true
	}
	return seen
}
