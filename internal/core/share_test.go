package core

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

func drawMembers(t *rapid.T, most int) []string {
	set := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-z]{1,3}-[0-9]{1,2}`), 1, most, rapid.ID[string]).Draw(t, "members")
	slices.Sort(set)
	return set
}

func shares(job string, members []string, limit int) (each map[string]int, sum int) {
	each = map[string]int{}
	for _, name := range members {
		each[name] = shareAt(shareOrder(job, members), name, limit)
		sum += each[name]
	}
	return each, sum
}

// The members' shares come to the limit, whichever it is, and are equal but for one; who is no member has none.
func TestSharesAddUp(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		members, limit := drawMembers(t, 12), rapid.IntRange(1, 40).Draw(t, "limit")
		each, sum := shares("job", members, limit)
		if sum != limit {
			t.Fatalf("the shares of %v are %d in all, want %d", each, sum, limit)
		}
		for name, n := range each {
			if n < limit/len(members) || n > (limit+len(members)-1)/len(members) {
				t.Fatalf("%s has %d of %d, with %d members", name, n, limit, len(members))
			}
		}
		if n := shareAt(shareOrder("job", members), "nobody", limit); n != 0 {
			t.Fatalf("a stranger has %d", n)
		}
	})
}

// A member that comes or goes moves one start at most per member's change: of the others at most one gains, or loses, its place among the
// owners; and no two of them change places.
func TestSharesStayPut(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		members := drawMembers(t, 12)
		if len(members) < 2 {
			return
		}
		gone := rapid.SampledFrom(members).Draw(t, "gone")
		rest := slices.DeleteFunc(slices.Clone(members), func(m string) bool { return m == gone })
		order := slices.DeleteFunc(shareOrder("job", members), func(m string) bool { return m == gone })
		if after := shareOrder("job", rest); !slices.Equal(order, after) {
			t.Fatalf("without %s the order is %v, want %v", gone, after, order)
		}
		limit := rapid.IntRange(1, len(rest)).Draw(t, "limit")
		before, _ := shares("job", members, limit)
		now, _ := shares("job", rest, limit)
		moved := 0
		for _, m := range rest {
			if before[m] != now[m] {
				moved++
			}
		}
		if limit < len(members) && moved > 1 {
			t.Fatalf("%d members have another share since %s left: %v, then %v", moved, gone, before, now)
		}
	})
}

// The owners' ranks cover each partition once a rank, in the order of the ring; a job's partitions are its owners' alone.
func TestRanksOfOwners(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		members := drawMembers(t, 6)
		limit := rapid.IntRange(1, 6).Draw(t, "limit")
		r, err := ring.New(members, &ring.Options{Partitions: 16, VirtualNodes: 20, Load: 1.5})
		if err != nil {
			t.Fatal(err)
		}
		first := make([]int, 16)
		owners, openers := 0, 0
		for _, name := range members {
			c := timing()
			c.Replica = name
			core := New(c)
			core.ring, core.ranks = r, r.Ranks(name, maxRanks)
			j := &job{Job: jobs.Job{Name: "job", Limit: jobs.Limit{Cluster: limit}}, partition: core.partition("job")}
			ranks := core.ranksOf(j)
			if len(ranks) > 0 {
				owners++
			}
			if core.rankOf(j) == 0 {
				openers++
			}
			for p := range first {
				if len(ranks) > 0 && has(ranks[0], p) {
					first[p]++
				}
			}
		}
		if owners != min(limit, len(members)) || openers != 1 {
			t.Fatalf("%d of %d members own the job, and %d open its dues; want %d and 1", owners, len(members), openers, limit)
		}
		for p, n := range first {
			if n != 1 {
				t.Fatalf("partition %d has %d first owners", p, n)
			}
		}
	})
}

// crowd is a tower whose handlers end when the test says so; it counts those at work.
type crowd struct {
	*tower
	running map[string]map[int64]int // by job: handle -> core
	most    map[string]int           // at once
	started map[string]int
}

func newCrowd(t *testing.T, c Config, keys int, names ...string) *crowd {
	w := &crowd{newTower(t, c, names...), map[string]map[int64]int{}, map[string]int{}, map[string]int{}}
	source := list(keys)
	w.act = func(i int, a Action) []Event {
		s, ok := a.(Start)
		if !ok {
			return source(i, a)
		}
		job := s.Job.Name
		if w.running[job] == nil {
			w.running[job] = map[int64]int{}
		}
		w.running[job][s.Handle<<8|int64(i)] = i
		w.started[job]++
		w.most[job] = max(w.most[job], len(w.running[job]))
		return nil
	}
	return w
}

// end lets so many handlers of a job return.
func (w *crowd) end(job string, n int) {
	for h, i := range w.running[job] {
		if n--; n < 0 {
			return
		}
		delete(w.running[job], h)
		w.tell(i, Ended{Handle: h >> 8})
	}
}

// turnOver ends all that runs, each step, until an instant.
func (w *crowd) turnOver(until, step int, job string) {
	for range (until + step - 1) / step {
		w.until(w.now + ms(step))
		w.end(job, len(w.running[job]))
	}
}

func (w *crowd) done(job string) (n int) {
	for _, r := range w.rows() {
		if r.ID.Job == job && r.Outcome == idempotency.Done {
			n++
		}
	}
	return n
}

// Of a job of which the cluster runs two at once, no more run, whoever owns its keys; all are run, and with fewer members than that too.
func TestClusterLimit(t *testing.T) {
	t.Parallel()
	for members, limit := range map[int]int{5: 2, 3: 1, 2: 5} {
		w := newCrowd(t, timing(), 20, []string{"a", "b", "c", "d", "e"}[:members]...)
		j := keyed(ats(5))
		j.Limit.Cluster = limit
		w.begin(j)
		w.until(ms(4500))
		w.turnOver(60_000, 300, "keyed")
		if n := w.most["keyed"]; n != limit {
			t.Errorf("%d members, limit %d: %d ran at once", members, limit, n)
		}
		if n := w.done("keyed"); n != 20 {
			t.Errorf("%d members, limit %d: %d of 20 keys are done", members, limit, n)
		}
	}
}

// DP-03: the members that own a job are those that have its code, also where others come first in the order. Whoever of three alone
// has it runs it, in time.
func TestClusterLimitWithoutCode(t *testing.T) {
	t.Parallel()
	names := []string{"a", "b", "c"}
	for i, name := range names {
		for _, plain := range []bool{true, false} {
			w := newCrowd(t, timing(), 20, names...)
			j := keyed(ats(20))
			if plain {
				j.Keys = nil
			}
			j.Limit.Cluster = 1
			w.begin()
			w.tell(i, JobsChanged{Jobs: []jobs.Job{j.WithDefaults()}})
			w.until(ms(20_300))
			if n := len(w.running["keyed"]); n != 1 {
				t.Errorf("only %s has the job: %d run just after its due, want 1 (plain: %t)", name, n, plain)
			}
		}
	}
}

// Who is no owner of a job leaves its openings to those who are: its runs begin on time, whoever owns its name in the ring.
func TestClusterLimitOnTime(t *testing.T) {
	t.Parallel()
	w := newCrowd(t, eight(), 0, "a", "b", "c")
	var all []jobs.Job
	for i := range 12 {
		all = append(all, jobs.Job{Name: fmt.Sprint("plain-", i), Schedule: ats(5), Run: none, Limit: jobs.Limit{Cluster: 1}})
	}
	w.begin(all...)
	w.until(ms(5100))
	for _, j := range all {
		if n := w.started[j.Name]; n != 1 {
			t.Errorf("%d runs of job %s began within 100 ms of its due, want 1", n, j.Name)
		}
	}
}

// A limit that not all members have a part of leaves the openings to others where the owners are blind to the store.
func TestClusterLimitOpenedByOthers(t *testing.T) {
	t.Parallel()
	w := newCrowd(t, timing(), 0, "a", "b", "c")
	first := slices.Index([]string{"a", "b", "c"}, shareOrder("plain", []string{"a", "b", "c"})[0])
	w.mute = func(i int, call string) bool { return i == first && (call == "Decide" || call == "Lagging") }
	w.begin(jobs.Job{Name: "plain", Schedule: ats(5), Run: none, Limit: jobs.Limit{Cluster: 1}})
	w.until(ms(12_000))
	rows := w.rows()
	if len(rows) != 1 || rows[0].State != idempotency.Waiting {
		t.Errorf("%d runs of the due that its owner could not open: %v; want one that waits for it", len(rows), rows)
	}
	if n := w.started["plain"]; n != 0 {
		t.Errorf("%d were started by members that do not own the job", n)
	}
}

// ats is a schedule of instants, in seconds since the epoch of the tests.
func ats(seconds ...int) jobs.Schedule {
	var at []time.Time
	for _, s := range seconds {
		at = append(at, epoch.Add(time.Duration(s)*time.Second))
	}
	return jobs.At(at...)
}

func ms(n int) time.Duration { return time.Duration(n) * time.Millisecond }
