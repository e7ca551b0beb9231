package bench

import (
	"context"
	crand "crypto/rand"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/fleet"
	"github.com/belfry-go/belfry/membership"
)

// GossipOptions are what to measure.
type GossipOptions struct {
	Members int           // 2 to 100
	Profile string        // fast, lan or wan
	Rounds  int           // and drains, closes and changes of state: 1 to 100
	Idle    time.Duration // 1 s to 1 h
}

// profiles are by name; most is several times what the slowest news takes.
var profiles = map[string]struct {
	is   membership.Profile
	most time.Duration
}{
	"fast": {membership.Fast, time.Minute},
	"lan":  {membership.LAN, 2 * time.Minute},
	"wan":  {membership.WAN, 5 * time.Minute},
}

func (o GossipOptions) validate() error {
	var unknown error
	if _, ok := profiles[o.Profile]; !ok {
		unknown = fmt.Errorf("bench: --profile %q: give fast, lan or wan", o.Profile)
	}
	return errors.Join(between("members", o.Members, 2, 100), unknown, between("rounds", o.Rounds, 1, 100),
		between("idle", o.Idle, time.Second, time.Hour))
}

// gossip is one measurement. One goroutine runs it.
type gossip struct {
	o      GossipOptions
	settle time.Duration // after the boot
	log    io.Writer
	*views

	joins, closes, drainedCloses []time.Duration
}

// Gossip measures members that gossip and do nothing else, and tells log how far it is. It starts this program
// again, with the arguments "bench member NAME", which must lead to Member. When it returns, those processes have
// ended and the files are gone.
func Gossip(ctx context.Context, o GossipOptions, log io.Writer) (GossipReport, error) {
	if err := o.validate(); err != nil {
		return GossipReport{}, err
	}
	g := &gossip{o: o, settle: 5 * time.Second, log: log}
	return g.run(ctx)
}

func (g *gossip) run(ctx context.Context) (GossipReport, error) {
	r := GossipReport{Members: g.o.Members, Profile: g.o.Profile, Idle: g.o.Idle.Seconds()}
	key := make([]byte, 32)
	_, _ = crand.Read(key) // never fails, by its documentation
	profile := profiles[g.o.Profile]
	// Drain is how long they may take to end: all leave at once, on a machine that may be small.
	spec := fleet.Spec{Profile: profile.is, Secrets: [][]byte{key}, Timing: fleet.Timing{Drain: 15 * time.Second}}
	err := withNoise(&r.Timer, func() error {
		return withFleet(ctx, spec, "member", func(f *fleet.Fleet) error {
			g.views = &views{fleet: f, most: profile.most, last: map[string]fleet.Event{}}
			return g.measure(ctx, &r)
		})
	})
	return r, err
}

