package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

var controlLaws = []law{
	{"RepetitionReturnsTheFirst", repetitionReturnsTheFirst},
	{"RepetitionOfAnotherThingIsRejected", repetitionOfAnotherThing},
	{"RepetitionWithAnotherRangeIsRejected", repetitionWithAnotherRange},
	{"ManyAtOnceChangeOnce", manyAtOnceChangeOnce},
	{"UnknownJobIsRejected", unknownJobIsRejected},
	{"KeyOfAJobWithoutKeysIsRejected", keyOfAJobWithoutKeys},
	{"BadCommandIsRejected", badCommandIsRejected},
	{"RecordsNewestFirst", recordsNewestFirst},
	{"RecordsOfOneInstant", recordsOfOneInstant},
	{"RecordRoundTrips", recordRoundTrips},
	{"NeedsNoLiveReplica", needsNoLiveReplica},
	{"SurvivesReopen", commandsSurviveReopen},
}

func ask(request string, kind idempotency.CommandKind, id idempotency.ID) idempotency.Command {
	return idempotency.Command{Request: request, Kind: kind, ID: id, Actor: "ann", Reason: "as agreed"}
}

func (b *bundle) submit(c idempotency.Command) idempotency.Command {
	b.Helper()
	record, err := b.Store.Submit(b.Context(), namespace, c)
	if err != nil {
		b.Fatalf("%v of %+v: %v", c.Kind, c.ID, err)
	}
	return record
}

// rejects submits and wants a rejection that leaves no trace.
func (b *bundle) rejects(why string, c idempotency.Command) {
	b.Helper()
	rows, records, ranges, open := b.list(idempotency.Filter{}), b.commands(""), b.ranges(""), b.overview()
	record, err := b.Store.Submit(b.Context(), namespace, c)
	if !errors.Is(err, idempotency.ErrRejected) {
		b.Fatalf("%v of %s: %+v, %v, want ErrRejected", c.Kind, why, record, err)
	}
	after := b.overview()
	after.Now = open.Now
	for _, x := range [][2]any{{rows, b.list(idempotency.Filter{})}, {records, b.commands("")}, {ranges, b.ranges("")}, {open, after}} {
		if !reflect.DeepEqual(x[0], x[1]) {
			b.Fatalf("%v of %s was rejected, and has changed\n%+v\nto\n%+v", c.Kind, why, x[0], x[1])
		}
	}
}

func (b *bundle) commands(job string) []idempotency.Command {
	b.Helper()
	var list []idempotency.Command
	for c, err := range b.Store.Commands(b.Context(), namespace, job) {
		if err != nil {
			b.Fatalf("commands: %v", err)
		}
		list = append(list, c)
	}
	return list
}

// requests are those of the job's records.
func (b *bundle) requests(job string) string {
	b.Helper()
	var list []string
	for _, c := range b.commands(job) {
		list = append(list, c.Request)
	}
	return fmt.Sprint(list)
}

// The answer was lost, and the command is sent again.
func repetitionReturnsTheFirst(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.runs(1, due)
	for _, c := range []idempotency.Command{
		ask("pause", idempotency.Pause, idempotency.ID{Job: plain}),
		ask("trigger", idempotency.Trigger, idempotency.ID{Job: plain}),
		ask("one", idempotency.Trigger, idempotency.ID{Job: keyed, Key: "k"}),
		ask("cancel", idempotency.Cancel, idempotency.ID{Job: plain, Key: plain, Due: due}),
		ask("skip", idempotency.Skip, idempotency.ID{Job: plain, Due: b.ago(-time.Hour)}),
	} {
		first := b.submit(c)
		want(b.T, "changed by "+c.Request, first.Changed, 1)
		rows := b.list(idempotency.Filter{})
		r.passes(time.Millisecond)
		c.Reason = "sent again"
		again := b.submit(c)
		if !reflect.DeepEqual(first, again) {
			b.Fatalf("%v was answered %+v, and repeated %+v", c.Kind, first, again)
		}
		if !reflect.DeepEqual(rows, b.list(idempotency.Filter{})) {
			b.Fatalf("a repetition of %v has changed %+v to %+v", c.Kind, rows, b.list(idempotency.Filter{}))
		}
	}
	want(b.T, "records", len(b.commands("")), 5)
}

