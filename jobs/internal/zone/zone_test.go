package zone

import (
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var every = flag.Bool("zone.every", false, "compare every zone with package time at many more instants")

// TestMain lets the test binary be a program that prints its zone version and a wall clock.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == childArg {
		child(os.Args[2])
		return
	}
	goleak.VerifyTestMain(m)
}

func load(tb testing.TB, name string) *Zone {
	tb.Helper()
	z, err := Load(name)
	if err != nil {
		tb.Fatal(err)
	}
	return z
}

// F56: the table says what package time says, at each change, beside it and anywhere. Of all zones, in about a minute:
//
//	go test ./jobs/internal/zone -run TestAtAgainstPackageTime -zone.every
func TestAtAgainstPackageTime(t *testing.T) {
	t.Parallel()
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	names, instants := 100, 100
	if *every {
		names, instants = math.MaxInt, 20_000
	}
	always := []string{"UTC", "America/New_York", "Africa/Casablanca", "Africa/Cairo", "Asia/Gaza", "Asia/Tehran", "Antarctica/Troll",
		"America/Nuuk", "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Chatham", "Europe/Dublin", "Africa/Monrovia", "Asia/Kathmandu"}
	for _, name := range append(always, some(rng, names)...) {
		z := load(t, name)
		for i, begin := range z.begins[1:] {
			agree(t, z, begin-1)
			agree(t, z, begin)
			agree(t, z, begin+1)
			if z.offsets[i] == z.offsets[i+1] {
				t.Errorf("%s: a stretch begins at %d, where no clock changes", name, begin)
			}
		}
		for range instants {
			agree(t, z, firstUnix+rng.Int64N(lastUnix-firstUnix))
			agree(t, z, tableEnd-rng.Int64N(250*366*day))
		}
		for _, year := range []int{2000, 2096, 2100, 2104, 2400, 9996} { // the first and last day of leap years and others
			edge := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC).Unix()
			for _, unix := range []int64{edge - day - 1, edge - day, edge - 1, edge, edge + 365*day, edge + 366*day} {
				agree(t, z, unix)
			}
		}
		if t.Failed() {
			t.Fatalf("again: the seed was %d, of zone %s", seed, name)
		}
	}
}

// some are names of the data, at random.
func some(rng *rand.Rand, n int) []string {
	all := current().entries
	var names []string
	for _, i := range rng.Perm(len(all))[:min(n, len(all))] {
		names = append(names, all[i].name)
	}
	return names
}

// agree compares At with package time: at the instant, at both ends of the stretch, and at some instants within.
func agree(t *testing.T, z *Zone, unix int64) {
	t.Helper()
	s := z.At(unix)
	bad := s.Begin > unix || s.End <= unix
	from, to := max(s.Begin, firstUnix), min(s.End-1, lastUnix)
	for _, within := range []int64{unix, from, to, unix + (to-unix)/2, from + (unix-from)/2} {
		bad = bad || offsetAt(z.loc, within) != s.Offset
	}
	if s.Begin != math.MinInt64 {
		bad = bad || offsetAt(z.loc, s.Begin-1) != s.Before || s.Before == s.Offset
	} else {
		bad = bad || s.Before != s.Offset
	}
	if s.End != math.MaxInt64 {
		bad = bad || offsetAt(z.loc, s.End) == s.Offset
	}
	if bad && !t.Failed() {
		t.Errorf("%s at %s: %+v", z.loc, time.Unix(unix, 0).UTC(), s)
	}
}

// Beyond its table a zone is asked of package time, and where both hold they are the same.
func TestTableAndWalkAreTheSame(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"America/New_York", "Australia/Sydney", "Africa/Casablanca", "Asia/Tokyo", "Antarctica/Troll"} {
		z := load(t, name)
		for unix := int64(tableEnd) - 3*366*day; unix < tableEnd; unix += day / 4 {
			if found, walked := z.find(unix), walk(z.loc, unix); found != walked {
				t.Fatalf("%s at %d: %+v in the table, %+v by package time", name, unix, found, walked)
			}
		}
	}
}

// Instants that nobody can write have an answer too.
func TestAtOutOfBounds(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"UTC", "Asia/Tokyo", "America/New_York", "Europe/Dublin"} {
		z := load(t, name)
		for _, unix := range []int64{math.MinInt64, math.MinInt64 + 1, firstUnix - 1, lastUnix, lastUnix + 400*366*day, math.MaxInt64 - 1} {
			if s := z.At(unix); s.Begin > unix || s.End <= unix || s.Offset < -day || s.Offset > day {
				t.Errorf("%s at %d: %+v", name, unix, s)
			}
		}
	}
}

