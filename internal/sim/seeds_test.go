package sim_test

import (
	"cmp"
	_ "embed"
	"errors"
	"flag"
	"io"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/belfry-go/belfry/internal/sim"
)

//go:embed testdata/seeds.txt
var failedOnce string

// onRecord is how many lines it has, so that none is lost unseen.
const onRecord = 16

// TestSeeds replays the seeds that failed once; testdata/seeds.txt says what its lines are.
func TestSeeds(t *testing.T) {
	t.Parallel()
	n := 0
	for line := range strings.Lines(failedOnce) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		field := strings.Split(line, " | ")
		if len(field) != 4 {
			t.Fatalf("want seed | flags | what was broken | mended by, have %q", line)
		}
		n++
		r, err := parseRecord(field[0], field[1])
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if err := r.replay(t); err != nil {
			t.Errorf("%s: %v", line, err)
		}
	}
	if n != onRecord {
		t.Errorf("%d seeds are on record, want %d", n, onRecord)
	}
	t.Logf("%d seeds that failed once, replayed", n)
}

// record is what is played again: a trial, where it has hours, or what TestExplore does.
type record struct {
	trial   sim.Trial
	options sim.Options
}

// parseRecord reads a seed and flags: those of TestExplore, or those of belfry sim as a trial that fails prints them, which may name
// the seed again.
func parseRecord(seed, flags string) (r record, err error) {
	set := flag.NewFlagSet("seeds", flag.ContinueOnError)
	set.SetOutput(io.Discard)
	x := &r.trial
	faults := func(to *sim.Fault) func(string) error {
		return func(text string) (err error) { *to, err = sim.ParseFault(text); return err }
	}
	set.Func("sim.with", "", faults(&r.options.With))
	set.Func("sim.only", "", faults(&r.options.Only))
	again := set.String("seed", seed, "")
	set.Float64Var(&x.Hours, "hours", 0, "")
	set.IntVar(&x.Replicas, "replicas", 0, "")
	set.Func("faults", "", func(text string) error { x.Faults = sim.Rate(text); return nil })
	set.Func("jobs", "", func(text string) error { x.Jobs = strings.Split(text, ","); return nil })
	set.Func("only", "", numbers(&x.Only))
	set.Func("without", "", numbers(&x.Without))
	if flags == "-" {
		flags = ""
	}
	if err := set.Parse(strings.Fields(flags)); err != nil {
		return r, err
	}
	x.Seed, err = strconv.ParseUint(seed, 10, 64)
	if err == nil && (*again != seed || set.NArg() > 0) {
		err = errors.New("the flags name another seed, or there is more than flags")
	}
	return r, cmp.Or(err, x.Validate())
}

// numbers reads numbers with commas.
func numbers(to *[]int) func(string) error {
	return func(text string) error {
		for _, one := range strings.Split(text, ",") {
			n, err := strconv.Atoi(one)
			if err != nil {
				return err
			}
			*to = append(*to, n)
		}
		return nil
	}
}

func (r record) replay(t *testing.T) error {
	if r.trial.Hours > 0 {
		return r.trial.Run(t.Context()).Err
	}
	_, err := sim.Explore(r.trial.Seed, r.options)
	return err
}

// TestReplayIsRecordable demands of a printed replay command that it can go on record as it is, and says the same there.
func TestReplayIsRecordable(t *testing.T) {
	t.Parallel()
	for _, x := range []sim.Trial{
		{Seed: 1, Hours: 1, Replicas: 5, Faults: sim.Light},
		{Seed: 177, Hours: .4, Replicas: 2, Faults: sim.Heavy, Jobs: []string{"plain", "sick"}, Only: []int{1, 3}},
		{Seed: 177, Hours: .4, Replicas: 5, Faults: sim.Heavy, Without: []int{2, 5}},
	} {
		r, err := parseRecord(strconv.FormatUint(x.Seed, 10), x.Flags())
		if err != nil || !reflect.DeepEqual(r.trial, x) {
			t.Errorf("%s\nis read as %+v, %v, want %+v", x.Flags(), r.trial, err, x)
		}
	}
	for _, flags := range []string{"--seed 2", "--only x", "--replicas 99", "--jobs none", "more"} {
		if _, err := parseRecord("1", flags); err == nil {
			t.Errorf("%q is taken", flags)
		}
	}
}
