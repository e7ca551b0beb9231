package etcdelector

import (
	"context"
	"errors"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/belfry-go/belfry/internal/etcdservers"
)

// delete deletes a key by hand.
func (b *bench) delete(key string) {
	b.Helper()
	if _, err := b.servers.Client(b).Delete(context.Background(), key); err != nil {
		b.Fatal(err)
	}
}

// revoke ends the lease of a key.
func (b *bench) revoke(key string) {
	b.Helper()
	c := b.servers.Client(b)
	r, err := c.Get(context.Background(), key)
	if err == nil && r.Count == 1 {
		_, err = c.Revoke(context.Background(), clientv3.LeaseID(r.Kvs[0].Lease))
	}
	if err != nil || r.Count != 1 {
		b.Fatalf("revoke the lease of %q: %v", key, err)
	}
}

// lives reports whether the lease that a key names lives.
func (b *bench) lives(key string) bool {
	b.Helper()
	id, err := strconv.ParseInt(path.Base(key), 16, 64)
	if err != nil {
		b.Fatal(err)
	}
	r, err := b.servers.Client(b).TimeToLive(context.Background(), clientv3.LeaseID(id))
	if err != nil {
		b.Fatal(err)
	}
	return r.TTL > 0
}

// queue waits until n replicas stand.
func (b *bench) queue(n int) []string {
	b.Helper()
	var keys []string
	until(b.T, "all to stand", func() bool { keys = b.keys(); return len(keys) == n })
	return keys
}

// leads wants a term to be that of a key that exists.
func (b *bench) leads(c call) {
	b.Helper()
	r, err := b.servers.Client(b).Get(context.Background(), b.Name()+"/leader/", clientv3.WithFirstCreate()...)
	if err != nil {
		b.Fatal(err)
	}
	if r.Count == 0 || r.Kvs[0].CreateRevision != c.term {
		b.Errorf("leads in term %d, which is not that of the oldest key: %v", c.term, r.Kvs)
	}
}

// TestCampaign is LD-01: a candidate whose lease has ended or whose key has gone while it waits is not treated as the leader when the leader's key
// goes, although Campaign says that it is.
func TestCampaign(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, gone := range []func(string){b.revoke, b.delete} {
		first := b.stand("a")
		first.elected()
		client := b.servers.Client(b)
		client.Watcher = deaf{client.Watcher, b.queue(1)[0]} // else it knows before Campaign returns
		second := b.lead(b.elector(client, b.options("b")))
		own := b.queue(2)[1]
		gone(own)
		first.leave()
		b.leads(second.elected()) // by another key
		if keys := b.queue(1); keys[0] == own {
			t.Error("leads by the key that was gone")
		}
		second.leave()
	}
}

// TestOwnKey is LD-01 too: a candidate whose key or lease goes while it waits stands again, and does not wait for ever.
func TestOwnKey(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.stand("a")
	first.elected()
	second := b.stand("b")
	again := func(gone func(string)) {
		t.Helper()
		own := b.queue(2)[1]
		gone(own)
		until(t, "another key", func() bool { k := b.keys(); return len(k) == 2 && k[1] != own })
	}
	again(b.delete)
	again(b.revoke)
	last := b.queue(2)[1]
	second.leave()
	if b.lives(last) {
		t.Error("a candidate has left and keeps its lease")
	}
	deafened := b.servers.Client(b)
	deafened.Watcher = deaf{deafened.Watcher, b.queue(1)[0]}
	third := b.lead(b.elector(deafened, b.short("c")))
	again(b.revoke) // which its session says
	first.leave()
	b.leads(third.elected())
}

// TestRevoked is F51: a leader whose lease ends, or whose key is deleted, while it lives stops, and the next one leads.
func TestRevoked(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	all := []*lead{b.stand("a")}
	now := all[0].elected()
	all = append(all, b.stand("b"))
	for _, gone := range []func(string){b.revoke, b.delete} {
		gone(b.queue(2)[0])
		next := all[1].elected()
		if why := context.Cause(now.ctx); why != errDeleted && why != errSession {
			t.Errorf("term %d ended with %v; want one that says that the lease or the key is gone", now.term, why)
		}
		if next.term <= now.term {
			t.Errorf("term %d follows %d", next.term, now.term)
		}
		now, all[0], all[1] = next, all[1], all[0]
	}
}

// TestDeaf: a leader whose watch hears nothing finds at the next renewal that its key is gone, though its lease lives.
func TestDeaf(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	client := b.servers.Client(b)
	client.Watcher = deaf{client.Watcher, ""}
	o := b.options("a")
	o.Renew = time.Second
	l := b.lead(b.elector(client, o))
	c := l.elected()
	b.delete(b.queue(1)[0])
	b.over(c, errDeleted)
	l.elected()
}

