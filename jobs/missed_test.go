package jobs_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

func TestMissed(t *testing.T) {
	t.Parallel()
	job := jobs.Job{Name: "j", Schedule: jobs.Every(time.Hour), Run: func(context.Context, jobs.Occurrence) error { return nil }}
	for name, c := range map[string]struct {
		missed jobs.Missed
		want   string // of the error; empty: it is good
	}{
		"zero":                 {jobs.Missed{}, ""},
		"latest, aged":         {jobs.Missed{MaxAge: time.Hour}, ""},
		"skip":                 {jobs.Missed{Policy: jobs.MissedSkip}, ""},
		"all":                  {jobs.Missed{Policy: jobs.MissedAll}, ""},
		"all, most":            {jobs.Missed{Policy: jobs.MissedAll, Max: 10_000, MaxAge: time.Hour}, ""},
		"too many":             {jobs.Missed{Policy: jobs.MissedAll, Max: 10_001}, "Missed.Max is 10001; set it from 1 to 10000"},
		"fewer than none":      {jobs.Missed{Policy: jobs.MissedAll, Max: -1}, "Missed.Max is -1; set it from 1 to 10000"},
		"a number for latest":  {jobs.Missed{Max: 2}, "Missed.Max is 2; set it from 1 to 10000 with jobs.MissedAll"},
		"an age for skip":      {jobs.Missed{Policy: jobs.MissedSkip, MaxAge: time.Hour}, "Missed.MaxAge is 1h0m0s; set it above 0 with a policy that runs late dues"},
		"an age below nothing": {jobs.Missed{MaxAge: -1}, "Missed.MaxAge is -1ns"},
		"no such policy":       {jobs.Missed{Policy: 7}, "missed policy 7 is unknown; use jobs.MissedLatest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			j := job
			j.Missed = c.missed
			err := j.Validate()
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	all := job
	all.Missed.Policy = jobs.MissedAll
	if got := all.WithDefaults().Missed; got != (jobs.Missed{Policy: jobs.MissedAll, Max: 100}) {
		t.Errorf("the defaults of all are %+v", got)
	}
	all.Guarantee = jobs.Efficiency
	if err := all.Validate(); err == nil || !strings.Contains(err.Error(), "an efficiency job never runs a late due") {
		t.Errorf("an efficiency job: %v", err)
	}
}
