package scheduler_test

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/scheduler"
)

// stint is a call of a role.
type stint struct {
	by         string
	term       int64
	begin, end time.Time
	cause      error
}

// stints are the calls of one role on all replicas.
type stints struct {
	mu   sync.Mutex
	list []*stint
}

// role is one that works until its term is over, and then needs a moment.
func (s *stints) role(name string, moment time.Duration) func(context.Context, int64) error {
	return func(ctx context.Context, term int64) error {
		x := &stint{by: name, term: term, begin: time.Now()}
		s.mu.Lock()
		s.list = append(s.list, x)
		s.mu.Unlock()
		<-ctx.Done()
		time.Sleep(moment)
		s.mu.Lock()
		defer s.mu.Unlock()
		x.end, x.cause = time.Now(), context.Cause(ctx)
		return nil
	}
}

func (s *stints) all() (list []stint) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.list {
		list = append(list, *x)
	}
	return list
}

// must fails the test on an error of a set-up.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A role is played by one replica at a time: it has returned before the next leader's begins, after a drain and after a loss of the
// session. It may be added while a replica leads, and needs no job beside it.
func TestRoleOfOneAtATime(t *testing.T) {
	withElection(t, false, func(t *testing.T, e *election) {
		var poller stints
		var list []*candidate
		for _, name := range []string{"a", "b", "c"} {
			r := e.start(name)
			must(t, r.OnLeader("poller", poller.role(name, 300*time.Millisecond)))
			list = append(list, r)
		}
		at(5 * time.Second)
		var late stints
		first := e.leader(list...)
		must(t, first.OnLeader("late", late.role(first.name, 0)))
		at(10 * time.Second)
		first.stop()
		at(15 * time.Second)
		second := e.leader(list...)
		second.door.set(true)
		at(30 * time.Second)
		e.end()
		got := poller.all()
		if len(got) != 3 || got[0].by != first.name || got[1].by != second.name {
			t.Fatalf("played %+v", got)
		}
		if gap := got[1].begin.Sub(got[0].end); gap > time.Second {
			t.Errorf("%v after the role had returned on drain another replica has it", gap)
		}
		for i, x := range got {
			if i > 0 && (x.begin.Before(got[i-1].end) || x.term <= got[i-1].term) {
				t.Errorf("%+v began before %+v had ended", x, got[i-1])
			}
			if !errors.Is(x.cause, scheduler.ErrDeposed) {
				t.Errorf("%+v", x)
			}
		}
		if l := late.all(); len(l) != 1 || l[0].term != got[0].term || !l[0].begin.Equal(day(1, 0, 0).Add(5*time.Second)) {
			t.Errorf("the role that was added later: %+v", l)
		}
	})
}

// A process that was frozen goes on anywhere: also in a role, before its loop has looked at the clocks. The Err of the role's context looks itself.
func TestRoleOfAFrozenLoop(t *testing.T) {
	withElection(t, false, func(t *testing.T, e *election) {
		e.tweak = func(c *scheduler.Config) {
			c.Logger = slog.New(freezer{slog.DiscardHandler, "opened job=report", new(sync.Once)})
		}
		r := e.start("a", onceOfLeader(quick))
		saw := make(chan time.Time, 100)
		must(t, r.OnLeader("poller", func(ctx context.Context, _ int64) error {
			for ctx.Err() == nil {
				<-time.After(10 * time.Millisecond)
			}
			saw <- time.Now()
			<-ctx.Done()
			return context.Cause(ctx)
		}))
		at(2 * time.Minute)
		if len(saw) == 0 {
			t.Fatal("the role's context has not ended, though its loop was frozen for a minute")
		}
		if ended := <-saw; ended.Before(minuteOne) || ended.After(minuteOne.Add(7*time.Second+20*time.Millisecond)) {
			t.Errorf("the role's context ended at %v, want 0.7 of a lease after the freeze at most", ended)
		}
	})
}

