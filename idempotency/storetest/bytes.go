package storetest

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belfry-go/belfry/idempotency"
)

var byteLaws = []law{
	{"KeysStayDistinct/OfText", keysStayDistinct(utf8.ValidString)},
	{"KeysStayDistinct/OfBytes", keysStayDistinct(func(string) bool { return true })},
	{"RequestsStayDistinct", requestsStayDistinct},
	{"NamesStayDistinct", namesStayDistinct},
	{"KeyBounds", keyBounds},
	{"TextRoundTrips", textRoundTrips},
	{"ReplicaRoundTrips", replicaRoundTrips},
	{"InstantsRoundTrip", instantsRoundTrip},
}

// awkward are strings that some store somewhere merges, cuts or refuses; each
// differs from each other as bytes. F45.
func awkward() []string {
	s := []string{
		"key", "Key", "KEY", "key ", " key", "key\t", "key\n", "key\x00", "\x00", "\x00\x00", " ",
		"kéy", "ke\u0301y", "k\u212A", "straße", "strasse", "ı", "i", "İ", "Ａ", "A",
		"😀", "😁", "👨‍👩‍👧", "\ufeffkey", "ключ", "キー", "\u202ekey",
		"'", "''", `"`, "`", `\`, `\\`, `\'`, "%", "_", "k_y", "k%", "*", "?", "[k]ey", "key;--", "$1", ":key", "{key}",
		"null", "NULL", "0", "00", "0.0", "1e0", "1", "true", "a/b", "a@b", "a#b", "%00",
		"\xff", "\xfe\xff", "\xc3\x28", "key\xff",
		strings.Repeat("x", 255), strings.Repeat("x", 254) + "y", strings.Repeat("x", 254), strings.Repeat("é", 127) + "z",
	}
	return s
}

// F45, I12: keys are bytes, and different keys never merge. Those of text are tried alone too: who takes keys for text refuses the others
// before it merges any.
func keysStayDistinct(some func(string) bool) func(b *bundle) {
	return func(b *bundle) {
		r := b.ready("a", "h1")
		due := b.ago(time.Minute)
		r.opens(due)
		var batch []idempotency.Claim
		for _, k := range awkward() {
			if some(k) {
				batch = append(batch, r.insert(k, due))
			}
		}
		fences := make(map[string]int64)
		for i, a := range r.claim(batch...) {
			want(b.T, fmt.Sprintf("verdict of %q", batch[i].ID.Key), a.Verdict, idempotency.Won)
			fences[batch[i].ID.Key] = a.Fence
		}
		want(b.T, "keys", len(fences), len(batch))
		mine := r.mine()
		want(b.T, "mine", len(mine), len(batch))
		for _, x := range mine {
			want(b.T, fmt.Sprintf("fence of %q", x.ID.Key), x.Fence, fences[x.ID.Key])
		}
		for k, fence := range fences {
			row := b.row(key(k, due))
			want(b.T, fmt.Sprintf("key filtered by %q", k), row.ID.Key, k)
			want(b.T, fmt.Sprintf("fence of row %q", k), row.Fence, fence)
			b.finishes(idempotency.Finished, waits(row.ID, fence, due))
		}
		q := all()
		q.Limit = len(batch)
		want(b.T, "waiting", len(r.lag(q).Waiting), len(batch))
	}
}

// The same for what names runs by hand.
func requestsStayDistinct(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	var batch []idempotency.Claim
	for _, k := range append(awkward(), "") {
		c := r.insert("key", due)
		c.ID.Request, c.Exclusive = k, false
		batch = append(batch, c)
	}
	for i, a := range r.claim(batch...) {
		want(b.T, fmt.Sprintf("verdict of %q", batch[i].ID.Request), a.Verdict, idempotency.Won)
		b.finishes(idempotency.Finished, done(batch[i].ID, a.Fence))
	}
	got := make(map[string]bool)
	for _, x := range b.list(idempotency.Filter{Key: "key"}) {
		got[x.ID.Request] = true
	}
	for _, c := range batch {
		want(b.T, fmt.Sprintf("request %q is listed", c.ID.Request), got[c.ID.Request], true)
	}
	want(b.T, "requests", len(got), len(batch))
}

// Names are of few bytes, but their case counts too.
func namesStayDistinct(b *bundle) {
	names := []string{"job", "Job", "JOB", "job.", "job_", "job-", "j_b", "0", "00", strings.Repeat("j", 64)}
	for i, n := range names {
		r := b.open("a", func(o *idempotency.Opening) { o.Namespace = n })
		for j, e := range r.declare(fmt.Sprintf("h%d", i), names...) {
			want(b.T, "job", e.Job, names[j])
			want(b.T, "hash", e.Hash, r.hash)
		}
		d := r.decision(n)
		want(b.T, "won", r.decide(d).Won, true)
	}
	// A hash is compared as bytes too.
	r := b.open("a")
	r.declare("hash", plain)
	r.defs[0].Hash = "Hash"
	want(b.T, "in force", r.entries()[0].InForce, "Hash")
	want(b.T, "hash", r.entries()[0].Hash, "hash")
}

