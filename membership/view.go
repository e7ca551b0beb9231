package membership

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/memberlist"
)

// Gossip brings events in bursts (a boot, a merge). A snapshot follows the last event of a burst by quiet, and its
// first by atMost: soon enough that a hand-over does not wait for it, seldom enough that rings are not built in vain.
const (
	quiet  = 20 * time.Millisecond
	atMost = 200 * time.Millisecond
)

// snapshot is one view, immutable once published.
type snapshot struct {
	owners  []string
	members []Member
	facts   map[string]map[string]string
	changed chan struct{} // closed when a snapshot with other owners follows
}

// view is what gossip has told. It is memberlist's delegate: those calls come with memberlist's lock held or from
// its only packet goroutine, so they take v.mu for a moment, never block and never call back.
type view struct {
	logger *slog.Logger
	node   string // ours, in memberlist

	// refuse counts and logs.
	refuse func(why Refusal, thing string, from any, what string)

	kick  chan struct{} // capacity 1: something has changed; a second token would say nothing new
	tell  chan struct{} // capacity 1: what we say of ourselves has changed
	hints chan struct{} // capacity 1: somebody asked this replica to look

	packets atomic.Int64  // that gossip has filled
	sent    chan struct{} // capacity 1: packets has risen

	mu       sync.Mutex
	said     meta            // what the program announced
	self     peer            // what the others are told: said, unless we are held back
	expect   int             // replicas to have seen before we serve; 0: not held back (any more)
	together time.Time       // own nothing before
	others   map[string]peer // by memberlist's node name
	lost     lost
	now      *snapshot
	window   time.Time // when came was last reset
	came     int       // processes that were new to us since
}

func newView(self meta, expect int, logger *slog.Logger, n *counters) *view {
	return &view{
		logger: logger,
		refuse: n.refuse,
		node:   self.node(),
		kick:   make(chan struct{}, 1),
		tell:   make(chan struct{}, 1),
		hints:  make(chan struct{}, 1),
		sent:   make(chan struct{}, 1),
		said:   self,
		self:   peer{meta: self},
		expect: expect,
		others: map[string]peer{},
		lost:   lost{},
		now:    &snapshot{changed: make(chan struct{})},
	}
}

// run publishes coalesced snapshots until ctx ends, and lets a replica that was held back go in time.
func (v *view) run(ctx context.Context) {
	late := time.NewTimer(expectMost)
	defer late.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-late.C:
			v.release()
			continue
		case <-v.kick:
		}
		v.settle(ctx)
		v.publish()
	}
}

// settle returns when no event has come for quiet, or after atMost.
func (v *view) settle(ctx context.Context) {
	last := time.NewTimer(atMost)
	defer last.Stop()
	for {
		pause := time.NewTimer(quiet)
		select {
		case <-v.kick:
			pause.Stop()
			continue
		case <-pause.C:
		case <-last.C:
		case <-ctx.Done():
		}
		pause.Stop()
		return
	}
}

// publish replaces the snapshot by one of all that is known now.
func (v *view) publish() {
	v.mu.Lock()
	v.speakLocked()
	old := v.now
	v.now = v.buildLocked(old)
	next := v.now
	if slices.Equal(old.owners, next.owners) {
		next.changed = old.changed
	} else {
		close(old.changed)
	}
	node := v.self
	v.mu.Unlock()

	v.report(node, old, next)
}

func (v *view) buildLocked(old *snapshot) *snapshot {
	peers := slices.AppendSeq([]peer{v.self}, maps.Values(v.others))
	owners, verdicts := elect(v.self.meta, peers)
	if time.Now().Before(v.together) {
		owners = nil
	}
	s := &snapshot{
		owners:  owners,
		facts:   map[string]map[string]string{},
		changed: make(chan struct{}),
	}
	for _, p := range peers {
		d := verdicts[p.node()]
		s.members = append(s.members, Member{Name: p.name, Boot: p.boot, Addr: p.addr, Zone: p.zone, Version: p.version,
			State: d.state, Reason: d.reason, Since: since(old, p.boot, d.state)})
	}
	slices.SortFunc(s.members, func(a, b Member) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Boot, b.Boot))
	})
	best := map[string]meta{}
	for _, p := range v.others {
		if b, ok := best[p.name]; ok && b.newer(p.meta) {
			continue
		}
		best[p.name] = p.meta
		s.facts[p.name] = p.facts
	}
	return s
}

// since returns when the process with this boot id came into the state, as far as the old snapshot knows.
func since(old *snapshot, boot string, s State) time.Time {
	for _, m := range old.members {
		if m.Boot == boot && m.State == s {
			return m.Since
		}
	}
	return time.Now()
}

