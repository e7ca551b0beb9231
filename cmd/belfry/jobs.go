package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/belfry-go/belfry/cmd/belfry/internal/show"
	"github.com/belfry-go/belfry/scheduler"
)

func jobsCommand() *cobra.Command {
	var o operation
	cmd := o.operate(&cobra.Command{
		Use:   "jobs",
		Short: "List the jobs of a namespace",
		Long: `List the jobs that the store knows: their schedules, when each is due next, what
became of the last run, whether they are the leader's, paused or retired, and which
live replicas have them.`,
		Example: "  belfry jobs --store postgres://app@db.example.com/billing --namespace billing",
	}, func(args []string) (action, error) {
		return o.jobs, noArguments(args)
	})
	o.storeFlags()
	return cmd
}

func (o *operation) jobs(ctx context.Context, c *scheduler.Client) error {
	list, err := c.Jobs(ctx)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return o.known(ctx, c)
	}
	if o.json {
		return writeJSON(o.out, viewAll(list, o.viewJob))
	}
	now := time.Now()
	t := show.NewTable("JOB", "SCHEDULE", "NEXT", "", "LAST RUN", "", "STATE", "PLACEMENT", "REPLICAS")
	for _, j := range list {
		next, last, ended := "-", "-", ""
		untilNext := ""
		if !j.Next.IsZero() {
			next, untilNext = show.Instant(j.Next), show.Age(j.Next, now)
		}
		if j.Last != nil {
			last, ended = stateOf(*j.Last), whenOf(*j.Last, now)
			if key := ownKey(j.Last.ID, j.Keyed); key != "" {
				last += ", key " + key
			}
		}
		placement := ""
		if j.Leader {
			placement = "leader"
		}
		t.Add(j.Name, show.Line(show.Clip(j.Schedule, maxShown)), next, untilNext, last, ended, jobState(j, now), placement, some(j.Announced))
	}
	return t.Write(o.out)
}

// maxShown is how many characters of a long text a table shows.
const maxShown = 60

// jobState says what keeps a job from its dues.
func jobState(j scheduler.JobStatus, now time.Time) string {
	switch {
	case !j.Retired.IsZero():
		return "retired " + show.Age(j.Retired, now)
	case !j.PausedFrom.IsZero():
		return "paused " + show.Age(j.PausedFrom, now)
	case len(j.Announced) == 0:
		return "no replica has it"
	case j.Efficiency:
		return "efficiency"
	}
	return "active"
}

// some is a few of the names.
func some(names []string) string {
	const most = 3
	words := make([]string, 0, most)
	for _, n := range names[:min(most, len(names))] {
		words = append(words, show.Word(n))
	}
	text := strings.Join(words, ", ")
	if more := len(names) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
