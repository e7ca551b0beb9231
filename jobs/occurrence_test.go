package jobs

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var due = time.Date(2026, 10, 1, 4, 0, 0, 0, time.UTC)

func TestOccurrenceIDGolden(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("é", 127)
	// SHA-256 of 228 times k, by another program.
	const hash228 = "fd220b7030eb15b77576f02a7987095edcc93ac6dfea81b903b004bb0852a2f3"
	hexed := strings.Repeat("0f", 32)
	for _, c := range []struct {
		o    Occurrence
		want string
	}{
		{Occurrence{Namespace: "ns", Job: "job", Key: "key", Due: due}, "ns:job/key@2026-10-01T04:00:00Z"},
		{Occurrence{Namespace: "ns", Job: "job", Key: "key", Due: due, Request: "r-1"}, "ns:job/key@2026-10-01T04:00:00Z#r-1"},
		{Occurrence{Namespace: "a.b_c-d", Job: "J", Key: "a.b_c-d~", Due: due}, "a.b_c-d:J/a.b_c-d~@2026-10-01T04:00:00Z"},
		{Occurrence{Namespace: "ns", Job: "job", Key: "a/b@c#d:e %\x00é", Due: due},
			"ns:job/a%2Fb%40c%23d%3Ae%20%25%00%C3%A9@2026-10-01T04:00:00Z"},
		{Occurrence{Namespace: "ns", Job: "job", Key: "k", Due: due.In(time.FixedZone("", -7*3600))}, "ns:job/k@2026-10-01T04:00:00Z"},
		{Occurrence{Namespace: "ns", Job: "job", Key: long, Due: due},
			fmt.Sprintf("ns:job/%x@2026-10-01T04:00:00Z", sha256.Sum256([]byte(long)))},
		{Occurrence{Namespace: "ns", Job: "job", Key: hexed, Due: due},
			fmt.Sprintf("ns:job/%x@2026-10-01T04:00:00Z", sha256.Sum256([]byte(hexed)))},
		// 255 bytes exactly stay readable, 256 do not.
		{Occurrence{Namespace: "ns", Job: "job", Key: strings.Repeat("k", 227), Due: due},
			"ns:job/" + strings.Repeat("k", 227) + "@2026-10-01T04:00:00Z"},
		{Occurrence{Namespace: "ns", Job: "job", Key: strings.Repeat("k", 228), Due: due},
			"ns:job/" + hash228 + "@2026-10-01T04:00:00Z"},
	} {
		if got := c.o.ID(); got != c.want || c.o.IdempotencyKey() != c.want {
			t.Errorf("%+v:\n got %s\nwant %s", c.o, got, c.want)
		}
	}
}

// Attempt, fence and payload describe a try, not the occurrence.
func TestOccurrenceIDIsOfTheDue(t *testing.T) {
	t.Parallel()
	o := Occurrence{Namespace: "ns", Job: "job", Key: "k", Due: due}
	again := o
	again.Attempt, again.Fence, again.Payload = 3, 99, []byte("x")
	if o.ID() != again.ID() {
		t.Fatalf("%s != %s", o.ID(), again.ID())
	}
}

type identity struct {
	namespace, job, key, request string
	due                          int64
}

func (i identity) id() string {
	return Occurrence{Namespace: i.namespace, Job: i.job, Key: i.key, Request: i.request, Due: time.Unix(i.due, 0)}.ID()
}

// drawKey favours keys that could be taken for another's encoding or hash.
func drawKey(t *rapid.T) string {
	key := rapid.OneOf(
		rapid.StringMatching(`[a/@#%:~.]{1,4}`),
		rapid.StringMatching(`%[0-9A-F]{2}`),
		rapid.StringN(1, 60, MaxKey),
		rapid.Custom(func(t *rapid.T) string {
			return strings.Repeat(rapid.SampledFrom([]string{"/", "a"}).Draw(t, "b"), 240)
		}),
	).Draw(t, "key")
	if rapid.Bool().Draw(t, "hashed") {
		key = fmt.Sprintf("%x", sha256.Sum256([]byte(key)))
	}
	return key
}

func TestOccurrenceIDInjective(t *testing.T) {
	t.Parallel()
	name := rapid.StringMatching(`[a._-]{1,2}|[A-Za-z0-9._-]{64}`)
	request := rapid.StringMatching(`|[a.-]{1,2}|[A-Za-z0-9._-]{36}`)
	rapid.Check(t, func(t *rapid.T) {
		seen := make(map[string]identity)
		base := drawKey(t)
		for range 30 {
			i := identity{name.Draw(t, "ns"), name.Draw(t, "job"), base, request.Draw(t, "req"), 1_790_000_000}
			switch rapid.IntRange(0, 2).Draw(t, "kin") {
			case 0:
				i.key = drawKey(t)
			case 1:
				i.key = fmt.Sprintf("%x", sha256.Sum256([]byte(base)))
			}
			i.due += rapid.Int64Range(0, 1).Draw(t, "due")
			id := i.id()
			if other, ok := seen[id]; ok && other != i {
				t.Fatalf("%q for both\n%+v\n%+v", id, i, other)
			}
			seen[id] = i
			if len(id) > maxID || strings.Trim(id, "!\"#$%&'()*+,-./0123456789:;<=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~") != "" {
				t.Fatalf("%q: %d bytes, or not printable ASCII", id, len(id))
			}
		}
	})
}

func TestValidateNames(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		check func(string) error
		value string
		ok    bool
	}{
		{ValidateName, "renewals", true}, {ValidateName, strings.Repeat("n", 64), true},
		{ValidateName, "", false}, {ValidateName, strings.Repeat("n", 65), false},
		{ValidateName, "a b", false}, {ValidateName, "a/b", false}, {ValidateName, "Jób", false}, {ValidateName, "a\x00", false},
		{ValidateRequest, "0198b2a0-8a54-7c11-9b62-7f6f2f0a9c11", true},
		{ValidateRequest, strings.Repeat("r", 37), false}, {ValidateRequest, "", false}, {ValidateRequest, "a#b", false},
		{ValidateKey, "\x00 é\xff", true}, {ValidateKey, strings.Repeat("k", 255), true},
		{ValidateKey, strings.Repeat("k", 256), false}, {ValidateKey, "", false},
	} {
		err := c.check(c.value)
		if (err == nil) != c.ok {
			t.Errorf("%q: %v", c.value, err)
		}
		if err != nil && !strings.HasPrefix(err.Error(), "jobs: ") {
			t.Errorf("%q: no package prefix: %v", c.value, err)
		}
	}
}

func FuzzOccurrenceID(f *testing.F) {
	f.Add("a", "a/b", "", int64(0))
	f.Add("%2F", "/", "r", int64(1_790_000_000))
	f.Fuzz(func(t *testing.T, a, b, request string, sec int64) {
		sec = min(max(sec, minUnix), maxUnix)
		one := identity{"ns", "job", a, request, sec}
		two := identity{"ns", "job", b, request, sec}
		if (one.id() == two.id()) != (a == b) {
			t.Fatalf("%q and %q: %s, %s", a, b, one.id(), two.id())
		}
		if len(a) <= MaxKey && len(request) <= MaxRequest && checkName("", request+"r", MaxName) == nil && len(one.id()) > maxID {
			t.Fatalf("%d bytes: %s", len(one.id()), one.id())
		}
	})
}
