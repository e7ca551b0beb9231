package rule

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/belfry-go/belfry/idempotency"
)

// A refitted set has a partition if and only if the old one has the partition of each slot in it: keys keep
// what is true of them, and nothing becomes true of a key of which it was not.
func TestRefit(t *testing.T) {
	t.Parallel()
	power := func(t *rapid.T, what string) int { return 1 << rapid.IntRange(0, 7).Draw(t, what) }
	rapid.Check(t, func(t *rapid.T) {
		const slots = 128
		from, to := power(t, "from"), power(t, "to")
		set := Bitmap(from)
		for p := range from {
			if rapid.IntRange(0, 3).Draw(t, "bit") > 0 {
				set[p/8] |= 1 << (p % 8)
			}
		}
		has := func(set []byte, p int) bool { return set[p/8]>>(p%8)&1 == 1 }
		got := Refit(set, from, to)
		if len(got) != len(Bitmap(to)) {
			t.Fatalf("%d bytes for %d partitions", len(got), to)
		}
		for p := range to {
			want := true
			for slot := p; slot < slots; slot += to {
				want = want && has(set, slot%from)
			}
			if has(got, p) != want {
				t.Fatalf("%d to %d partitions, %08b became %08b: partition %d is wrong", from, to, set, got, p)
			}
		}
		if to >= from && !bytes.Equal(Refit(got, to, from), set) {
			t.Fatalf("%d to %d partitions and back, %08b became %08b", from, to, set, Refit(got, to, from))
		}
		if Covers(set, from) != Covers(got, to) && (to >= from || Covers(set, from)) {
			t.Fatalf("%d to %d partitions, %08b became %08b: one covers all", from, to, set, got)
		}
	})
}

func TestRefitPasses(t *testing.T) {
	t.Parallel()
	later := now.Add(time.Hour)
	keep, drop := RefitPasses([]idempotency.Pass{
		{Job: "b", Due: now, Session: 9, Finished: []byte{0b1000}, Keys: 1},
		{Job: "a", Due: later, Session: 3, Mine: []byte{0b0101}, Finished: []byte{0b0001}, Keys: 5},
		{Job: "b", Due: now, Session: 4, Finished: []byte{0b0010}, Keys: 10}, // what merges with 9's
		{Job: "b", Due: later, Session: 4, Finished: []byte{0b1111}, Keys: 2},
	}, 4, 2)
	want := []idempotency.Pass{
		{Job: "b", Due: now, Session: 4, Mine: []byte{0b10}, Finished: []byte{0b10}, Keys: 11},
		{Job: "a", Due: later, Session: 3, Mine: []byte{0}, Finished: []byte{0}, Keys: 5},
		{Job: "b", Due: later, Session: 4, Mine: []byte{0b11}, Finished: []byte{0b11}, Keys: 2},
	}
	if !reflect.DeepEqual(keep, want) {
		t.Errorf("kept are\n%+v, want\n%+v", keep, want)
	}
	if len(drop) != 1 || drop[0].Session != 9 {
		t.Errorf("dropped are %+v, want session 9's", drop)
	}
}

func TestCheckPartitions(t *testing.T) {
	t.Parallel()
	for p, ok := range map[int]bool{1: true, 2: true, 4096: true, 1 << 16: true, 0: false, -4: false, 3: false, 1 << 17: false} {
		if err := CheckPartitions(p); (err == nil) != ok {
			t.Errorf("%d partitions: %v", p, err)
		}
	}
}

func TestInUse(t *testing.T) {
	t.Parallel()
	if err := InUse("ns", nil); err != nil {
		t.Errorf("used by nobody: %v", err)
	}
	err := InUse("ns", []Holder{{"one", now}, {"two", now.Add(time.Second)}, {"three", now}})
	if !errors.Is(err, idempotency.ErrRefused) || !strings.Contains(err.Error(), `"ns" is in use: replica "two" holds it until 2026-10-01T04:00:01Z and 2 other`) {
		t.Errorf("%v names not who uses it longest", err)
	}
}