// A request names one command: what else comes under it would be lost without a word.
func repetitionOfAnotherThing(b *bundle) {
	r := b.ready("a", "h1")
	run := r.runs(0, b.ago(time.Minute))[0]
	trigger := ask("t", idempotency.Trigger, idempotency.ID{Job: keyed, Key: "k"})
	cancel := ask("c", idempotency.Cancel, run.ID)
	b.submit(trigger)
	b.submit(cancel)
	for _, x := range []struct {
		first  idempotency.Command
		change func(c *idempotency.Command)
		says   string
	}{
		{trigger, func(c *idempotency.Command) { c.Kind = idempotency.Pause }, `another kind, trigger;`},
		{trigger, func(c *idempotency.Command) { c.ID = idempotency.ID{Job: plain} }, `another job, "` + keyed + `";`},
		{trigger, func(c *idempotency.Command) { c.ID.Key = "K" }, `another key, "k";`},
		{trigger, func(c *idempotency.Command) { c.Actor = "bob" }, `by "ann" with another actor;`},
		{cancel, func(c *idempotency.Command) { c.ID.Due = b.ago(0) }, `another due, ` + run.ID.Due.Format(time.RFC3339) + `;`},
		{cancel, func(c *idempotency.Command) { c.ID.Request = "by hand" }, `another run, that of request "";`},
	} {
		c := x.first
		x.change(&c)
		b.rejects(x.says, c)
		b.says(c, x.says)
	}
	want(b.T, "records", len(b.commands("")), 2)
	trigger.Payload = []byte("another") // is not recorded, and so not compared
	want(b.T, "changed by the first", b.submit(trigger).Changed, 1)
	b.ready("o", "h1", func(o *idempotency.Opening) { o.Namespace = "other" })
	trigger.Actor = "bob"
	if _, err := b.Store.Submit(b.Context(), "other", trigger); err != nil {
		b.Fatalf("the request in another namespace: %v", err)
	}
}

// The answer for one stretch would pass for that of another, whose dues would not run.
func repetitionWithAnotherRange(b *bundle) {
	b.ready("a", "h1")
	at := func(i int) time.Time { return b.ago(time.Duration(2000-i) * time.Hour) }
	c := fill("r", idempotency.ID{Job: plain}, at(2), at(3), at(4))
	first := b.submit(c)
	want(b.T, "changed", first.Changed, 3)
	says := "another range, " + at(2).Format(time.RFC3339) + " to " + at(4).Format(time.RFC3339) + ";"
	for why, dues := range map[string][]time.Time{
		"one that begins before": {at(1), at(2), at(3), at(4)},
		"one that begins after":  {at(3), at(4)},
		"one that ends after":    {at(2), at(3), at(4), at(5)},
		"one that ends before":   {at(2), at(3)},
		"one of its dues":        {at(2)},
	} {
		c.Dues = dues
		b.rejects(why, c)
		b.says(c, says)
	}
	c.Dues = []time.Time{at(2), at(4)} // of a range its ends are recorded
	if again := b.submit(c); !reflect.DeepEqual(first, again) {
		b.Fatalf("%+v, repeated %+v", first, again)
	}
}

// says wants words in a rejection.
func (b *bundle) says(c idempotency.Command, words string) {
	b.Helper()
	if _, err := b.Store.Submit(b.Context(), namespace, c); err == nil || !strings.Contains(err.Error(), words) {
		b.Fatalf("%v was answered %v, want %q in it", c.Kind, err, words)
	}
}

func manyAtOnceChangeOnce(b *bundle) {
	b.ready("a", "h1")
	second := b.second()
	var wg sync.WaitGroup
	answers := make([]idempotency.Command, 8)
	errs := make([]error, len(answers))
	for i := range answers {
		store := []Store{b.Store, second}[i%2]
		wg.Go(func() {
			answers[i], errs[i] = store.Submit(b.Context(), namespace, ask("r", idempotency.Trigger, idempotency.ID{Job: keyed, Key: "k"}))
		})
	}
	wg.Wait()
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
	for _, x := range answers {
		if !reflect.DeepEqual(x, answers[0]) {
			b.Fatalf("one command, two answers: %+v and %+v", answers[0], x)
		}
	}
	want(b.T, "rows", len(b.list(idempotency.Filter{})), 1)
	want(b.T, "records", len(b.commands("")), 1)
}

