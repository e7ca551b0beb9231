package ring

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// The laws below run on seeds that rapid prints with a replay command when one
// fails: go test ./ring -run TestX -rapid.seed=N.

// members draws 1 to max valid names, mixing the schemes with hostile ones.
func members(t *rapid.T, most int) []string {
	name := rapid.OneOf(
		rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("node-%d", rapid.IntRange(1, 120).Draw(t, "i")) }),
		rapid.SampledFrom([]string{"1:node", "node", "1", "1:1", " ", "\n", "\xff\xfe", strings.Repeat("z", 255)}),
		rapid.StringN(1, 20, 60).Filter(func(s string) bool { return s != "" && !strings.Contains(s, "\x00") }),
	)
	return rapid.SliceOfNDistinct(name, 1, most, rapid.ID[string]).Draw(t, "members")
}

// layout draws a layout with room for 16 members, small enough to build fast.
func layout(t *rapid.T) *Options {
	return &Options{
		Partitions:   1 << rapid.IntRange(4, 10).Draw(t, "log2 partitions"),
		VirtualNodes: rapid.IntRange(2, 40).Draw(t, "virtual nodes"),
		Load:         rapid.Float64Range(1.001, 3).Draw(t, "load"),
	}
}

func drawn(t *rapid.T) *Ring {
	r, err := New(members(t, 16), layout(t))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestOrderIndependence(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names, o := members(t, 16), layout(t)
		a, errA := New(names, o)
		b, errB := New(rapid.Permutation(names).Draw(t, "order"), o)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if a.Fingerprint() != b.Fingerprint() || !slices.Equal(a.table, b.table) ||
			!slices.Equal(a.points, b.points) || !slices.Equal(a.start, b.start) {
			t.Fatal("the order of names changes the ring")
		}
	})
}

// F24: replicas hear of joins and leaves in any order, some twice. Events carry
// the incarnation, the newest of each member counts, and whatever the order the
// ring is the same.
func TestEventOrderIndependence(t *testing.T) {
	t.Parallel()
	type event struct {
		name        string
		incarnation int
		alive       bool
	}
	replay := func(t *rapid.T, events []event, o *Options) *Ring {
		newest := map[string]event{}
		r := &Ring{}
		for _, e := range events {
			if old, ok := newest[e.name]; ok && old.incarnation >= e.incarnation {
				continue
			}
			newest[e.name] = e
			names := []string{"self"}
			for name, e := range newest {
				if e.alive {
					names = append(names, name)
				}
			}
			var err error
			if r, err = New(names, o); err != nil {
				t.Fatal(err)
			}
		}
		return r
	}
	rapid.Check(t, func(t *rapid.T) {
		var events []event
		for i := range rapid.IntRange(1, 8).Draw(t, "members") {
			for inc := range rapid.IntRange(1, 3).Draw(t, "incarnations") {
				events = append(events, event{fmt.Sprintf("node-%d", i), inc, rapid.Bool().Draw(t, "alive")})
			}
		}
		o := &Options{Partitions: 64, VirtualNodes: 10}
		a := replay(t, events, o)
		again := append(slices.Clone(events), rapid.SampledFrom(events).Draw(t, "repeated"))
		b := replay(t, rapid.Permutation(again).Draw(t, "order"), o)
		if a.Fingerprint() != b.Fingerprint() {
			t.Fatalf("members %q or %q by the order of events", a.Members(), b.Members())
		}
	})
}

func TestOwnersLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, key := drawn(t), rapid.String().Draw(t, "key")
		all := r.Owners(key, 1000)
		sorted := slices.Sorted(slices.Values(all))
		if !slices.Equal(sorted, r.Members()) {
			t.Fatalf("Owners %q are not the members %q, each once", all, r.Members())
		}
		if all[0] != r.Owner(key) {
			t.Fatalf("first is %q, the owner is %q", all[0], r.Owner(key))
		}
		for n := -1; n <= len(all); n++ {
			if got := r.Owners(key, n); !slices.Equal(got, all[:max(n, 0)]) {
				t.Fatalf("Owners(%d) = %q does not begin %q", n, got, all)
			}
		}
		if p := Slot(key) % r.Partitions(); p != r.Partition(key) || !slices.Contains(r.Owned(all[0]), p) {
			t.Fatalf("partition %d of slot %d is not among its owner's", r.Partition(key), Slot(key))
		}
	})
}

