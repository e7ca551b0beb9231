package bench

import (
	"strings"
	"testing"
	"time"
)

func TestSummarise(t *testing.T) {
	t.Parallel()
	var hundred []time.Duration
	for i := 100; i > 0; i-- {
		hundred = append(hundred, time.Duration(i)*time.Millisecond)
	}
	for _, c := range []struct {
		in   []time.Duration
		want Stats
	}{
		{nil, Stats{}},
		{[]time.Duration{1500 * time.Microsecond}, Stats{1, 1.5, 1.5, 1.5}},
		{[]time.Duration{2 * time.Millisecond, time.Millisecond}, Stats{2, 1, 2, 2}},
		{hundred, Stats{100, 50, 99, 100}},
	} {
		if got := summarise(c.in); got != c.want {
			t.Errorf("%d samples: got %+v, want %+v", len(c.in), got, c.want)
		}
	}
}

func TestPrint(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	Report{Replicas: 3, Profile: "fast", LeaseMS: 2000, GraceMS: 1000, SweepMS: 200, Killed: Stats{5, 900, 1200, 1200}}.Print(&b)
	for _, part := range []string{"lease 2 s, grace 1 s, sweep 0.2 s", "3 replicas", "start elsewhere               5     900.0    1200.0    1200.0\n"} {
		if !strings.Contains(b.String(), part) {
			t.Errorf("no %q in:\n%s", part, b.String())
		}
	}
}

func TestNoise(t *testing.T) {
	t.Parallel()
	noise := listen()
	if late := noise(); len(late) > 0 && late[0] < 0 {
		t.Errorf("a timer fired %v too early", -late[0])
	}
}