func (g *gossip) measure(ctx context.Context, r *GossipReport) error {
	boot, err := g.boot(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(g.log, "all started: %v; settling for %v, then idle for %v\n", boot.Round(100*time.Microsecond), g.settle, g.o.Idle)
	r.Boot = millis(boot)
	if err := g.idle(ctx, r); err != nil {
		return err
	}
	lost := g.lost
	if err := measure(ctx, g.o.Rounds, g.log,
		event{"a member is unfit", &r.Unfit, g.unfit},
		event{"a member drains", &r.Drained, g.drained},
		event{"a member closes", &r.Closed, g.closed},
		event{"a member is killed", &r.Killed, g.killed}); err != nil {
		return err
	}
	r.LostBusy = g.lost - lost
	r.Joined, r.CloseTook, r.DrainedCloseTook = summarise(g.joins), summarise(g.closes), summarise(g.drainedCloses)
	return nil
}

// boot has one member join, and then at once all others, who call it. It is from the word to the last of them until
// all see all. The processes run by then: on a small machine their start takes far longer than what is measured.
func (g *gossip) boot(ctx context.Context) (time.Duration, error) {
	fmt.Fprintf(g.log, "starting %d members\n", g.o.Members)
	seed := nth("member", 0)
	if _, err := g.fleet.Start(seed); err != nil {
		return 0, err
	}
	g.fleet.Tell(seed, order{Do: join})
	if err := g.await(ctx, ignore, g.fleet.Joined); err != nil {
		return 0, err
	}
	for i := 1; i < g.o.Members; i++ {
		if _, err := g.fleet.Start(nth("member", i)); err != nil {
			return 0, err
		}
	}
	up := 1 // the seed
	if err := g.await(ctx, func(e fleet.Event) {
		if e.Kind == fleet.Up && e.Replica != seed {
			up++
		}
	}, func() bool { return up == g.o.Members }); err != nil {
		return 0, err
	}
	var at time.Time
	for _, name := range g.fleet.Live() {
		if name != seed {
			at = time.Now()
			g.fleet.Tell(name, order{Do: join})
		}
	}
	last, err := g.until(ctx, "", g.whole)
	return last.Sub(at), err
}

// whole is the view of one who sees all.
func (g *gossip) whole(e fleet.Event) bool { return len(e.Names) == g.o.Members }

// without is the view of one who does not see name.
func without(name string) func(fleet.Event) bool {
	return func(e fleet.Event) bool { return !sees(e, name) }
}

// idle measures what each member uses while nothing happens.
func (g *gossip) idle(ctx context.Context, r *GossipReport) error {
	if err := g.wait(ctx, g.settle); err != nil {
		return err
	}
	before, err := g.usage(ctx)
	if err != nil {
		return err
	}
	lost := g.lost
	if err := g.wait(ctx, g.o.Idle); err != nil {
		return err
	}
	after, err := g.usage(ctx)
	if err != nil {
		return err
	}
	r.LostIdle = g.lost - lost
	var cpu, sent, received []float64
	for name, to := range after {
		from := before[name]
		sent = append(sent, perSecond(from, to, float64(to.Sent-from.Sent)))
		received = append(received, perSecond(from, to, float64(to.Received-from.Received)))
		used, err := cores(from, to)
		if err != nil {
			return err
		}
		cpu = append(cpu, thousandths(1000*used))
	}
	r.CPU, r.Sent, r.Received = stats(cpu), stats(sent), stats(received)
	return nil
}

// usage is what each member has used so far.
func (g *gossip) usage(ctx context.Context) (map[string]fleet.Event, error) {
	used := map[string]fleet.Event{}
	for _, name := range g.fleet.Live() {
		g.fleet.Tell(name, order{Do: tellUsage})
	}
	err := g.await(ctx, func(e fleet.Event) {
		if e.Kind == fleet.Usage {
			used[e.Replica] = e
		}
	}, func() bool { return len(used) == g.o.Members })
	return used, err
}

// any is a member, at any moment of a second: probes and re-joining have rhythms of their own.
func (g *gossip) any(ctx context.Context) (string, error) {
	err := g.wait(ctx, rand.N(time.Second))
	live := g.fleet.Live()
	g.leaving = live[rand.IntN(len(live))]
	return g.leaving, err
}

// killed is from a member's SIGKILL until all others have lost it.
func (g *gossip) killed(ctx context.Context) (time.Duration, error) {
	name, err := g.any(ctx)
	if err != nil {
		return 0, err
	}
	at := time.Now()
	g.fleet.Kill(name)
	last, err := g.until(ctx, name, without(name))
	if err != nil {
		return 0, err
	}
	return last.Sub(at), g.join(ctx, name)
}

// closed is from a member's Close until all others have lost it.
func (g *gossip) closed(ctx context.Context) (time.Duration, error) {
	name, err := g.any(ctx)
	if err != nil {
		return 0, err
	}
	spread, took, err := g.tell(ctx, name, order{Do: leave}, without(name))
	if err != nil {
		return 0, err
	}
	g.closes = append(g.closes, took)
	return spread, g.replace(ctx, name)
}

// drained is from a member's word that it drains until all others have lost it. It closes then.
func (g *gossip) drained(ctx context.Context) (time.Duration, error) {
	name, err := g.any(ctx)
	if err != nil {
		return 0, err
	}
	spread, _, err := g.tell(ctx, name, order{Do: membership.Draining.String()}, without(name))
	if err != nil {
		return 0, err
	}
	_, took, err := g.tell(ctx, name, order{Do: leave}, without(name))
	if err != nil {
		return 0, err
	}
	g.drainedCloses = append(g.drainedCloses, took)
	return spread, g.replace(ctx, name)
}

// unfit is from a member's word that it is unfit until all others see why. It serves again then.
func (g *gossip) unfit(ctx context.Context) (time.Duration, error) {
	name, err := g.any(ctx)
	if err != nil {
		return 0, err
	}
	const reason = "the store cannot be reached"
	spread, _, err := g.tell(ctx, name, order{Do: membership.Unfit.String(), Reason: reason},
		func(e fleet.Event) bool { return e.Reasons[name] == reason })
	if err != nil {
		return 0, err
	}
	_, _, err = g.tell(ctx, name, order{Do: membership.Serving.String()}, g.whole)
	g.leaving = ""
	return spread, err
}

// tell has a member do something. spread is from its beginning until all others see what match tells, took is how
// long it was busy with it.
func (g *gossip) tell(ctx context.Context, name string, o order, match func(fleet.Event) bool) (spread, took time.Duration, err error) {
	s := g.spread(name, match)
	g.fleet.Tell(name, o)
	var done fleet.Event
	err = g.await(ctx, func(e fleet.Event) {
		s.note(e)
		if e.Kind == fleet.Done && e.Pid == g.fleet.Pid(name) {
			done = e
		}
	}, func() bool { return done.Pid != 0 && s.all() })
	return s.last().Sub(done.At), done.Took, err
}

// replace lets a member go that has left, and starts a fresh one.
func (g *gossip) replace(ctx context.Context, name string) error {
	g.fleet.Release(name)
	return g.join(ctx, name)
}

// join starts a member in place of one that is gone, and waits until all see all.
func (g *gossip) join(ctx context.Context, name string) error {
	at := time.Now()
	if _, err := g.fleet.Start(name); err != nil {
		return err
	}
	g.fleet.Tell(name, order{Do: join})
	last, err := g.until(ctx, "", g.whole)
	if err != nil {
		return err
	}
	g.joins = append(g.joins, last.Sub(at))
	g.leaving = ""
	return nil
}