// A role that returns nil is done for the term. One that fails in any way is called again, after pauses that grow, as long as the term
// lasts; and the log has its stack.
func TestRoleFails(t *testing.T) {
	withElection(t, true, func(t *testing.T, e *election) {
		log := &book{}
		e.tweak = func(c *scheduler.Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) }
		a := e.start("a")
		var mu sync.Mutex
		calls := map[string][]time.Time{}
		role := func(name string, f func(n int) error) {
			must(t, a.OnLeader(name, func(ctx context.Context, _ int64) error {
				mu.Lock()
				calls[name] = append(calls[name], time.Now())
				n := len(calls[name])
				mu.Unlock()
				jobs.Logger(ctx).Info("called")
				return f(n)
			}))
		}
		role("done", func(int) error { return nil })
		role("fails", func(int) error { return errDeclined })
		role("panics", func(n int) error {
			switch n {
			case 1:
				panic("out of tea")
			case 2:
				runtime.Goexit()
			}
			return nil
		})
		time.Sleep(time.Second)
		e.static.Elect("a")
		time.Sleep(10 * time.Minute)
		e.static.Depose()
		time.Sleep(10 * time.Minute)
		mu.Lock()
		n := len(calls["fails"])
		mu.Unlock()
		if n < 12 || n > 24 { // up to a minute each half second to minute and a half
			t.Errorf("%d calls in ten minutes of what fails", n)
		}
		e.static.Elect("a")
		time.Sleep(100 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		if len(calls["done"]) != 2 || len(calls["panics"]) != 4 || len(calls["fails"]) != n+1 {
			t.Errorf("in the second term: %v", calls)
		}
		for i, at := range calls["fails"][1:6] {
			least := time.Second << i / 2
			if pause := at.Sub(calls["fails"][i]); pause < least || pause > 3*least {
				t.Errorf("pause %d is %v, want from %v to %v", i, pause, least, 3*least)
			}
		}
		for _, words := range [][]string{{"out of tea", "roles_test.go", "role=panics", "term=1"}, {"runtime.Goexit"}, {"declined", "role=fails"}, {"msg=called", "role=done", "term=2"}} {
			if log.count(words...) == 0 {
				t.Errorf("the log does not say %q", words)
			}
		}
	})
}

// A role that does not return when its term is over keeps the next leader waiting for half a lease, and is called
// again only when it has returned.
func TestRoleIsLeftBehind(t *testing.T) {
	withElection(t, false, func(t *testing.T, e *election) {
		log, release := &book{}, make(chan struct{})
		e.tweak = func(c *scheduler.Config) { c.Logger = slog.New(slog.NewTextHandler(log, nil)) }
		a := e.start("a")
		var mu sync.Mutex
		var terms []int64
		must(t, a.OnLeader("deaf", func(ctx context.Context, term int64) error {
			mu.Lock()
			terms = append(terms, term)
			first := len(terms) == 1
			mu.Unlock()
			if first {
				<-release
			}
			<-ctx.Done()
			return nil
		}))
		at(5 * time.Second)
		must(t, a.Add(jobs.Job{Name: "other", Schedule: jobs.Manual(), Run: quick}))
		b := e.start("b")
		var good stints
		must(t, b.OnLeader("good", good.role("b", 0)))
		at(6 * time.Second)
		e.gossip.set("a", "unfit") // it owns nothing, and gives up
		at(15 * time.Second)
		got := good.all()
		if len(got) != 1 || got[0].begin.Sub(day(1, 0, 0)) < 11*time.Second || got[0].begin.Sub(day(1, 0, 0)) > 12*time.Second {
			t.Fatalf("the next leader began %+v", got)
		}
		if log.count("left behind", "roles=deaf") != 1 {
			t.Errorf("the log says %s", log.buf.String())
		}
		e.gossip.set("a", "serving")
		b.stop()
		at(30 * time.Second)
		mu.Lock()
		if len(terms) != 1 {
			t.Errorf("called again while it had not returned: %v", terms)
		}
		mu.Unlock()
		close(release)
		synctest.Wait()
		mu.Lock()
		if len(terms) != 2 || terms[1] <= got[0].term {
			t.Errorf("called in %v; want once more, in the present term, above %d", terms, got[0].term)
		}
		mu.Unlock()
		a.stop()
		must(t, <-a.done) // what is left behind now is nothing
	})
}