func unknownJobIsRejected(b *bundle) {
	c := ask("p", idempotency.Pause, idempotency.ID{Job: plain})
	if _, err := b.Store.Submit(b.Context(), namespace, c); !errors.Is(err, idempotency.ErrRejected) {
		b.Fatalf("a namespace that is not there: %v, want ErrRejected", err)
	}
	b.ready("a", "h1")
	for kind := idempotency.Pause; kind <= idempotency.Retry; kind++ {
		c := ask("p", kind, idempotency.ID{Job: "unknown", Due: b.ago(0)})
		if kind == idempotency.Backfill {
			c.Dues = []time.Time{b.ago(0)}
		}
		b.rejects("an unknown job", c)
	}
}

func keyOfAJobWithoutKeys(b *bundle) {
	b.ready("a", "h1")
	for kind := idempotency.Trigger; kind <= idempotency.Backfill; kind++ {
		c := ask("r", kind, idempotency.ID{Job: plain, Key: "k", Due: b.ago(-time.Hour)})
		if kind == idempotency.Backfill {
			c.Dues = []time.Time{b.ago(2000 * time.Hour)}
		}
		b.rejects("a key of a job without keys", c)
	}
}

// What no store takes no repetition mends.
func badCommandIsRejected(b *bundle) {
	b.ready("a", "h1")
	good := ask("r", idempotency.Skip, idempotency.ID{Job: plain, Due: b.ago(-time.Hour)})
	for why, change := range map[string]func(c *idempotency.Command){
		"no request":          func(c *idempotency.Command) { c.Request = "" },
		"a long request":      func(c *idempotency.Command) { c.Request = strings.Repeat("r", 37) },
		"a request of bytes":  func(c *idempotency.Command) { c.Request = "a b" },
		"no actor":            func(c *idempotency.Command) { c.Actor = "" },
		"a long actor":        func(c *idempotency.Command) { c.Actor = strings.Repeat("a", 256) },
		"a reason of bytes":   func(c *idempotency.Command) { c.Reason = "\xff" },
		"no kind":             func(c *idempotency.Command) { c.Kind = 0 },
		"an unknown kind":     func(c *idempotency.Command) { c.Kind = idempotency.Retry + 1 },
		"half a second":       func(c *idempotency.Command) { c.ID.Due = c.ID.Due.Add(time.Second / 2) },
		"no due":              func(c *idempotency.Command) { c.ID.Due = time.Time{} },
		"dues":                func(c *idempotency.Command) { c.Dues = []time.Time{c.ID.Due} },
		"a payload":           func(c *idempotency.Command) { c.Payload = []byte("p") },
		"a long key":          func(c *idempotency.Command) { c.ID.Key = strings.Repeat("k", 256) },
		"a backfill of none":  func(c *idempotency.Command) { c.Kind = idempotency.Backfill },
		"dues that go back":   func(c *idempotency.Command) { c.Kind, c.Dues = idempotency.Backfill, []time.Time{b.ago(9), b.ago(10)} },
		"a payload that long": func(c *idempotency.Command) { c.Kind, c.Payload = idempotency.Trigger, make([]byte, 64<<10+1) },
	} {
		c := good
		change(&c)
		b.rejects(why, c)
	}
	if _, err := b.Store.Submit(b.Context(), "no name", good); !errors.Is(err, idempotency.ErrRejected) {
		b.Fatalf("a namespace that is no name: %v", err)
	}
	want(b.T, "changed by the good one", b.submit(good).Changed, 1)
}

func recordsNewestFirst(b *bundle) {
	r := b.ready("a", "h1")
	for i := range 6 {
		job := []string{plain, keyed}[i%2]
		b.submit(ask(fmt.Sprint("r", i), idempotency.Trigger, idempotency.ID{Job: job, Key: []string{"", "k"}[i%2]}))
		r.passes(time.Millisecond)
	}
	want(b.T, "all records", b.requests(""), "[r5 r4 r3 r2 r1 r0]")
	want(b.T, "records of a job", b.requests(plain), "[r4 r2 r0]")
	want(b.T, "records of another", b.requests("unknown"), "[]")
	for range b.Store.Commands(b.Context(), namespace, "") {
		break
	}
	for _, err := range b.Store.Commands(b.Context(), "other", "") {
		b.Fatalf("a record, or an error, of a namespace that is not there: %v", err)
	}
}