// TestCut is LD-03: a leader that is cut off from etcd stops by its own deadline. Neither its session nor the server has said anything by then: the
// lease lives, and the next in the queue is not elected yet.
func TestCut(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	client, proxy := b.behind()
	o := b.options("a")
	o.Trust, o.Renew = 5*time.Second, 2*time.Second
	first := b.lead(b.elector(client, o))
	c := first.elected()
	second := b.stand("b")
	own := b.queue(2)[0]
	cut(proxy, true)
	b.over(c, errTrust)
	if keys := b.keys(); keys[0] != own || len(second.calls) > 0 {
		t.Errorf("%q is the oldest key and %d terms of b have begun when a's has just ended; want %q and none", keys[0], len(second.calls), own)
	}
	b.revoke(own) // by the server, in an hour
	b.leads(second.elected())
}

// TestCutCandidate: a candidate that is cut off from etcd can leave: Campaign, which resigns without a bound, is not waited for.
func TestCutCandidate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.stand("a").elected()
	client, proxy := b.behind()
	o := b.options("b")
	o.Renew = time.Second
	l := b.lead(b.elector(client, o))
	b.queue(2)
	cut(proxy, true)
	l.leave()
}

// TestSlow: a replica that is elected, but whose etcd answers too late to renew by, makes room for the next instead of
// keeping it waiting for as long as its session lives; and says so. When etcd is quick again it leads in its turn.
func TestSlow(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	first := b.stand("a")
	first.elected()
	client, proxy := b.behind()
	o := b.options("b")
	o.Lease, o.Trust, o.Renew = 10*time.Second, 4*time.Second, 2*time.Second // two calls do not fit in half the trust; each does in Renew
	second := b.lead(b.elector(client, o))
	b.queue(2)
	proxy.ToServer.Delay(func() time.Duration { return 1100 * time.Millisecond })
	third := b.stand("c")
	b.queue(3)
	first.leave()
	third.elected()
	if len(second.calls) > 0 {
		t.Error("b led, though no renewal was confirmed in time")
	}
	until(t, "the log to tell", func() bool {
		return strings.Contains(b.log.String(), "elected, but it could not be confirmed within 4s")
	})
	proxy.ToServer.Delay(nil)
	third.leave()
	b.leads(second.elected())
}

// TestLateAnswers: a replica is elected, and renews, where each call of etcd takes less than Renew, but a renewal, of two of them, takes more; it
// has half of the trust.
func TestLateAnswers(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	client := b.servers.Client(b)
	const takes = 1100 * time.Millisecond
	client.KV, client.Lease = lateReads{client.KV, takes}, lateLeases{client.Lease, takes}
	o := b.options("a")
	o.Trust, o.Renew = 6200*time.Millisecond, 2*time.Second // too short for two renewals and a pause of Renew between them
	l := b.lead(b.elector(client, o))
	var tr *trust
	var first time.Duration
	until(t, "a renewal", func() bool {
		select {
		case c := <-l.calls: // a slow machine may need another term for it
			tr = c.ctx.(*term).trust
			first = tr.latest()
		default:
		}
		return tr != nil && tr.latest() > first
	})
}

// TestRefusedElection: where etcd refuses the confirmation of an election Lead returns at once, and says what to mend.
func TestRefusedElection(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	client := b.servers.Client(b)
	var refused atomic.Value
	refused.Store(rpctypes.ErrPermissionDenied)
	client.KV = unread{client.KV, &refused}
	err := b.elector(client, b.options("a")).Lead(t.Context(), never)
	if !errors.Is(err, rpctypes.ErrPermissionDenied) || !strings.Contains(err.Error(), "grant the etcd role") {
		t.Errorf("Lead returned %v", err)
	}
	b.queue(0)
}

// TestResignFails is LD-07: where the resignation fails the lease is given back, so the next one leads at once. Where
// that fails too it is said what follows.
func TestResignFails(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	resign := func(name string, leads, revokes bool) (warnings int) {
		t.Helper()
		client := b.servers.Client(b)
		var bar atomic.Bool
		client.KV, client.Lease = barred{client.KV, &bar}, tampered{Lease: client.Lease, refuse: !revokes}
		before := b.queue(len(b.keys()))
		l := b.lead(b.elector(client, b.options(name)))
		if leads {
			l.elected()
		}
		own := b.queue(len(before) + 1)[len(before)]
		bar.Store(true)
		l.leave()
		if kept := slices.Contains(b.keys(), own); kept == revokes {
			t.Errorf("%s has left; its key is there: %v", name, kept)
		}
		for line := range strings.Lines(b.log.String()) {
			if strings.Contains(line, "replica="+name) && strings.Contains(line, "could not resign") && strings.Contains(line, "when the lease has ended") &&
				strings.Contains(line, "delete refused") && strings.Contains(line, "revoke refused") {
				warnings++
			}
		}
		return warnings
	}
	if n := resign("a", true, true); n > 0 {
		t.Errorf("a gave its lease back, and the log says %s", &b.log)
	}
	if n := resign("b", true, false); n != 1 {
		t.Errorf("neither b's resignation nor its revocation went through, and the log says %s", &b.log)
	}
	if n := resign("c", false, false); n != 1 { // waits: b's key is there
		t.Errorf("neither c's resignation nor its revocation went through, and the log says %s", &b.log)
	}
}

