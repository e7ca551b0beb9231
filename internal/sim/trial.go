package sim

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/core"
	"github.com/belfry-go/belfry/internal/sim/oracle"
)

// A round of a trial: moves are made until lastMove before the calm; what was due up to judgedBy of it has ended when the round
// does; and from quietBy on all is as if there had been no faults.
const (
	roundTakes = 12 * time.Minute
	roundCalm  = 9 * time.Minute
	lastMove   = 5 * time.Second
	judgedBy   = 20 * time.Second
	quietBy    = 90 * time.Second
)

// Trial is a world of hours: replicas with jobs of all sorts, which faults, people and deploys befall in rounds. Each round
// ends in a calm, in which it is judged. All that happens follows from these fields.
type Trial struct {
	Seed     uint64
	Hours    float64 // it lasts whole rounds of 12 minutes, so many at least. 0: 1
	Replicas int     // 0: 5
	Faults   Rate    // empty: Light

	Jobs    []string // which of its jobs there are. Nil: all
	Without []int    // moves that are not made, by number
	Only    []int    // where there are any, no others are made; 0 is none

	Store func(idempotency.Store) idempotency.Store // see Config
	Trace io.Writer
}

// Report is what became of a trial.
type Report struct {
	Digest      string
	Faults      int     // moves that were faults
	Occurrences int     // runs that ended, and dues that were decided not to run
	Events      int
	Moves       []Move        // that were made
	At          time.Duration // when it ended: how long the cluster lived
	Err         error         // the law that was broken; nil: none
}

func (t Trial) withDefaults() Trial {
	t.Hours = cmp.Or(t.Hours, 1)
	t.Replicas = cmp.Or(t.Replicas, 5)
	t.Faults = cmp.Or(t.Faults, Light)
	return t
}

func (t Trial) rounds() int {
	rounds := int(t.Hours * float64(time.Hour/roundTakes))
	if time.Duration(rounds)*roundTakes < time.Duration(t.Hours*float64(time.Hour)) {
		rounds++
	}
	return max(rounds, 1)
}

// Validate says what is wrong with a trial.
func (t Trial) Validate() error {
	t = t.withDefaults()
	switch {
	case !(t.Hours > 0 && t.Hours <= maxHours):
		return fmt.Errorf("sim: %v hours: give more than 0, and %d at most", t.Hours, maxHours)
	case t.Replicas < 1 || t.Replicas > maxReplicas:
		return fmt.Errorf("sim: %d replicas: give 1 to %d", t.Replicas, maxReplicas)
	case !slices.Contains(Rates, t.Faults):
		return fmt.Errorf("sim: unknown rate of faults %.20q: give light or heavy", string(t.Faults))
	}
	for _, name := range t.Jobs {
		if !slices.Contains(jobNames, name) {
			return fmt.Errorf("sim: there is no job %.20q in a trial, they are %v", name, jobNames)
		}
	}
	last := len(t.moves())
	for _, n := range slices.Concat(t.Without, t.Only) {
		if n < 0 || n > last {
			return fmt.Errorf("sim: there is no move %d in this trial, they are 1 to %d", n, last)
		}
	}
	return nil
}

const (
	maxHours    = 1000
	maxReplicas = 9
)

func (t Trial) moves() []Move { return draw(t.Seed, t.rounds(), t.Replicas, t.Faults) }

// Run lets the world live, until its end, that of ctx, or until a law is broken. It panics where the trial is not valid.
func (t Trial) Run(ctx context.Context) Report {
	if err := t.Validate(); err != nil {
		panic(err)
	}
	t = t.withDefaults()
	x := newTrial(t)
	report := Report{}
	for _, m := range t.moves() {
		if slices.Contains(t.Without, m.N) || len(t.Only) > 0 && !slices.Contains(t.Only, m.N) {
			continue
		}
		report.Moves = append(report.Moves, m)
		x.w.At(m.At, func() { x.make(m) })
	}
	for round := 0; round < t.rounds() && report.Err == nil && ctx.Err() == nil; round++ {
		report.Err = x.round(time.Duration(round) * roundTakes)
	}
	for _, m := range report.Moves {
		if m.At <= x.w.now && isFault(m.Kind) {
			report.Faults++
		}
	}
	report.Digest, report.At, report.Events = x.w.Digest(), x.w.now, x.w.Stats.Events
	report.Occurrences = x.occurrences()
	return report
}

// trial is one that lives.
type trial struct {
	w       *World
	dice    *rand.Rand // of what is drawn once for all
	sources []*Source
	hangs   time.Duration // until when sources do
	jammed  int           // the replica whose workers are; -1: none
	cuts    map[int][]uint64
	moods   map[Fault]int // how many moves want them
	poisons []*poison
	fatal   map[oracle.ID]bool
	right   bool // all clocks are
}

func newTrial(t Trial) *trial {
	x := &trial{
		dice: rand.New(rand.NewPCG(t.Seed, 0x2545f4914f6cdd1d)), jammed: -1,
		cuts: map[int][]uint64{}, moods: map[Fault]int{}, fatal: map[oracle.ID]bool{},
	}
	c := Config{Seed: t.Seed, Replicas: t.Replicas, Timing: hourly(), Trace: t.Trace, Store: t.Store, Spare: 3}
	c.Fatal = func(id oracle.ID) bool { return x.fatal[id] }
	c.Faults = all &^ (Elector | Policies)
	if x.dice.IntN(3) == 0 {
		c.Faults |= Elector
	}
	c.Jobs = slices.DeleteFunc(x.jobs(), func(j Job) bool { return len(t.Jobs) > 0 && !slices.Contains(t.Jobs, j.Name) })
	x.w = New(c)
	x.w.mood = 0
	return x
}

// hourly is Normal with a horizon and a retention that a world of hours comes to see.
func hourly() core.Config {
	c := Normal()
	c.Partitions, c.Horizon, c.Retention = 64, 10*time.Minute, 15*time.Minute
	return c
}

// round lives through one round that begins at an instant.
func (x *trial) round(begin time.Duration) error {
	w := x.w
	w.Storm()
	x.right = x.clocksRight()
	if err := w.Run(begin + roundCalm); err != nil {
		return err
	}
	x.calm()
	quiet := begin + roundCalm + quietBy
	if err := w.Run(quiet); err != nil {
		return err
	}
	before := w.Stats
	w.Stats = newStats()
	w.Oracle.Calm()
	err := w.Run(begin + roundTakes)
	if err == nil {
		err = cmp.Or(w.Settle(begin+roundCalm+judgedBy), x.judge(quiet))
	}
	w.Stats.Events += before.Events
	w.Oracle.Forget()
	return err
}

// make makes a move.
func (x *trial) make(m Move) {
	x.w.note("", "move", m.N, m.Kind, m.Replica, m.For)
	kindOf(m.Kind).do(x, m, rand.New(rand.NewPCG(m.Dice, uint64(m.N))))
}

func (x *trial) r(m Move) *Replica { return x.w.replicas[m.Replica] }

func (x *trial) occurrences() (n int) {
	for _, j := range x.w.cfg.Jobs {
		for _, count := range x.w.Oracle.Tally(j.Name) {
			n += count
		}
		n += x.w.Oracle.Starts(j.Name)
	}
	return n
}
