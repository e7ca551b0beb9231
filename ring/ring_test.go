package ring

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// The values are frozen: applications store slots in their tables.
func TestSlotGolden(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]int{
		"": 0xe999, "a": 0x6e5b, "Nobody inspects the spammish repetition": 0x8bf1, // published xxhash64 vectors
		"customer-42": 35855, "kunde-ä": 63616, "\x00": 10088, "renewals": 39905,
		strings.Repeat("k", 4096): 21478,
	} {
		if got := Slot(key); got != want {
			t.Errorf("Slot(%.20q) = %d, want %d", key, got, want)
		}
	}
}

// A change here means that replicas of two versions disagree about owners:
// raise revision, and only then these values.
func TestFingerprintGolden(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n                   int
		o                   *Options
		layout, fingerprint string
	}{
		{1, nil, "r1:4096:200:1.1", "c5104205f8167de0"},
		{12, nil, "r1:4096:200:1.1", "89cf328b1db8cf56"},
		{5, &Options{Partitions: 256, VirtualNodes: 20, Load: 1.25}, "r1:256:20:1.25", "fe6548532fadfa88"},
	} {
		r := mustNew(t, named("node-%d", c.n), c.o)
		if r.Layout() != c.layout || r.Fingerprint() != c.fingerprint {
			t.Errorf("%d members: layout %q, fingerprint %q, want %q, %q",
				c.n, r.Layout(), r.Fingerprint(), c.layout, c.fingerprint)
		}
	}
	r := mustNew(t, named("node-%d", 5), &Options{Partitions: 256})
	if got, want := r.Owners("customer-42", 9), []string{"node-5", "node-2", "node-3", "node-4", "node-1"}; !slices.Equal(got, want) {
		t.Errorf("Owners = %q, want %q", got, want)
	}
}

func TestFingerprintTellsApart(t *testing.T) {
	t.Parallel()
	seen := map[string]string{}
	for what, r := range map[string]*Ring{
		"three":      mustNew(t, []string{"a", "b", "c"}, nil),
		"two":        mustNew(t, []string{"a", "b"}, nil),
		"other name": mustNew(t, []string{"a", "b", "d"}, nil),
		"joined":     mustNew(t, []string{"a", "bc"}, nil),
		"partitions": mustNew(t, []string{"a", "b", "c"}, &Options{Partitions: 2048}),
		"virtual":    mustNew(t, []string{"a", "b", "c"}, &Options{VirtualNodes: 101}),
		"load":       mustNew(t, []string{"a", "b", "c"}, &Options{Load: 1.11}),
	} {
		if other, ok := seen[r.Fingerprint()]; ok {
			t.Errorf("%s and %s have one fingerprint", what, other)
		}
		seen[r.Fingerprint()] = what
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 4096)
	for what, c := range map[string]struct {
		names []string
		o     *Options
		says  []string
	}{
		"no names":          {nil, nil, []string{"no members", "at least that one"}},
		"empty name":        {[]string{"a", ""}, nil, []string{`member ""`, "host name"}},
		"NUL":               {[]string{"a\x00b"}, nil, []string{`member "a\x00b"`, "NUL"}},
		"long name":         {[]string{long}, nil, []string{`member "xxxx`, "4096 bytes", "at most 255"}},
		"duplicate":         {[]string{"b", "a", "b"}, nil, []string{`member "b"`, "listed twice"}},
		"all name problems": {[]string{"", "b", "b", "c\x00"}, nil, []string{`""`, `"b"`, `"c\x00"`}},
		"too many members":  {named("node-%d", 1025), nil, []string{"1025 members", "1024"}},
		"no room": {named("node-%d", 9), &Options{Partitions: 8},
			[]string{"9 members", "8 partitions", "raise Partitions"}},
		"prime partitions":    {[]string{"a"}, &Options{Partitions: 271}, []string{"Partitions 271", "power of two"}},
		"negative partitions": {[]string{"a"}, &Options{Partitions: -4096}, []string{"Partitions -4096"}},
		"least partitions":    {[]string{"a"}, &Options{Partitions: math.MinInt}, []string{"power of two"}},
		"too many partitions": {[]string{"a"}, &Options{Partitions: 1 << 17}, []string{"Partitions 131072", "65536"}},
		"one virtual node":    {[]string{"a"}, &Options{VirtualNodes: 1}, []string{"VirtualNodes 1", "use 200"}},
		"many virtual nodes":  {[]string{"a"}, &Options{VirtualNodes: 513}, []string{"VirtualNodes 513", "512"}},
		"load of one":         {[]string{"a", "b"}, &Options{Load: 1}, []string{"Load 1:", "above 1"}},
		"negative load":       {[]string{"a"}, &Options{Load: -1.1}, []string{"Load -1.1"}},
		"load NaN":            {[]string{"a"}, &Options{Load: math.NaN()}, []string{"Load NaN"}},
		"load infinite":       {[]string{"a"}, &Options{Load: math.Inf(1)}, []string{"Load +Inf"}},
		"all layout problems": {[]string{"a"}, &Options{Partitions: 3, VirtualNodes: -1, Load: 0.5},
			[]string{"Partitions 3", "VirtualNodes -1", "Load 0.5"}},
	} {
		r, err := New(c.names, c.o)
		if err == nil || r != nil {
			t.Errorf("%s: New = %v, %v, want an error", what, r, err)
			continue
		}
		for _, part := range append(c.says, "ring: ") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: error %q does not say %q", what, err, part)
			}
		}
		if len(err.Error()) > 400 {
			t.Errorf("%s: error of %d bytes", what, len(err.Error()))
		}
	}
}

