package jobs

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The partition of a key is frozen: applications store slots in their tables.
// The figures are XXH64 with seed 0, whose value for "" and "a" the algorithm's
// own description gives: ef46db3751d8e999 and d24ec4f1a98c6e5b.
func TestContainsGolden(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key  string
		slot int
	}{{"", 0xe999}, {"a", 0x6e5b}} {
		for _, count := range []int{1, 2, 4096, 65536} {
			in := KeyRange{Partitions: []int{c.slot % count}, Count: count}
			if !in.Contains(c.key) {
				t.Errorf("%q of %d: not in partition %d", c.key, count, c.slot%count)
			}
			if count > 1 {
				out := KeyRange{Partitions: []int{(c.slot + 1) % count}, Count: count}
				if out.Contains(c.key) {
					t.Errorf("%q of %d: in two partitions", c.key, count)
				}
			}
		}
	}
	if (KeyRange{}).Contains("a") || (KeyRange{Partitions: []int{0}, Count: -1}).Contains("a") {
		t.Error("a range of no partitions contains a key")
	}
}

func collect(t interface{ Fatal(...any) }, keys iter.Seq2[string, error]) []string {
	var got []string
	for key, err := range keys {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, key)
	}
	return got
}

// Split the partitions in any way: each key comes exactly once, and a list comes
// ascending and resumes after any key.
func TestSourcesCoverEachKeyOnce(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfDistinct(rapid.StringN(1, 8, MaxKey), rapid.ID).Draw(t, "keys")
		count := 1 << rapid.IntRange(0, 6).Draw(t, "count")
		var halves [2][]int
		for p := range count {
			side := rapid.IntRange(0, 1).Draw(t, "side")
			halves[side] = append(halves[side], p)
		}
		list := KeyList(keys...)
		all := AllKeys(func(context.Context) iter.Seq2[string, error] {
			return func(yield func(string, error) bool) {
				for _, key := range keys {
					if !yield(key, nil) {
						return
					}
				}
			}
		})
		for _, source := range []KeySource{list, all, KeyFunc(all.Keys)} {
			var got []string
			for _, partitions := range halves {
				got = append(got, collect(t, source.Keys(t.Context(), KeyRange{Partitions: partitions, Count: count}))...)
			}
			slices.Sort(got)
			if want := slices.Sorted(slices.Values(keys)); !slices.Equal(got, want) {
				t.Fatalf("%T: %q, want %q", source, got, want)
			}
		}
		r := KeyRange{Partitions: halves[0], Count: count}
		whole := collect(t, list.Keys(t.Context(), r))
		if !slices.IsSorted(whole) {
			t.Fatalf("not ascending: %q", whole)
		}
		r.After = rapid.StringN(0, 8, MaxKey).Draw(t, "after")
		if len(whole) > 0 && rapid.Bool().Draw(t, "after one of them") {
			r.After = rapid.SampledFrom(whole).Draw(t, "after")
		}
		want := slices.DeleteFunc(slices.Clone(whole), func(key string) bool { return key <= r.After })
		if got := collect(t, list.Keys(t.Context(), r)); !slices.Equal(got, want) {
			t.Fatalf("after %q: %q, want %q", r.After, got, want)
		}
	})
}

func TestAllKeysPassesErrorOn(t *testing.T) {
	t.Parallel()
	lost := errors.New("connection lost")
	source := AllKeys(func(context.Context) iter.Seq2[string, error] {
		return func(yield func(string, error) bool) {
			_ = yield("a", nil) && yield("", lost) && yield("b", nil)
		}
	})
	var keys []string
	var errs []error
	for key, err := range source.Keys(t.Context(), KeyRange{Partitions: []int{0}, Count: 1}) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		keys = append(keys, key)
	}
	if !slices.Equal(keys, []string{"a"}) || len(errs) != 1 || !errors.Is(errs[0], lost) {
		t.Fatalf("keys %q, errors %v", keys, errs)
	}
}

func TestSourcesStopWhenAsked(t *testing.T) {
	t.Parallel()
	r := KeyRange{Partitions: []int{0}, Count: 1}
	list := KeyList("c", "a", "b")
	all := AllKeys(func(ctx context.Context) iter.Seq2[string, error] { return list.Keys(ctx, r) })
	for _, source := range []KeySource{list, all} {
		for key := range source.Keys(t.Context(), r) {
			if key != "a" {
				t.Fatalf("%T went on to %q", source, key)
			}
			break
		}
	}
}

func TestKeyListIsACopy(t *testing.T) {
	t.Parallel()
	keys := []string{"b", "a", "b"}
	list := KeyList(keys...)
	if keys[0] != "b" {
		t.Fatal("sorted the caller's slice")
	}
	keys[0] = "changed"
	got := collect(t, list.Keys(t.Context(), KeyRange{Partitions: []int{0}, Count: 1}))
	if !slices.Equal(got, []string{"a", "b"}) {
		t.Fatalf("%q", got)
	}
}

func BenchmarkContains(b *testing.B) {
	r := KeyRange{Count: 4096}
	for p := 0; p < r.Count; p += 3 {
		r.Partitions = append(r.Partitions, p)
	}
	keys := make([]string, 1024)
	for i := range keys {
		keys[i] = fmt.Sprintf("customer-%d", i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		r.Contains(keys[i%len(keys)])
	}
}
