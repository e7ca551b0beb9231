package oracle

import (
	"cmp"
	"time"
)

// contexts are those of handlers that have not ended, by fence, and what their processes, by boot, could not know or do.
type contexts struct {
	alive map[int64]*tenure
	hosts map[string]*host
}

// host is a process that stood still, heard nothing of the store, or had no clock that tells how old its session is, until then.
type host struct{ still, deaf, misled time.Time }

// Quick is how long an answer of the store is under way that nobody makes allowance for.
const Quick = 50 * time.Millisecond

func (o *Oracle) host(boot string) *host {
	h := o.contexts.hosts[boot]
	if h == nil {
		h = &host{}
		o.contexts.hosts[boot] = h
	}
	return h
}

// Still tells that a process stands still for so long.
func (o *Oracle) Still(boot string, d time.Duration) {
	o.demandEnds(boot) // it does not excuse what was late before
	h := o.host(boot)
	h.still = later(h.still, o.now.Add(d))
}

// Misled tells that both clocks of a process say less time than has passed, and that it will know that in so long at the latest.
func (o *Oracle) Misled(boot string, d time.Duration) {
	h := o.host(boot)
	h.misled = later(h.misled, o.now.Add(d))
}

// Unheard tells that an answer of the store to a process is not Quick: it comes, or is given up, in so long.
func (o *Oracle) Unheard(boot string, d time.Duration) {
	h := o.host(boot)
	h.deaf = later(h.deaf, o.now.Add(d))
}

// Gone tells that a process has ended, and its handlers with it.
func (o *Oracle) Gone(boot string) {
	o.demandEnds(boot)
	for fence, t := range o.contexts.alive {
		if t.session.boot == boot {
			delete(o.contexts.alive, fence)
		}
	}
	delete(o.contexts.hosts, boot)
}

// ContextBegins tells that a handler that starts has a context that lives.
func (o *Oracle) ContextBegins(id ID, fence int64) {
	if t := o.tenures[fence]; t != nil && t.row.ID == id && t.holds() { // else others have it, and no law lets it start
		o.host(t.session.boot)
		t.begun = o.now
		o.contexts.alive[fence] = t
	}
}

// ContextEnds tells that a handler has returned, which needs no cause, or that its context was ended.
func (o *Oracle) ContextEnds(fence int64, cause string) {
	t := o.contexts.alive[fence]
	if t == nil {
		return
	}
	o.demandEnd(t)
	delete(o.contexts.alive, fence)
	r := t.row
	if cause == "canceled" && r.told != cause || cause == "overtaken" && !r.overtaken {
		o.fail("context", "%v under fence %d is ended as %s for nothing; it is told to end: %q", r.ID, fence, cause, r.told)
	}
}

// Contexts demands of all handlers that none goes on that has to end.
func (o *Oracle) Contexts() {
	for _, boot := range sorted(o.contexts.hosts, cmp.Compare[string]) {
		o.demandEnds(boot)
	}
}

// demandEnds is demandEnd for each handler of a process.
func (o *Oracle) demandEnds(boot string) {
	for _, fence := range sorted(o.contexts.alive, cmp.Compare[int64]) {
		if t := o.contexts.alive[fence]; t.session.boot == boot {
			o.demandEnd(t)
		}
	}
}

// demandEnd demands that a context has not outlived the trust in its session, nor that a person or a newer run told its run to end.
//
// A process trusts a session for seven tenths of the lease since it sent the last renewal that it knows of, which was before the store
// took that. A fiftieth is for a clock that is slow, and for a loop that does something else. Where the store's clock was set since
// then, it does not say how long ago that was.
//
// It asks once in a sweep whether something is told to end, and then what: when two are over, the context has ended. That counts from
// when answers came in time again.
func (o *Oracle) demandEnd(t *tenure) {
	r, s, host := t.row, t.session, o.host(t.session.boot)
	trust := later(s.expires.Add(-o.rules.Lease*28/100), later(host.still, host.misled).Add(o.rules.Lease/50))
	if s.steps == o.steps && o.now.After(trust) {
		o.fail("context", "%v under fence %d of session %d goes on %v after the session could be trusted", r.ID, t.fence, r.session, o.now.Sub(trust))
	}
	if r.told == "" || !t.holds() {
		return
	}
	heard := later(later(r.since, t.begun), later(host.still, host.deaf)).Add(2*o.rules.Sweep + Quick)
	if o.now.After(heard) && r.steps == o.steps {
		o.fail("context", "%v under fence %d is told to end (%s), and goes on %v after its holder should have heard of it", r.ID, t.fence, r.told, o.now.Sub(heard))
	}
}

// tellEnd notes that a run is told to end.
func (o *Oracle) tellEnd(r *row, why string) { r.told, r.since, r.steps = why, o.now, o.steps }

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