// The layouts New refuses are those consistent panics on; what it panics on
// all the same must come back as an error.
func TestPanicBecomesError(t *testing.T) {
	t.Parallel()
	_, _, err := assign([]string{"a", "b"}, Options{Partitions: 16, VirtualNodes: 2, Load: 0.5})
	if err == nil || !strings.Contains(err.Error(), "not enough room") || !strings.Contains(err.Error(), "raise Load") {
		t.Errorf("assign = %v, want an error that says what to do", err)
	}
}

func TestNewKeepsItsHands(t *testing.T) {
	t.Parallel()
	names, o := []string{"c", "a", "b"}, &Options{}
	r := mustNew(t, names, o)
	if !slices.Equal(names, []string{"c", "a", "b"}) || *o != (Options{}) {
		t.Errorf("New changed its arguments: %q, %+v", names, *o)
	}
	names[0] = "z"
	r.Members()[0] = "z"
	if got := r.Members(); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("Members = %q after the caller changed its own", got)
	}
}

// Every partition has an owner, and no member is above its bound of load.
func TestEdgeLayouts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		n int
		o Options
	}{
		{1, Options{Partitions: 1}},
		{2, Options{Partitions: 2, VirtualNodes: 2}},
		{8, Options{Partitions: 8, VirtualNodes: 2, Load: math.Nextafter(1, 2)}},
		{64, Options{Partitions: 64, Load: 1.001}},
		{3, Options{Partitions: 65536}},
		{1, Options{VirtualNodes: 512, Load: math.MaxFloat64}},
		{1024, Options{Partitions: 1024, VirtualNodes: 2}},
	} {
		r := mustNew(t, named("node-%d", c.n), &c.o)
		total, bound := 0, math.Ceil(float64(r.Partitions())/float64(c.n)*c.o.filled().Load)
		for _, name := range r.Members() {
			owned := len(r.Owned(name))
			total += owned
			if float64(owned) > bound {
				t.Errorf("%d members, %v: %s owns %d, above %v", c.n, c.o, name, owned, bound)
			}
		}
		if total != r.Partitions() {
			t.Errorf("%d members, %v: %d of %d partitions owned", c.n, c.o, total, r.Partitions())
		}
	}
}

