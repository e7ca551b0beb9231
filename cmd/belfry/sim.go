package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/belfry-go/belfry/cmd/belfry/internal/show"
	"github.com/belfry-go/belfry/internal/sim"
)

const (
	maxSeeds = 1_000_000

	// Of a trial that breaks a law: how many others are tried to find less that breaks it, and for how long.
	shrinkTries = 400
	shrinkFor   = 5 * time.Minute
)

// simulation is what belfry sim is asked for.
type simulation struct {
	trial sim.Trial
	seeds int
	json  bool
}

func simCommand() *cobra.Command {
	var s simulation
	var faults string
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Simulate clusters under faults, and judge what they do",
		Long: `Simulate a cluster for hours, in seconds: its replicas run this program's own code, about
50 runs a minute, while processes are killed and paused, networks are cut, the store
fails and forgets answers, clocks are set, code is deployed, and people steer. Every 12
minutes there is a calm. An oracle of its own judges every step by what is promised:
nothing is lost, nothing is completed twice, nobody who was overtaken changes anything,
and in the calm all is in time.

What happens follows from the flags alone, on any machine. Where a promise is broken,
standard error says which, with the least that was found to break it and the command that
shows it again, and the exit status is 1. It is 2 where a flag is wrong.`,
		Example: `  belfry sim --seed 7 --hours 10 --faults heavy
  belfry sim --seeds 2000 --hours 0.6 --json`,
		// A flag that is wrong is told as --json says, which is known only when all flags were read.
		DisableFlagParsing: true,
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.Uint64Var(&s.trial.Seed, "seed", 1, "what all chance is drawn from")
	f.Float64Var(&s.trial.Hours, "hours", 1, "how long the cluster lives; rounded up to 0.2")
	f.IntVar(&s.trial.Replicas, "replicas", 5, "how many replicas")
	f.StringVar(&faults, "faults", string(sim.Light), "how many faults: `light`, about 20 an hour, or heavy, about 75")
	f.IntVar(&s.seeds, "seeds", 1, "how many clusters, of this seed and those after it, on all processors")
	f.StringSliceVar(&s.trial.Jobs, "jobs", nil, "only these of the `jobs`")
	f.IntSliceVar(&s.trial.Without, "without", nil, "without these faults and changes, by `number`")
	f.IntSliceVar(&s.trial.Only, "only", nil, "with these alone, by `number`; 0 is none")
	f.BoolVar(&s.json, "json", false, `print one JSON object, or {"error": "…"}`)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := f.Parse(args)
		if help, _ := f.GetBool("help"); help && err == nil {
			return cmd.Help()
		}
		s.trial.Faults = sim.Rate(faults)
		if err == nil {
			err = s.check(f)
		}
		if err != nil {
			err = fmt.Errorf("sim: %s", strings.TrimPrefix(err.Error(), "sim: "))
			return misused(cmd.OutOrStdout(), s.json, args, err)
		}
		return s.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr())
	}
	return cmd
}

// check refuses what cannot be simulated.
func (s *simulation) check(f *pflag.FlagSet) error {
	if f.NArg() > 0 {
		return fmt.Errorf("%q: it takes flags alone; see belfry sim --help", f.Arg(0))
	}
	if s.seeds < 1 || s.seeds > maxSeeds {
		return fmt.Errorf("--seeds %d: give 1 to %d", s.seeds, maxSeeds)
	}
	if s.seeds > 1 && len(s.trial.Without)+len(s.trial.Only) > 0 {
		return errors.New("--without and --only are about one seed: leave out --seeds")
	}
	if f.Changed("hours") && !(s.trial.Hours > 0) || f.Changed("replicas") && s.trial.Replicas < 1 {
		return errors.New("--hours and --replicas: give more than 0")
	}
	return s.trial.Validate()
}

// viewSimulation is what --json prints.
type viewSimulation struct {
	Seed         uint64  `json:"seed"`
	Digest       string  `json:"digest"`
	ClusterHours float64 `json:"cluster_hours"`
	Faults       int     `json:"faults"`
	Occurrences  int     `json:"occurrences"`
	Violations   int     `json:"violations"`
	Wall         int64   `json:"wall_ms"`
}

func (s *simulation) run(ctx context.Context, out, errOut io.Writer) error {
	sim.Roomy()
	begun := time.Now()
	var sum sim.Summary
	var first struct {
		trial  sim.Trial
		report sim.Report
	}
	err := s.trial.Each(ctx, s.seeds, runtime.GOMAXPROCS(0), func(t sim.Trial, r sim.Report) {
		if sum.Add(r); r.Err == nil {
			return
		}
		fmt.Fprintf(errOut, "seed %d: after %v: %s\n", t.Seed, r.At, show.Lines(r.Err.Error()))
		if first.report.Err == nil {
			first.trial, first.report = t, r
		}
	})
	if err != nil {
		return err
	}
	v := viewSimulation{
		Seed: s.trial.Seed, Digest: sum.Digest(), ClusterHours: sum.Hours(), Faults: sum.Faults, Occurrences: sum.Occurrences,
		Violations: sum.Violations, Wall: time.Since(begun).Milliseconds(),
	}
	if err := s.print(out, v); err != nil || sum.Violations == 0 {
		return err
	}
	within, cancel := context.WithTimeout(ctx, shrinkFor)
	defer cancel()
	printShrunk(errOut, first.trial.Shrink(within, first.report, shrinkTries))
	return coded{errSilent, statusFailed}
}

func (s *simulation) print(out io.Writer, v viewSimulation) error {
	if s.json {
		return writeJSON(out, v)
	}
	_, err := fmt.Fprintf(out, `%d clusters of %d replicas lived %.1f hours, from seed %d on
%d faults, %d runs and dues that came to their end
%d promises broken
digest %s, in %d ms
`, s.seeds, s.trial.Replicas, v.ClusterHours, v.Seed, v.Faults, v.Occurrences, v.Violations, v.Digest, v.Wall)
	return err
}

// printShrunk tells the least that breaks a law.
func printShrunk(w io.Writer, s sim.Shrunk) {
	fmt.Fprintf(w, "\nseed %d, after %v: %s\n", s.Trial.Seed, s.Report.At, show.Lines(s.Report.Err.Error()))
	fmt.Fprintf(w, "\nof what was done to it this is enough (%d tries):\n", s.Tries)
	for _, m := range s.Report.Moves {
		fmt.Fprintf(w, "  %v\n", m)
	}
	fmt.Fprintln(w, "\nits last moments, in seconds:")
	for _, line := range s.Trace {
		fmt.Fprintf(w, "  %s\n", show.Line(line))
	}
	fmt.Fprintf(w, "\nto see it again:\n  belfry sim %s\n", s.Trial.Flags())
}