// Where load has no bound that matters, the successors are exactly the ranks of
// the ring without the owner. (With a bound, nearly: TestRankOneInherits.)
func TestSuccessorsInherit(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := layout(t)
		o.Load = 1e6
		r, err := New(append(members(t, 15), "\x01 one more"), o)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range rapid.SliceOfN(rapid.String(), 1, 10).Draw(t, "keys") {
			all := r.Owners(key, 16)
			rest := slices.DeleteFunc(r.Members(), func(name string) bool { return name == all[0] })
			if len(rest) == 0 {
				return
			}
			left, err := New(rest, o)
			if err != nil {
				t.Fatal(err)
			}
			if got := left.Owners(key, 16); !slices.Equal(got, all[1:]) {
				t.Fatalf("without %q the ranks are %q, its successors were %q", all[0], got, all[1:])
			}
		}
	})
}

// Ranks says of all partitions what Owners says of one key.
func TestRanksAreOwners(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		r, n := drawn(t), rapid.IntRange(1, 20).Draw(t, "n")
		keys := rapid.SliceOfN(rapid.String(), 1, 20).Draw(t, "keys")
		covered := make([]int, r.Partitions())
		for _, name := range r.Members() {
			ranks := r.Ranks(name, n)
			if len(ranks) != min(n, len(r.members)) {
				t.Fatalf("%d ranks of %d asked, %d members", len(ranks), n, len(r.members))
			}
			for p := range covered {
				for _, bitmap := range ranks {
					covered[p] += int(bitmap[p/8] >> (p % 8) & 1)
				}
			}
			for _, key := range keys {
				want := slices.Index(r.Owners(key, n), name)
				p := r.Partition(key)
				for rank, bitmap := range ranks {
					if has := bitmap[p/8]>>(p%8)&1 == 1; has != (rank == want) {
						t.Fatalf("%q at partition %d: rank %d is %v, Owners says rank %d", name, p, rank, has, want)
					}
				}
			}
		}
		for p, c := range covered {
			if c != min(n, len(r.members)) {
				t.Fatalf("partition %d has %d members in rank", p, c)
			}
		}
		if r.Ranks("no such member", n) != nil || r.Ranks(r.members[0], 0) != nil {
			t.Fatal("ranks of no member, or none asked, are not nil")
		}
	})
}

// A bitmap of fewer than eight partitions still has its byte.
func TestRanksSmall(t *testing.T) {
	t.Parallel()
	r := mustNew(t, []string{"a"}, &Options{Partitions: 4})
	if got := r.Ranks("a", 5); len(got) != 1 || !slices.Equal(got[0], []byte{0x0f}) {
		t.Errorf("Ranks = %v, want one bitmap of four bits", got)
	}
}

func TestPlanLaws(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		o := layout(t)
		from, errA := New(members(t, 16), o)
		to, errB := New(members(t, 16), o)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		table := make([]string, from.Partitions())
		for p := range table {
			table[p] = from.at(p)
		}
		for _, m := range Plan(from, to) {
			if m.From == m.To || table[m.Partition] != m.From {
				t.Fatalf("move %+v of a partition of %q", m, table[m.Partition])
			}
			table[m.Partition] = m.To
		}
		for p, owner := range table {
			if owner != to.at(p) {
				t.Fatalf("partition %d ends with %q, not %q", p, owner, to.at(p))
			}
		}
	})
}

// hostile draws anything at all, by far not only what New takes.
func TestHostileNamesNeverPanic(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
			"", "\x00", "a\x00", "node-1", "node-11", strings.Repeat("\xff", 4096),
		})), 0, 12).Draw(t, "names")
		o := &Options{
			Partitions:   rapid.OneOf(rapid.Int(), rapid.SampledFrom([]int{0, 1, 8, 64})).Draw(t, "partitions"),
			VirtualNodes: rapid.OneOf(rapid.Int(), rapid.IntRange(0, 20)).Draw(t, "virtual nodes"),
			Load:         rapid.OneOf(rapid.Float64(), rapid.Float64Range(1, 2)).Draw(t, "load"),
		}
		r, err := New(names, o)
		if (r == nil) == (err == nil) {
			t.Fatalf("New = %v, %v", r, err)
		}
		if err == nil && !slices.Contains(names, r.Owner("k")) {
			t.Fatalf("owner %q is none of %q", r.Owner("k"), names)
		}
	})
}