// TestCompaction: a watch that breaks after its revision was compacted is begun anew; the term goes on, and its end is still heard of.
func TestCompaction(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	client, proxy := b.behind()
	o := b.options("a")
	c := b.lead(b.elector(client, o)).elected() // no renewal finds the key gone
	direct := b.servers.Client(b)
	var rev int64
	for range 3 {
		r, err := direct.Put(t.Context(), "other", "x")
		if err != nil {
			t.Fatal(err)
		}
		rev = r.Header.Revision
	}
	if _, err := direct.Compact(t.Context(), rev); err != nil {
		t.Fatal(err)
	}
	proxy.Reset()
	until(t, "a new connection", func() bool { return proxy.Counts().Accepted > 1 })
	b.delete(b.queue(1)[0])
	b.over(c, errDeleted)
}

// TestQuorum is F50: a leader of an etcd that lost its quorum stops by itself; nobody is elected until it is back, then one is.
func TestQuorum(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, etcdservers.Start(t, etcdservers.Config{Members: 3}))
	x, y := b.lead(b.elector(b.servers.Client(b), b.short("a"))), b.lead(b.elector(b.servers.Client(b), b.short("b")))
	elected := func() (call, *lead) {
		select {
		case c := <-x.calls:
			return c, x
		case c := <-y.calls:
			return c, y
		case <-time.After(patience):
			t.Fatal("nobody was elected")
			return call{}, nil
		}
	}
	c, _ := elected()
	b.servers.Stop(1)
	b.servers.Stop(2)
	receive(t, c.ctx.Done(), "the term to end")
	if why := context.Cause(c.ctx); why != errTrust && why != errSession {
		t.Errorf("the term ended with %v", why)
	}
	until(t, "one to be told that it cannot stand", func() bool { return strings.Contains(b.log.String(), "grant a lease") })
	if n := len(x.calls) + len(y.calls); n > 0 {
		t.Errorf("%d elected without a quorum", n)
	}
	b.servers.Restart(t, 1)
	b.servers.Ready(t, 1)
	next, _ := elected()
	if next.term <= c.term {
		t.Errorf("term %d follows %d", next.term, c.term)
	}
}

// TestAway: an etcd that does not answer is tried again, with a log line each time, and the replica is elected once it does.
func TestAway(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	client, proxy := b.behind()
	proxy.Refuse(true)
	l := b.lead(b.elector(client, b.short("a")))
	until(t, "it to be told twice", func() bool { return strings.Count(b.log.String(), "stands again after a pause") > 1 })
	proxy.Refuse(false)
	l.elected()
}

// TestNoSpace is F50 too: with etcd's quota used up who leads goes on and can resign, and who stands already follows; a new one stands when there is
// space again.
func TestNoSpace(t *testing.T) {
	t.Parallel()
	b := newBenchOn(t, etcdservers.Start(t, etcdservers.Config{Quota: 1 << 20}))
	first := b.stand("a")
	first.elected()
	second := b.stand("b")
	b.queue(2)
	client := b.servers.Client(b)
	for full := false; !full; {
		_, err := client.Put(t.Context(), "much", strings.Repeat("x", 200<<10))
		full = err != nil
	}
	first.leave()
	second.elected()
	third := b.stand("c")
	until(t, "the log to tell", func() bool { return strings.Contains(b.log.String(), "database space exceeded") })
	b.makeSpace(client)
	second.leave()
	third.elected()
}

// makeSpace removes what was overwritten, and ends the alarm.
func (b *bench) makeSpace(c *clientv3.Client) {
	b.Helper()
	r, err := c.Get(b.Context(), "much")
	if err == nil {
		_, err = c.Compact(b.Context(), r.Header.Revision, clientv3.WithCompactPhysical())
	}
	if err == nil {
		_, err = c.Defragment(b.Context(), b.servers.Endpoints()[0])
	}
	if err == nil {
		_, err = c.AlarmDisarm(b.Context(), &clientv3.AlarmMember{})
	}
	if err != nil {
		b.Fatal(err)
	}
}
