package demo

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/fleet"
	"github.com/belfry-go/belfry/ring"
)

const (
	tick = 50 * time.Millisecond
	// settle is how often the store is asked whether all is done, once the ledger says so.
	settle = 300 * time.Millisecond
	// patience is how long after the last due nothing may happen before the show ends with what there is.
	patience = 20 * time.Second
)

// show directs the replicas and tells what happens. One goroutine runs it.
type show struct {
	o      Options
	screen *Screen
	fleet  *fleet.Fleet
	site   *site
	ledger *ledger
	url    string
	kept   string

	nights []time.Time
	tally  *tally
	begun  int // nights announced as due
	over   int // nights announced as charged

	ring  *ring.Ring // the last that all replicas agreed on; nil before
	kills []*kill

	refused, taken int
	peak           int64
	moved          time.Time // of the last line in the ledger
	asked          time.Time // when the store was asked last
}

func newShow(o Options, s *Screen, f *fleet.Fleet, at *site, l *ledger, url string) *show {
	return &show{o: o, screen: s, fleet: f, site: at, ledger: l, url: url}
}

func replicaName(i int) string { return fmt.Sprintf("replica-%d", i) }

// play starts the replicas, lets the nights pass, and returns when all is done or nothing moves any more.
func (w *show) play(ctx context.Context) error {
	if err := w.gather(ctx); err != nil {
		return err
	}
	w.nights = w.o.schedule(time.Now())
	w.tally = newTally(w.nights)
	if err := w.fleet.Go(plan{Nights: w.nights, Provider: w.url, Table: w.site.book.table}); err != nil {
		return err
	}
	ticks := time.NewTicker(tick)
	defer ticks.Stop()
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("demo: ended early: %w", context.Cause(ctx))
		case e := <-w.fleet.Events():
			w.see(e)
			if err := w.fleet.Note(e); err != nil {
				return err
			}
			w.tellRing()
		case <-ticks.C:
			ended, err := w.step(ctx, time.Now())
			if err != nil || ended {
				return err
			}
		}
	}
}

// gather starts the replicas one after the other's address is known, and waits for all to gossip.
func (w *show) gather(ctx context.Context) error {
	for i := 1; i <= w.o.Replicas; i++ {
		pid, err := w.fleet.Start(replicaName(i))
		if err != nil {
			return err
		}
		w.screen.line("", replicaName(i), "started as process %d", pid)
		if i == 1 || i == w.o.Replicas { // the first one's address is the others' seed
			if err := w.fleet.Await(ctx, w.see, w.fleet.Joined); err != nil {
				return err
			}
		}
	}
	return nil
}

// see takes what a replica reports.
func (w *show) see(e fleet.Event) {
	switch e.Kind {
	case fleet.Refused:
		if e.Cause != "fenced" { // which is the refusal of a finish
			w.refused++
		}
	case fleet.TakenUp:
		w.taken++
	case fleet.Memory:
		w.peak = max(w.peak, e.Bytes)
	}
}

// tellRing tells who owns what, when all replicas agree on something new.
func (w *show) tellRing() {
	names := w.fleet.Agreed()
	if len(names) == 0 || (w.ring != nil && slices.Equal(names, w.ring.Members())) {
		return
	}
	r, err := ring.New(names, nil)
	if err != nil {
		return // the replicas say so in their logs, and nothing is charged
	}
	w.ring = r
	share := map[string]int{}
	for i := 1; i <= w.o.Customers; i++ {
		share[r.Owner(customer(i))]++
	}
	w.screen.line("", "ring", "all agree: %s", shares(names, share, "customers"))
}

// shares is "a 333 customers, b 333, c 334".
func shares(names []string, share map[string]int, what string) string {
	var list []string
	for _, n := range names {
		list = append(list, fmt.Sprintf("%s %s", n, number(share[n])))
	}
	if len(list) > 0 && what != "" {
		list[0] += " " + what
	}
	return strings.Join(list, ", ")
}

// step reads the ledger, tells what is new in it, kills what is to be killed, and says whether the show is over.
func (w *show) step(ctx context.Context, now time.Time) (ended bool, err error) {
	calls, err := w.ledger.next()
	if err != nil {
		return false, err
	}
	for _, c := range calls {
		w.tally.add(c)
		w.noticeHandOver(c)
		w.moved = now
	}
	w.tellNights(now)
	w.killOne(now)
	if err := w.restart(now); err != nil {
		return false, err
	}
	return w.isOver(ctx, now)
}

func (w *show) tellNights(now time.Time) {
	for w.begun < len(w.nights) && !now.Before(w.nights[w.begun]) {
		w.begun++
		w.screen.line(bold, w.night(w.begun-1), "is due: each replica claims its own customers")
	}
	for w.over < w.begun {
		n := w.tally.nights[w.over]
		by := shares(names(n.byReplica), n.byReplica, "")
		if n.paid == 0 {
			return
		}
		if n.paid < w.o.Customers {
			w.screen.progress(w.night(w.over), "%s of %s charged: %s%s", number(n.paid), number(w.o.Customers), by, w.trouble())
			return
		}
		w.screen.line(green, w.night(w.over), "all %s charged within %.1f s: %s%s", number(n.paid),
			n.last.Sub(w.nights[w.over]).Seconds(), by, w.trouble())
		w.over++
	}
}

func (w *show) night(i int) string { return fmt.Sprintf("night %d", i+1) }

// trouble is what was refused and taken up so far.
func (w *show) trouble() string {
	if w.refused+w.taken == 0 {
		return ""
	}
	return fmt.Sprintf("; so far %s taken up, %s refused", plural(w.taken, "run"), plural(w.refused, "claim"))
}

// isOver asks the store once the ledger says that everything was charged: a charge comes before its finish.
func (w *show) isOver(ctx context.Context, now time.Time) (bool, error) {
	last := w.nights[len(w.nights)-1]
	if now.Before(last) || len(w.down()) > 0 {
		return false, nil
	}
	if now.Sub(last) > patience && now.Sub(w.moved) > patience {
		w.screen.line(red, "end", "nothing has moved for %v", patience)
		return true, nil
	}
	if w.over < len(w.nights) || now.Sub(w.asked) < settle {
		return false, nil
	}
	w.asked = now
	r, err := readRows(ctx, w.site.store, w.site.namespace)
	return len(r.done) == w.o.Nights*w.o.Customers && w.fleet.Agreed() != nil, err
}

// finish counts, when all replicas have ended, and tells the summary.
func (w *show) finish(ctx context.Context) (Result, error) {
	calls, err := w.ledger.next()
	if err != nil {
		return Result{}, err
	}
	for _, c := range calls {
		w.tally.add(c)
	}
	r, err := readRows(ctx, w.site.store, w.site.namespace)
	if err != nil {
		return Result{}, err
	}
	s := story{Result: count(w.o, w.nights, w.tally, r), once: w.tally.once(), other: r.other, peak: w.peak, kept: w.kept}
	s.Store = string(w.site.client.URL().Kind())
	s.RefusedClaims = w.refused
	for _, k := range w.kills {
		s.Kills++
		s.killed = append(s.killed, k.name)
		s.HandoverMS = max(s.HandoverMS, k.handOver.Milliseconds())
	}
	w.screen.text("\n%s", strings.TrimSuffix(s.text(), "\n"))
	return s.Result, nil
}
