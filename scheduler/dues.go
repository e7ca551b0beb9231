package scheduler

import (
	"context"
	"log/slog"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

const (
	// maxTold bounds the jobs of one Add that have a line of their own in the log.
	maxTold = 50
	// firstDues is how many dues that line has.
	firstDues = 3
)

// logAdded says of each job when it runs, since that is where a slip in a schedule shows.
func (s *Scheduler) logAdded(added []jobs.Job) {
	log := s.cfg.Logger.With("namespace", s.cfg.Namespace, "replica", s.cfg.Members.Self())
	if !log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	now := time.Now()
	for i, j := range added {
		if i == maxTold {
			log.Info("more jobs added", "jobs", len(added)-maxTold)
			return
		}
		log.Info("job added", append([]any{"job", j.Name, "schedule", j.Schedule.String()}, dues(j.Schedule, now)...)...)
	}
}

// dues are the first dues after now as log attributes: in UTC, and by the clock of the schedule's zone if it has one.
func dues(s jobs.Schedule, now time.Time) []any {
	loc := s.Location()
	var next, local []string
	for t, ok := s.Next(now); ok && len(next) < firstDues; t, ok = s.Next(t) {
		next = append(next, t.Format(time.RFC3339))
		local = append(local, t.In(loc).Format(time.RFC3339))
	}
	switch {
	case len(next) == 0 && s == jobs.Manual():
		return []any{"next", "none: it runs only when it is triggered"}
	case len(next) == 0:
		return []any{"next", "none: its last due is over"}
	case loc == time.UTC:
		return []any{"next", next}
	}
	return []any{"next", next, "local", local}
}