func TestLoadNames(t *testing.T) {
	t.Parallel()
	if z := load(t, "UTC"); z != UTC || z.Location() != time.UTC {
		t.Errorf("UTC is %v", z.Location())
	}
	if a, b := load(t, "Europe/Berlin"), load(t, "Europe/Berlin"); a != b || a.Location().String() != "Europe/Berlin" {
		t.Errorf("%p is another one than %p, or has the wrong name, %v", a, b, a.Location())
	}
	count := func() (n int) {
		zones.Range(func(any, any) bool { n++; return true })
		return n
	}
	before := count()
	for name, want := range map[string]string{
		"":                          "another clock on each host",
		"Local":                     "another clock on each host",
		"europe/berlin":             `unknown zone "europe/berlin"; write Europe/Berlin`,
		"utc":                       `unknown zone "utc"; write UTC`,
		"EUROPE/BERLIN":             "write Europe/Berlin",
		"Europe/":                   "use an IANA name such as UTC or Europe/Berlin",
		"Europe":                    "use an IANA name",
		"/Europe/Berlin":            "use an IANA name",
		"Europe//Berlin":            "use an IANA name",
		" Europe/Berlin":            "use an IANA name",
		"Europe\\Berlin":            "use an IANA name",
		"../x":                      "use an IANA name",
		"Europe/../Europe/Berlin":   "use an IANA name",
		"/etc/localtime":            "use an IANA name",
		"Europe/Berlin\x00":         "use an IANA name",
		strings.Repeat("x", 10_000): "use an IANA name",
	} {
		z, err := Load(name)
		if z != nil || err == nil || !strings.Contains(err.Error(), want) || len(err.Error()) > 200 {
			t.Errorf("%.40q: %v, %v; want %q", name, z, err, want)
		}
	}
	if n := count(); n > before+len(current().entries) {
		t.Errorf("%d zones are kept, %d before", n, before)
	}
	for _, name := range []string{"europe/berlin", "utc", "../x"} {
		if _, kept := zones.Load(name); kept {
			t.Errorf("%q is kept", name)
		}
	}
}

// A table is small, and asking it allocates nothing.
func TestAtIsCheap(t *testing.T) {
	most, of := 0, ""
	for _, e := range current().entries {
		z := load(t, e.name)
		if size := 12*len(z.begins) + 2*len(z.first); size > most {
			most, of = size, e.name
		}
		if cap(z.begins) > len(z.begins) || cap(z.offsets) > len(z.offsets) {
			t.Errorf("%s: room for %d and %d changes, of which there are %d", e.name, cap(z.begins), cap(z.offsets), len(z.begins))
		}
	}
	t.Logf("the largest table: %d bytes, %s", most, of)
	if most > 6<<10 {
		t.Errorf("%s: a table of %d bytes", of, most)
	}
	z := load(t, "America/New_York")
	for _, unix := range []int64{0, 1_700_000_000, tableEnd + 1000*day} {
		if n := testing.AllocsPerRun(100, func() { z.At(unix) }); n != 0 {
			t.Errorf("%v allocations at %d", n, unix)
		}
	}
}

func BenchmarkAt(b *testing.B) {
	for _, name := range []string{"UTC", "Asia/Tokyo", "America/New_York", "Africa/Casablanca"} {
		z := load(b, name)
		b.Run(strings.ReplaceAll(name, "/", "-"), func(b *testing.B) {
			b.ReportAllocs()
			for unix := int64(1_700_000_000); b.Loop(); unix += day {
				if unix > 2_000_000_000 {
					unix = 1_700_000_000
				}
				z.At(unix)
			}
		})
	}
	z := load(b, "America/New_York")
	b.Run("random", func(b *testing.B) {
		rng := rand.New(rand.NewPCG(1, 2))
		var at [4096]int64
		for i := range at {
			at[i] = rng.Int64N(tableEnd)
		}
		for i := 0; b.Loop(); i++ {
			z.At(at[i%len(at)])
		}
	})
	b.Run("2200", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			z.At(tableEnd + 100*366*day)
		}
	})
}

func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := current().load("America/New_York"); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		open("")
	}
}

const childArg = "clock"

func child(name string) {
	z, err := Load(name)
	if err != nil {
		fmt.Fprintln(os.Stdout, Version(), err)
		return
	}
	fmt.Fprintln(os.Stdout, Version(), time.Date(2023, 3, 27, 0, 0, 0, 0, time.UTC).In(z.Location()).Format(time.RFC3339))
}
