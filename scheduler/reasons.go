package scheduler

// why is what a reason means: of a run or a stretch that has ended, and of a run that waits. Empty: it is not so used.
type why struct{ ended, waits string }

// reasons are those that the core and the stores write.
var reasons = map[string]why{
	"exhausted": {ended: "Its handler returned an error on the last attempt that Job.Retry allows."},
	"permanent": {ended: "Its handler returned an error that trying again cannot mend (jobs.Permanent)."},
	"retry":     {waits: "Its handler returned an error, and another attempt follows (Job.Retry)."},
	"panic": {
		ended: "Its handler panicked on the last attempt that Job.Retry allows.",
		waits: "Its handler panicked, and another attempt follows (Job.Retry).",
	},
	"timeout": {
		ended: "The last attempt that Job.Retry allows took longer than Job.Timeout.",
		waits: "An attempt took longer than Job.Timeout, and another one follows (Job.Retry).",
	},
	"stalled": {
		ended: "The last attempt that Job.Retry allows did not call jobs.Progress for Job.StallAfter.",
		waits: "An attempt did not call jobs.Progress for Job.StallAfter, and another one follows (Job.Retry).",
	},
	"abandoned": {ended: "A replica that ran it died or lost its lease, and it is not started again: that has happened too often, or the job says so (Job.Crash), or it was retired."},
	"canceled":  {ended: "A person canceled it while it was at work."},
	"overtaken": {ended: "A newer run of its key ended it, or it was still waiting when that came (jobs.OverlapCancel)."},
	"overlap": {
		ended: "Another run of its key was at work, or waited, when it was due (Job.Overlap).",
		waits: "Another run of its key was at work when it was due; it comes after that.",
	},
	"deadline":  {ended: "It could not start within Job.StartWithin."},
	"handler":   {ended: "Its handler found nothing to do (jobs.Skip)."},
	"expired":   {ended: "Nobody claimed it before it was older than the horizon (Config.Horizon)."},
	"by hand":   {ended: "A person asked for it to be skipped, or canceled it while it waited.", waits: "A person asked for it."},
	"retired":   {ended: "Its job was retired: no live replica had had its code for long."},
	"released":  {waits: "The replica that ran it gave it back, since it stopped or lost its session; that attempt does not count."},
	"unstarted": {waits: "A replica that had claimed it gave it back before it started; no attempt was made by that."},

	"paused":     {ended: "The job was paused at that instant, or between two pauses of which the first was not decided yet when the second began."},
	"age":        {ended: "When it was decided it was older than Missed.MaxAge, or the horizon, lets a late due be."},
	"late":       {ended: "It was decided too late, after Config.MissedAfter, and Job.Missed lets no such due run, or only the latest."},
	"max":        {ended: "It was decided too late, and as many newer dues ran as Job.Missed, or one decision, allows."},
	"unknown":    {ended: "It was of an earlier schedule that was a program's own, so that nobody could tell its dues any more."},
	"source":     {ended: "The KeySource failed until the due was older than the horizon; what was missed are the keys of the partitions that were not finished."},
	"unfinished": {ended: "Its keys were not all claimed before the due was older than the horizon; what was missed are the keys of the partitions that were not finished."},

	"": {waits: "It was not started when it was decided: no worker was free, or another run of its key came first."},
}

// reasonFor says why a run ended so, or waits.
func reasonFor(reason string, ended bool) string {
	w := reasons[reason]
	s := w.waits
	if ended {
		s = w.ended
	}
	if s == "" && reason != "" {
		return "The reason recorded is \"" + reason + "\"."
	}
	return s
}