// A key that is too long or empty is refused, and its whole batch with it.
func keyBounds(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	for _, k := range []string{"", strings.Repeat("x", 256), strings.Repeat("é", 128)} {
		batch := []idempotency.Claim{r.insert("good", due), r.insert(k, due)}
		if a, err := r.store.Claim(b.Context(), r.session, 9, batch); err == nil {
			b.Fatalf("a key of %d bytes was taken: %+v", len(k), a)
		}
		finish := []idempotency.Finish{done(key("good", due), 1), done(key(k, due), 1)}
		if a, err := r.store.Finish(b.Context(), namespace, finish); err == nil {
			b.Fatalf("the finish of a key of %d bytes was taken: %+v", len(k), a)
		}
	}
	want(b.T, "rows", len(b.list(idempotency.Filter{})), 0)
}

// F32: valid UTF-8 of up to 64 KiB is kept as it is.
func textRoundTrips(b *bundle) {
	r := b.ready("a", "h1")
	due := b.ago(time.Minute)
	r.opens(due)
	for i, text := range []string{"", "\x00", "a\x00b\x00", "line\r\nline", "😀 'quoted' %s", strings.Repeat("é", 32<<10), strings.Repeat("\x00", 64<<10)} {
		c := r.insert(fmt.Sprint("k", i), due)
		f := done(c.ID, r.wins(c).Fence)
		f.Text, f.Reason = text, "panic"
		b.finishes(idempotency.Finished, f)
		if got := b.row(c.ID).Text; got != text {
			b.Fatalf("text of %d bytes came back as %d bytes", len(text), len(got))
		}
	}
	c := r.insert("bad", due)
	fence := r.wins(c).Fence
	for _, text := range []string{"\xff", strings.Repeat("x", 64<<10+1)} {
		f := done(c.ID, fence)
		f.Text = text
		if _, err := r.store.Finish(b.Context(), namespace, []idempotency.Finish{f}); err == nil {
			b.Fatalf("a text of %d bytes was taken", len(text))
		}
	}
	b.finishes(idempotency.Finished, done(c.ID, fence))
}

func replicaRoundTrips(b *bundle) {
	for _, name := range []string{"Töm's replica\x00 😀 ", strings.Repeat("r", 255)} {
		r := b.open(name)
		r.declare("h1", plain)
		b.base = b.base.Add(time.Second)
		x := r.runs(1, b.ago(time.Minute))[0]
		want(b.T, "replica", b.row(x.ID).Replica, name)
		b.finishes(idempotency.Finished, done(x.ID, x.Fence))
	}
}

// Dues may be long ago or in another zone; they come back in UTC.
func instantsRoundTrip(b *bundle) {
	r := b.open("a")
	d := b.definition(plain, "h1")
	zone := time.FixedZone("somewhere", 5*3600+1800)
	d.Opened, d.Next = time.Date(1890, 1, 1, 0, 0, 0, 123456789, zone), time.Date(1890, 1, 2, 0, 0, 0, 0, zone)
	r.hash, r.defs = "h1", []idempotency.Declaration{d}
	e := r.entries()[0]
	wantTime(b, "opened, in microseconds", e.Opened, d.Opened.Truncate(time.Microsecond))
	wantTime(b, "next", e.Next, d.Next)
	due := []time.Time{time.Date(1901, 2, 3, 4, 5, 6, 0, zone), time.Unix(-1, 0), time.Unix(0, 0), time.Unix(1, 0)}
	x := r.decision(plain, due...)
	x.Seen = e
	x.Ranges = []idempotency.Range{{Job: plain, From: due[0], To: due[1], Count: 5, Outcome: idempotency.Missed}}
	a := r.decide(x)
	want(b.T, "won", a.Won, true)
	for i, run := range b.list(idempotency.Filter{}) {
		wantTime(b, "due", run.ID.Due, due[i])
		want(b.T, "run of the answer", a.Runs[i].ID, run.ID)
	}
	got := b.ranges("")[0]
	wantTime(b, "from", got.From, due[0])
	wantTime(b, "to", got.To, due[1])
	far := r.decision(plain)
	far.Next = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)
	wantTime(b, "next", r.decide(far).Entry.Next, far.Next)
}
