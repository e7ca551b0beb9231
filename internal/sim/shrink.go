package sim

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
)

// Shrunk is the least that was found of a trial which still breaks the same law.
type Shrunk struct {
	Trial  Trial // Only, Hours, Jobs and Replicas are as small as they got
	Report Report
	Tries  int
	Trace  []string // the last lines of its history
}

// traced is how many lines of a history a Shrunk keeps.
const traced = 60

// Shrink looks for less of a trial that breaks the law that it broke: without moves, in halves, quarters and so on, with fewer
// jobs and replicas. It ends after so many tries, or when ctx does, with the best it has.
func (t Trial) Shrink(ctx context.Context, r Report, tries int) Shrunk {
	t.Trace = nil
	s := &shrinker{ctx: ctx, law: Law(r.Err), left: tries, best: t, report: r}
	s.best.Hours = float64(r.At/roundTakes+1) * roundTakes.Hours()
	if r.At%roundTakes == 0 {
		s.best.Hours = float64(r.At/roundTakes) * roundTakes.Hours()
	}
	s.moves(numbers(r))
	s.jobs()
	s.replicas()
	s.moves(numbers(s.report))
	last := &tail{}
	shown := s.best
	shown.Trace = last
	s.report = shown.Run(context.WithoutCancel(ctx))
	return Shrunk{Trial: s.best, Report: s.report, Tries: tries - s.left, Trace: last.lines}
}

// Law is the name of the law that an error says is broken: what stands before its first colon.
func Law(err error) string {
	if err == nil {
		return ""
	}
	law, _, _ := strings.Cut(err.Error(), ":")
	return law
}

type shrinker struct {
	ctx    context.Context
	law    string
	left   int
	best   Trial
	report Report
}

// try keeps a trial where it breaks the law too.
func (s *shrinker) try(t Trial) bool {
	if s.left <= 0 || s.ctx.Err() != nil {
		return false
	}
	s.left--
	r := t.Run(s.ctx)
	if r.Err == nil || s.ctx.Err() != nil || Law(r.Err) != s.law {
		return false
	}
	s.best, s.report = t, r
	return true
}

// numbers are those of the moves that were made before the law was broken.
func numbers(r Report) (list []int) {
	for _, m := range r.Moves {
		if m.At <= r.At {
			list = append(list, m.N)
		}
	}
	return list
}

// moves leaves out what it can of them.
func (s *shrinker) moves(keep []int) {
	for size := max(len(keep)/2, 1); size > 0; size /= 2 {
		for i := 0; i < len(keep); {
			rest := slices.Delete(slices.Clone(keep), i, min(i+size, len(keep)))
			t := s.best
			t.Only, t.Without = rest, nil
			if len(rest) == 0 {
				t.Only = []int{0}
			}
			if s.try(t) {
				keep = rest
			} else {
				i += size
			}
		}
	}
}

func (s *shrinker) jobs() {
	for _, name := range jobNames {
		t := s.best
		if len(t.Jobs) == 0 {
			t.Jobs = jobNames
		}
		t.Jobs = slices.DeleteFunc(slices.Clone(t.Jobs), func(has string) bool { return has == name })
		if len(t.Jobs) > 0 && len(t.Jobs) < len(jobNames) {
			s.try(t)
		}
	}
}

func (s *shrinker) replicas() {
	for n := 1; n < s.best.withDefaults().Replicas; n++ {
		t := s.best
		if t.Replicas = n; s.try(t) {
			return
		}
	}
}

// tail keeps the last lines of what is written to it, each by one write.
type tail struct {
	lines []string
	part  []byte
}

func (t *tail) Write(b []byte) (int, error) {
	t.part = append(t.part, b...)
	for {
		line, rest, whole := bytes.Cut(t.part, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		t.lines, t.part = append(t.lines, string(line)), slices.Clone(rest)
		if len(t.lines) > traced {
			t.lines = t.lines[1:]
		}
	}
}

// Flags are those of belfry sim that show a trial again.
func (t Trial) Flags() string {
	t = t.withDefaults()
	text := fmt.Sprintf("--seed %d --hours %.1f --replicas %d --faults %s", t.Seed, t.Hours, t.Replicas, t.Faults)
	if len(t.Jobs) > 0 {
		text += " --jobs " + strings.Join(t.Jobs, ",")
	}
	for _, list := range []struct {
		flag  string
		moves []int
	}{{"--only", t.Only}, {"--without", t.Without}} {
		if len(list.moves) > 0 {
			text += " " + list.flag + " " + strings.ReplaceAll(strings.Trim(fmt.Sprint(list.moves), "[]"), " ", ",")
		}
	}
	return text
}