func TestThousandMembers(t *testing.T) {
	t.Parallel()
	names := named("node-%d", 1000)
	o := &Options{VirtualNodes: 3} // the time of New grows with it
	r := mustNew(t, names, o)
	slices.Reverse(names)
	if again := mustNew(t, names, o); again.Fingerprint() != r.Fingerprint() {
		t.Error("the order of 1000 names changes the ring")
	}
	if got := r.Owners("customer-42", 2000); len(got) != 1000 {
		t.Errorf("Owners gives %d of 1000 members", len(got))
	}
}

// A key may be asked for before anybody has joined.
func TestZeroRing(t *testing.T) {
	t.Parallel()
	var r Ring
	if r.Owner("k") != "" || r.Owners("k", 3) != nil || r.Owned("a") != nil || r.Ranks("a", 1) != nil ||
		len(r.Members()) != 0 || r.Partitions() != 0 || r.Partition("k") != 0 {
		t.Error("the zero Ring owns something")
	}
}

// RG-12: shares are not equal, and the package comment says by how much.
func TestUnevenShares(t *testing.T) {
	t.Parallel()
	r := mustNew(t, named("node-%d", 20), &Options{Partitions: 256, VirtualNodes: 20, Load: 1.25})
	least, most := math.MaxInt, 0
	for _, name := range r.Members() {
		n := len(r.Owned(name))
		least, most = min(least, n), max(most, n)
	}
	if least != 8 || most != 16 {
		t.Errorf("shares are %d to %d, the package comment says 8 to 16", least, most)
	}
}

func TestPlan(t *testing.T) {
	t.Parallel()
	two, three := mustNew(t, []string{"a", "b"}, nil), mustNew(t, []string{"a", "b", "c"}, nil)
	if got := Plan(two, two); got != nil {
		t.Errorf("a ring differs from itself by %v", got)
	}
	if got := Plan(nil, nil); got != nil {
		t.Errorf("nothing differs from nothing by %v", got)
	}
	forth, back := Plan(two, three), Plan(three, two)
	if len(forth) == 0 || len(forth) != len(back) {
		t.Fatalf("%d moves forth, %d back", len(forth), len(back))
	}
	for i, m := range forth {
		if back[i] != (Move{m.Partition, m.To, m.From}) {
			t.Errorf("move %+v comes back as %+v", m, back[i])
		}
		if i > 0 && forth[i-1].Partition >= m.Partition {
			t.Errorf("partition %d after %d", m.Partition, forth[i-1].Partition)
		}
	}
	if got := len(Plan(nil, three)); got != three.Partitions() {
		t.Errorf("the first ring takes %d of %d partitions", got, three.Partitions())
	}
	for _, m := range Plan(three, &Ring{}) {
		if m.To != "" || m.From == "" {
			t.Errorf("move %+v to a ring of nobody", m)
		}
	}
}

// Rings of unlike partition counts compare by slot.
func TestPlanUnlikePartitions(t *testing.T) {
	t.Parallel()
	small := mustNew(t, named("node-%d", 3), &Options{Partitions: 64})
	large := mustNew(t, named("node-%d", 3), &Options{Partitions: 256})
	moved := map[int]Move{}
	for _, m := range Plan(small, large) {
		moved[m.Partition] = m
	}
	for _, key := range named("customer-%d", 2000) {
		a, b := small.Owner(key), large.Owner(key)
		m, ok := moved[large.Partition(key)]
		if ok != (a != b) || ok && (m.From != a || m.To != b) {
			t.Fatalf("key %s goes from %s to %s, the plan says %+v", key, a, b, m)
		}
	}
}

func TestLookupAllocatesNothing(t *testing.T) {
	r := mustNew(t, named("node-%d", 3), nil)
	key := "customer-4711"
	var sink string
	var n int
	if got := testing.AllocsPerRun(100, func() { sink = r.Owner(key); n = r.Partition(key) + Slot(key) }); got != 0 {
		t.Errorf("a look-up allocates %v times", got)
	}
	_, _ = sink, n
}
