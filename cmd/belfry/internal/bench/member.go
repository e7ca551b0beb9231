package bench

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/fleet"
	"github.com/belfry-go/belfry/internal/procs"
	"github.com/belfry-go/belfry/membership"
	"github.com/belfry-go/belfry/ring"
)

// order is what the parent tells a member to do: to join, tellUsage, leave, or to announce the state of that name.
type order struct{ Do, Reason string }

const (
	join      = "join" // comes first, and once
	tellUsage = "usage"
	leave     = "leave"
)

// member is one member without store and scheduler, in a process of its own.
type member struct {
	cluster *membership.Cluster
	layout  string
	report  func(fleet.Event)
}

// Member runs one member in a child process: told to, it joins and serves, reports what it sees, and does what it is
// told, until its parent lets go or ctx ends.
func Member(ctx context.Context, parent *procs.Parent) error {
	err := runMember(ctx, parent)
	if errors.Is(context.Cause(ctx), procs.ErrReleased) {
		return nil // in the middle of whatever; and where all leave at once, Close may not have time enough
	}
	return err
}

func runMember(ctx context.Context, parent *procs.Parent) (err error) {
	var spec fleet.Spec
	if err := parent.Receive(&spec); err != nil {
		return err
	}
	report := func(e fleet.Event) {
		// A parent that does not listen any more is about to end this process, or has died.
		_ = parent.Report(e)
	}
	// What replicas announce, so that gossip carries as much here.
	alone, err := ring.New([]string{spec.Name}, nil)
	if err != nil {
		return err
	}
	report(fleet.Event{Kind: fleet.Up})
	if err := parent.Receive(&order{}); err != nil { // to join
		return err
	}
	slog.SetLogLoggerLevel(slog.LevelWarn) // to write what the parent is told anyway would be part of what is measured
	cluster, err := spec.Join(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, cluster.Close()) }()
	m := member{cluster: cluster, layout: alone.Layout(), report: report}
	m.report(fleet.Event{Kind: fleet.Joined, Addr: cluster.Addr()})
	watching, stop := context.WithCancel(ctx)
	defer stop()
	go m.watch(watching)
	return m.serve(ctx, parent)
}

func (m member) serve(ctx context.Context, parent *procs.Parent) error {
	err := m.announce(ctx, order{Do: membership.Serving.String()})
	for err == nil {
		var o order
		if err = parent.Receive(&o); err == nil {
			err = m.obey(ctx, o)
		}
	}
	return err
}

func (m member) obey(ctx context.Context, o order) error {
	at := time.Now()
	switch o.Do {
	case tellUsage:
		gossip := m.cluster.Stats()
		m.report(fleet.Event{Kind: fleet.Usage, At: at, CPU: fleet.CPU(), Sent: gossip.Sent, Received: gossip.Received})
		return nil
	case leave:
		if err := m.cluster.Close(); err != nil {
			return err
		}
	default:
		if err := m.announce(ctx, o); err != nil {
			return err
		}
	}
	m.report(fleet.Event{Kind: fleet.Done, At: at, Took: time.Since(at)})
	return nil
}

func (m member) announce(ctx context.Context, o order) error {
	return m.cluster.Announce(ctx, o.Do, m.layout, o.Reason, nil)
}

// watch reports each view, as soon as it is there. Only other owners are told at once: the ticker is for the rare
// view where a reason alone has changed, such as that of a member that was lost and came back unfit.
func (m member) watch(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	var told fleet.Event
	for {
		names, changed := m.cluster.Watch()
		e := fleet.Event{Kind: fleet.Owners, At: time.Now(), Names: names, Reasons: m.reasons()}
		if told.Kind == "" || !slices.Equal(e.Names, told.Names) || !maps.Equal(e.Reasons, told.Reasons) {
			m.report(e)
			told = e
		}
		select {
		case <-changed:
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// reasons are why members own nothing, by name, where they say.
func (m member) reasons() map[string]string {
	reasons := map[string]string{}
	for _, o := range m.cluster.Members() {
		if o.State != membership.Serving && o.Reason != "" {
			reasons[o.Name] = o.Reason
		}
	}
	return reasons
}