// What makes no sense of a role, or of a job of the leader, is an error that says what to do.
func TestLeaderRefused(t *testing.T) {
	t.Parallel()
	store := idempotency.NewMemory(nil)
	bare := struct{ idempotency.Store }{store}
	var anybody scheduler.Elector = elector(nil)
	made := func(c scheduler.Config) *scheduler.Scheduler {
		t.Helper()
		c.Namespace, c.Members, c.Logger = "test", seat{newGossip(), "a"}, slog.New(slog.DiscardHandler)
		s, err := scheduler.New(c)
		must(t, err)
		return s
	}
	role := func(context.Context, int64) error { return nil }
	efficient := func(j jobs.Job) jobs.Job { j.Guarantee = jobs.Efficiency; return j }
	handed := func(j jobs.Job) jobs.Job { j.HandOverAfter = time.Minute; return j }
	twice := made(scheduler.Config{Store: store})
	must(t, twice.OnLeader("r", role))
	for name, c := range map[string]struct {
		err  error
		want []string
	}{
		"nobody elects":               {made(scheduler.Config{}).Add(efficient(ofLeader(quick))), []string{`job "report"`, "nobody is ever elected; set Config.Elector"}},
		"nobody elects, of a role":    {made(scheduler.Config{}).OnLeader("r", role), []string{`role "r"`, "nobody is ever elected"}},
		"the store does not":          {made(scheduler.Config{Store: bare}).Add(ofLeader(quick)), []string{"cannot keep who leads", "idempotency.Leaders"}},
		"the store cannot keep it":    {made(scheduler.Config{Store: bare, Elector: anybody}).Add(ofLeader(quick)), []string{"cannot keep who leads"}},
		"… of a role":                 {made(scheduler.Config{Store: bare, Elector: anybody}).OnLeader("r", role), []string{"cannot keep who leads"}},
		"handed over without a store": {made(scheduler.Config{Elector: anybody}).Add(handed(efficient(ofLeader(quick)))), []string{"HandOverAfter needs a store", "leave HandOverAfter 0"}},
		"bad name":                    {twice.OnLeader("a b", role), []string{`"a b"`}},
		"no function":                 {twice.OnLeader("x", nil), []string{`role "x"`, "no function"}},
		"twice":                       {twice.OnLeader("r", role), []string{`role "r"`, "was added already"}},
		"fine, by the store":          {made(scheduler.Config{Store: store}).Add(handed(ofLeader(quick))), nil},
		"fine, by the elector":        {made(scheduler.Config{Elector: anybody}).Add(efficient(ofLeader(quick))), nil},
		"a role by the elector":       {made(scheduler.Config{Elector: anybody}).OnLeader("r", role), nil},
	} {
		if (c.err == nil) != (c.want == nil) {
			t.Errorf("%s: %v", name, c.err)
		}
		for _, w := range c.want {
			if c.err != nil && !strings.Contains(c.err.Error(), w) {
				t.Errorf("%s: %q does not say %q", name, c.err, w)
			}
		}
	}
	over, end := context.WithCancel(t.Context())
	end()
	must(t, twice.Run(over))
	if err := twice.OnLeader("late", role); err == nil || !strings.Contains(err.Error(), "Run has returned") {
		t.Errorf("after Run: %v", err)
	}
}

// elector is a function as one.
type elector func(ctx context.Context, lead func(context.Context, int64) error) error

func (f elector) Lead(ctx context.Context, lead func(context.Context, int64) error) error {
	return f(ctx, lead)
}