// Where the clock stands still all are of one instant: then the order is that of their bytes, backwards, on each page too.
func recordsOfOneInstant(b *bundle) {
	r := b.ready("a", "h1")
	requests := []string{"b", "c", "B", "a_b", "ab", "a-b", "a", "a.b", "1"}
	for _, x := range requests {
		b.submit(ask(x, idempotency.Pause, idempotency.ID{Job: plain}))
	}
	list := b.commands("")
	want(b.T, "records", len(list), len(requests))
	still := b.Advance != nil
	for i, x := range list[1:] {
		last := list[i]
		still = still && x.At.Equal(last.At)
		if x.At.After(last.At) || x.At.Equal(last.At) && x.Request >= last.Request {
			b.Fatalf("%q of %v is listed before %q of %v", last.Request, last.At, x.Request, x.At)
		}
	}
	want(b.T, "all are of one instant", still, b.Advance != nil)
	want(b.T, "all of the job", b.requests(plain), b.requests(""))
	r.passes(time.Millisecond)
	b.submit(ask("0", idempotency.Resume, idempotency.ID{Job: plain}))
	want(b.T, "the newest", b.commands("")[0].Request, "0")
}

// Of the ID a record holds what its kind uses, of dues the first and the last, and no payload.
func recordRoundTrips(b *bundle) {
	r := b.ready("a", "h1")
	x := r.runs(0, b.ago(time.Minute))[0]
	full := idempotency.ID{Job: keyed, Key: "kéy\x00 ", Request: "other", Due: b.ago(-time.Hour)}
	for _, c := range []struct {
		ask  idempotency.Command
		want idempotency.ID
	}{
		{ask("pause", idempotency.Pause, full), idempotency.ID{Job: keyed}},
		{ask("skip", idempotency.Skip, full), idempotency.ID{Job: keyed, Key: full.Key, Due: full.Due}},
		{ask("cancel", idempotency.Cancel, x.ID), x.ID},
		{ask("trigger", idempotency.Trigger, full), idempotency.ID{Job: keyed, Key: full.Key}},
		{fill("backfill", idempotency.ID{Job: plain, Due: full.Due}, b.ago(3*time.Hour), b.ago(2*time.Hour), b.ago(time.Hour)), idempotency.ID{Job: plain, Due: b.ago(3 * time.Hour)}},
	} {
		c.ask.Actor, c.ask.Reason = "Ánn \x00 "+strings.Repeat("a", 240), "line\r\n😀"+strings.Repeat("r", 60<<10)
		if c.ask.Kind == idempotency.Trigger {
			c.ask.Payload = []byte("\x00\xff")
		}
		c.ask.Last, c.ask.Changed = b.ago(4*time.Hour), 7 // the store's to say
		got := b.submit(c.ask)
		if got.At.Before(r.now) || got.At.Location() != time.UTC {
			b.Fatalf("recorded at %v", got.At)
		}
		if c.ask.Kind == idempotency.Trigger {
			c.want.Due = got.At.Truncate(time.Second)
		}
		c.ask.Last, c.ask.Changed = time.Time{}, 1
		if n := len(c.ask.Dues); n > 0 {
			c.ask.Last, c.ask.Changed = c.ask.Dues[n-1], n
		}
		c.ask.ID, c.ask.Dues, c.ask.Payload, c.ask.At = c.want, nil, nil, got.At
		if !reflect.DeepEqual(got, c.ask) {
			b.Fatalf("record of %v:\n%+v, want\n%+v", c.ask.Kind, got, c.ask)
		}
		found := false
		for _, x := range b.commands(c.want.Job) {
			found = found || reflect.DeepEqual(x, got)
		}
		want(b.T, "it is listed", found, true)
	}
}

// People may ask while the fleet is down.
func needsNoLiveReplica(b *bundle) {
	r := b.ready("a", "h1")
	r.close()
	want(b.T, "changed by a pause", b.submit(ask("p", idempotency.Pause, idempotency.ID{Job: plain})).Changed, 1)
	b.submit(ask("t", idempotency.Trigger, idempotency.ID{Job: plain}))
	z := b.ready("z", "h1")
	want(b.T, "paused", z.entry(plain).PausedFrom.IsZero(), false)
	want(b.T, "waiting", len(z.lag(all()).Waiting), 1)
}

func commandsSurviveReopen(b *bundle) {
	if b.Reopen == nil {
		b.Skip("the driver forgets")
	}
	r := b.ready("a", "h1")
	c := ask("p", idempotency.Pause, idempotency.ID{Job: plain})
	first := b.submit(c)
	before := r.lag(all()).Controls
	b.Store = b.Reopen(b.T)
	r.store = b.Store
	want(b.T, "controls", r.lag(all()).Controls, before)
	want(b.T, "paused", r.entry(plain).PausedFrom, first.At)
	if again := b.submit(c); !reflect.DeepEqual(first, again) {
		b.Fatalf("the repetition: %+v, want %+v", again, first)
	}
}