// report logs what an operator acts on: other owners, and that this replica itself was overruled.
func (v *view) report(self peer, old, next *snapshot) {
	if !slices.Equal(old.owners, next.owners) {
		v.logger.Info("owners changed", "owners", len(next.owners),
			"came", without(next.owners, old.owners), "went", reasons(without(old.owners, next.owners), next.members))
	}
	is, was := find(next.members, self.boot), find(old.members, self.boot)
	if is.State == Unfit && self.state == Serving && is.Reason != was.Reason {
		v.logger.Warn("this replica owns nothing", "reason", is.Reason)
	}
}

// reasons adds to each name why it is no owner: its state and reason, or that it is out of reach.
func reasons(went []string, members []Member) []string {
	for i, name := range went {
		at := slices.IndexFunc(members, func(m Member) bool { return m.Name == name })
		switch {
		case at < 0:
			went[i] = name + ": left, or out of reach"
		case members[at].Reason == "":
			went[i] = fmt.Sprintf("%s: %s", name, members[at].State)
		default:
			went[i] = fmt.Sprintf("%s: %s: %s", name, members[at].State, members[at].Reason)
		}
	}
	return went
}

// without returns the elements of a that b lacks.
func without(a, b []string) []string {
	return slices.DeleteFunc(slices.Clone(a), func(s string) bool { return slices.Contains(b, s) })
}

// find returns the member with a boot id, or a zero one.
func find(members []Member, boot string) Member {
	i := slices.IndexFunc(members, func(m Member) bool { return m.Boot == boot })
	if i < 0 {
		return Member{}
	}
	return members[i]
}

// who names a process for people: its replica's name and its boot id.
func (v *view) who(node string) string {
	v.mu.Lock()
	defer v.mu.Unlock()
	p, ok := v.others[node]
	if l, was := v.lost[node]; !ok && was {
		p, ok = l.peer, true
	}
	switch {
	case node == v.node:
		return "this replica"
	case !ok:
		return ""
	}
	return fmt.Sprintf("%s (boot %s)", p.name, p.boot)
}

// snapshot returns the current one.
func (v *view) snapshot() *snapshot {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.now
}

// say changes what we say of ourselves, and the own view with it at once. It reports whether there is something new to
// be sent.
func (v *view) say(m meta) (changed bool) {
	v.mu.Lock()
	v.said = m
	changed = v.speakLocked()
	v.mu.Unlock()
	v.publish()
	return changed
}

// locate sets the own address.
func (v *view) locate(addr string) {
	v.mu.Lock()
	v.self.addr = addr
	v.mu.Unlock()
	v.publish()
}

// identity returns what the program says of us now.
func (v *view) identity() meta {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.said
}

// targets returns the addresses of live members, and those of lost ones to call now.
func (v *view) targets() (live map[string]bool, lost []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	live = map[string]bool{}
	for _, p := range v.others {
		live[p.addr] = true
	}
	return live, v.lost.pick(v.others, time.Now())
}

// alone reports whether no other process is known to live.
func (v *view) alone() bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	return len(v.others) == 0
}

// poke asks run for a snapshot.
func (v *view) poke() {
	select {
	case v.kick <- struct{}{}:
	default:
	}
}

// NodeMeta is memberlist's question for our meta.
func (v *view) NodeMeta(int) []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.self.encode()
}

// NotifyJoin is memberlist's word that a process lives.
func (v *view) NotifyJoin(n *memberlist.Node) { v.learn(n) }

// NotifyUpdate is memberlist's word that a process announced something else.
func (v *view) NotifyUpdate(n *memberlist.Node) { v.learn(n) }

func (v *view) learn(n *memberlist.Node) {
	if n.Name == v.node {
		return
	}
	m, err := decodeMeta(n.Meta)
	if err != nil {
		return // NotifyAlive refused it
	}
	v.mu.Lock()
	delete(v.lost, n.Name)
	if _, known := v.others[n.Name]; !known {
		v.came++
	}
	v.others[n.Name] = peer{meta: m, addr: n.Address()}
	v.mu.Unlock()
	v.poke()
}

// NotifyLeave is memberlist's word that a process has left or failed. It does not say which, but one that leaves
// says draining first.
func (v *view) NotifyLeave(n *memberlist.Node) {
	v.mu.Lock()
	if p, ok := v.others[n.Name]; ok {
		delete(v.others, n.Name)
		if p.state != Draining {
			v.lost.add(n.Name, p, time.Now())
		}
	}
	v.mu.Unlock()
	v.poke()
}

// The channels of memberlist for data of the application. Nothing of ours goes there.

// LocalState has none.
func (v *view) LocalState(bool) []byte { return nil }

// MergeRemoteState ignores it.
func (v *view) MergeRemoteState([]byte, bool) {}
