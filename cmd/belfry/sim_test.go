package main

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/sim"
)

var wall = regexp.MustCompile(`"wall_ms":\d+`)

// One object, the same for the same flags, but for the time that it took.
func TestSimJSON(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"--seed 7 --hours 0.2 --faults heavy", "--seed 7 --seeds 3 --hours 0.2 --replicas 3"} {
		args := append(strings.Fields(args), "--json")
		first := belfry(t, "", append([]string{"sim"}, args...)...)
		again := belfry(t, "", append([]string{"sim"}, args...)...)
		if first.status != 0 || wall.ReplaceAllString(first.out, "") != wall.ReplaceAllString(again.out, "") {
			t.Errorf("%v: status %d, %s, and then %s", args, first.status, first.out, again.out)
		}
		var v map[string]any
		if err := json.Unmarshal([]byte(first.out), &v); err != nil {
			t.Fatalf("%v: %v in %q", args, err, first.out)
		}
		want := []string{"cluster_hours", "digest", "faults", "occurrences", "seed", "violations", "wall_ms"}
		if got := slices.Sorted(maps.Keys(v)); !slices.Equal(got, want) {
			t.Errorf("%v: the fields are %v, want %v", args, got, want)
		}
		if digest, ok := v["digest"].(string); !ok || len(digest) != 16 {
			t.Errorf("%v: digest %v, want 16 digits as a text", args, v["digest"])
		}
		for _, name := range []string{"cluster_hours", "faults", "occurrences", "seed", "wall_ms"} {
			if n, ok := v[name].(float64); !ok || n <= 0 {
				t.Errorf("%v: %s is %v, want a number above 0", args, name, v[name])
			}
		}
	}
}

func TestSimForPeople(t *testing.T) {
	t.Parallel()
	r := belfry(t, "", strings.Fields("sim --seed 7 --seeds 2 --hours 0.1")...)
	for _, want := range []string{"2 clusters of 5 replicas lived 0.4 hours, from seed 7 on\n", "\n0 promises broken\n", "\ndigest "} {
		if r.status != 0 || !strings.Contains(r.out, want) {
			t.Errorf("status %d, got\n%swant in it %q", r.status, r.out, want)
		}
	}
}

func TestSimMisuse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, want string }{
		{"--hours 0", "--hours and --replicas: give more than 0"},
		{"--hours NaN", "give more than 0"},
		{"--hours 2000", "1000 at most"},
		{"--replicas 0", "give more than 0"},
		{"--replicas 10", "give 1 to 9"},
		{"--faults some", "give light or heavy"},
		{"--seeds 0", "give 1 to 1000000"},
		{"--seed -1", "invalid argument"},
		{"--only 1000", "there is no move 1000"},
		{"--without -1", "there is no move -1"},
		{"--seeds 2 --only 1", "--without and --only are about one seed"},
		{"--jobs other", "there is no job"},
		{"now", "it takes flags alone"},
	} {
		if r := belfry(t, "", append([]string{"sim"}, strings.Fields(c.args)...)...); r.status != statusMisuse || r.out != "" || !strings.Contains(r.err, c.want) {
			t.Errorf("sim %s: status %d, %q, %q; want %d and %q", c.args, r.status, r.out, r.err, statusMisuse, c.want)
		}
	}
	for args, want := range map[string]string{"--faults some --json": "unknown rate", "--json --nope": "unknown flag", "--seed x --json": "invalid argument"} {
		r := belfry(t, "", append([]string{"sim"}, strings.Fields(args)...)...)
		if r.status != statusMisuse || !strings.HasPrefix(r.out, `{"error":"sim: `+want) {
			t.Errorf("sim %s: status %d, %q", args, r.status, r.out)
		}
	}
}

// generous is a store that lets everybody win.
type generous struct {
	idempotency.Store
	idempotency.Leaders
	fence *int64
}

func (s generous) Claim(ctx context.Context, x idempotency.Session, nonce int64, c []idempotency.Claim) ([]idempotency.Answer, error) {
	a, err := s.Store.Claim(ctx, x, nonce, c)
	for i := range a {
		if a[i].Verdict == idempotency.Taken {
			*s.fence++
			a[i] = idempotency.Answer{Verdict: idempotency.Won, Fence: *s.fence}
		}
	}
	return a, err
}

// What is broken is told with the least that breaks it, the last moments and the command that shows it again.
func TestSimTellsWhatIsBroken(t *testing.T) {
	t.Parallel()
	s := simulation{seeds: 2, json: true, trial: sim.Trial{Seed: 2, Hours: .4, Replicas: 5, Faults: sim.Heavy, Store: func(s idempotency.Store) idempotency.Store {
		fence := int64(1 << 20)
		return generous{s, s.(idempotency.Leaders), &fence}
	}}}
	var out, errOut bytes.Buffer
	err := s.run(t.Context(), &out, &errOut)
	if err == nil {
		t.Fatal("a store that lets everybody win breaks nothing")
	}
	for _, want := range []string{"seed 2: after ", "\nof what was done to it this is enough (", "\nits last moments", "  VIOLATION  ", "\nto see it again:\n  belfry sim --seed 2 --hours 0.2 --replicas "} {
		if !strings.Contains(errOut.String(), want) {
			t.Errorf("there is no %q in\n%s", want, errOut.String())
		}
	}
	if !strings.Contains(out.String(), `"violations":2,`) {
		t.Errorf("standard output is %s, want 2 violations", out.String())
	}
}