// An elector that fails in any way is called again after pauses that grow, by one goroutine at a time; what it said before does not count.
func TestElectorFails(t *testing.T) {
	withElection(t, false, func(t *testing.T, e *election) {
		log := &book{}
		var mu sync.Mutex
		var calls []time.Time
		at := func() int { mu.Lock(); defer mu.Unlock(); calls = append(calls, time.Now()); return len(calls) }
		busy, resigned := make(chan struct{}, 1), make(chan struct{})
		var poller stints
		f := elector(func(ctx context.Context, lead func(context.Context, int64) error) error {
			select {
			case busy <- struct{}{}:
				defer func() { <-busy }()
			default:
				t.Error("called twice at once")
			}
			switch at() {
			case 1: // it fails in a term, and leaves that behind
				go func() { _ = lead(context.WithoutCancel(ctx), 5) }()
				time.Sleep(100 * time.Millisecond)
				return errDeclined
			case 2:
				panic("no quorum")
			case 3:
				return nil
			case 4:
				return lead(ctx, 0)
			case 5:
				return errDeclined
			}
			_ = lead(ctx, 7)
			if len(poller.all()) == 2 && poller.all()[1].end.IsZero() {
				t.Error("the lead has returned before its role")
			}
			time.Sleep(3 * time.Second) // it resigns
			close(resigned)
			return nil
		})
		e.tweak = func(c *scheduler.Config) {
			c.Elector, c.Logger = f, slog.New(slog.NewTextHandler(log, nil))
		}
		a := e.start("a")
		must(t, a.OnLeader("poller", poller.role("a", time.Second)))
		time.Sleep(2 * time.Minute)
		got := poller.all()
		if len(got) != 2 || got[0].term != 5 || got[0].end.Sub(got[0].begin) != 1100*time.Millisecond || got[1].term != 7 || !got[1].end.IsZero() {
			t.Fatalf("played %+v", got)
		}
		for _, words := range [][]string{{"the elector failed", "declined"}, {"the elector failed", "no quorum", "roles_test.go"}, {"though its context had not ended"}, {"began term 0"}} {
			if log.count(words...) == 0 {
				t.Errorf("the log does not say %q", words)
			}
		}
		a.stop()
		must(t, <-a.done)
		select {
		case <-resigned:
		default:
			t.Error("Run has returned before the elector, which was about to resign")
		}
		mu.Lock()
		defer mu.Unlock()
		if pause := calls[1].Sub(got[0].end); pause < time.Second/2 {
			t.Errorf("called again %v after what it left behind had ended", pause)
		}
		for i, at := range calls[1:] {
			if pause := at.Sub(calls[i]); pause < time.Second<<min(i, 5)/2 {
				t.Errorf("pause %d is %v", i, pause)
			}
		}
	})
}

// Who leads is in the log of each replica: that somebody does, who, in which term and why; that nobody does; and a warning where that lasts.
func TestLeaderIsLogged(t *testing.T) {
	withElection(t, true, func(t *testing.T, e *election) {
		log := &book{}
		e.tweak = func(c *scheduler.Config) {
			c.Logger = slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
		}
		e.start("a", ofLeader(quick))
		e.start("b", ofLeader(quick))
		e.start("c", jobs.Job{Name: "other", Schedule: jobs.Manual(), Run: quick}) // has nothing for a leader
		at(8 * time.Second)
		if log.count("nobody has led for long") > 0 {
			t.Error("warned within a lease of the start")
		}
		at(15 * time.Second)
		if n := log.count("level=WARN", "nobody has led for long"); n != 2 {
			t.Errorf("%d warnings at the start, want one of each", n)
		}
		e.static.Elect("a")
		at(35 * time.Second)
		e.static.Depose()
		at(60 * time.Second)
		for _, c := range []struct {
			n     int
			words []string
		}{
			{1, []string{"level=INFO", "this replica leads", "replica=a", "term=1", "nobody led before"}},
			{1, []string{"level=INFO", "another replica leads", "replica=b", "leader=a", "term=1"}},
			{1, []string{"level=INFO", "nobody leads", "replica=b", "last=a", "term=1", "deposed by the test"}},
			{1, []string{"level=INFO", "this replica leads no more", "replica=a", "term=1", "deposed by the test"}},
			{1, []string{"nobody leads"}},
			{4, []string{"level=WARN", "nobody has led for long"}},
			{0, []string{"replica=c", "lead"}},
		} {
			if n := log.count(c.words...); n != c.n {
				t.Errorf("%d lines say %q, want %d", n, c.words, c.n)
			}
		}
		if n := log.count("run ended", "job=report", "term=1"); n != 3 {
			t.Errorf("%d lines of ended runs tell the term, want 3", n)
		}
	})
}
