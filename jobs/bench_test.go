package jobs

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/robfig/cron/v3"
)

var beside = flag.Bool("jobs.beside", false, "measure schedules beside robfig's, and print how many times faster or smaller they are")

// The benchmarks' schedules, from dense to sparse; 02:30 is a time that New York skips once a year.
var (
	benchSpecs = []string{"* * * * *", "*/5 * * * *", "0 * * * *", "0 0 * * *", "30 9 * * 1-5", "0 0 1 * *", "0 0 29 2 *", "30 2 * * *"}
	benchZones = []string{"UTC", "America/New_York"}
)

// nexter is a schedule of ours or of robfig's.
type nexter interface{ next(time.Time) time.Time }

type ours struct{ Schedule }

func (s ours) next(after time.Time) time.Time {
	t, _ := s.Next(after)
	return t
}

type theirs struct{ cron.Schedule }

func (s theirs) next(after time.Time) time.Time { return s.Next(after) }

// zoned is a spec in a zone, as both read it. robfig takes the zone of the instant where the text has none, and that costs less.
func zoned(spec, zone string) string {
	if zone == "UTC" {
		return spec
	}
	return "CRON_TZ=" + zone + " " + spec
}

func parseOurs(tb testing.TB, text string) Schedule {
	s, err := ParseSchedule(text)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func parseTheirs(tb testing.TB, text string) cron.Schedule {
	s, err := cron.ParseStandard(text)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

// benchInstants are walks of eight dues, each begun anywhere in some years: schedulers ask mostly from a due, and not always the same one.
func benchInstants(s nexter) []time.Time {
	r := rand.New(rand.NewPCG(20, 26))
	var list []time.Time
	for range 64 {
		at := time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.Int64N(int64(15 * 365 * 24 * time.Hour)))).Truncate(time.Second)
		for range 8 {
			list = append(list, at)
			at = s.next(at).UTC()
		}
	}
	return list
}

func BenchmarkNext(b *testing.B) {
	for _, spec := range benchSpecs {
		for _, zone := range benchZones {
			text := zoned(spec, zone)
			us := ours{parseOurs(b, text)}
			instants := benchInstants(us)
			for _, c := range []struct {
				name string
				s    nexter
			}{{"belfry", us}, {"robfig", theirs{parseTheirs(b, text)}}} {
				b.Run(fmt.Sprintf("%s/%s/%s", c.name, spec, zone), func(b *testing.B) {
					b.ReportAllocs()
					for i := 0; b.Loop(); i++ {
						if c.s.next(instants[i%len(instants)]).IsZero() {
							b.Fatal("never")
						}
					}
				})
			}
		}
	}
}

func TestNextAllocatesNothing(t *testing.T) {
	for _, spec := range benchSpecs {
		for _, zone := range benchZones {
			us := ours{parseOurs(t, zoned(spec, zone))}
			instants := benchInstants(us)
			i := 0
			if n := testing.AllocsPerRun(len(instants), func() { us.next(instants[i%len(instants)]); i++ }); n > 0 {
				t.Errorf("%s in %s: %v allocations a call", spec, zone, n)
			}
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for _, zone := range benchZones {
		text := zoned("30 9 * * 1-5", zone)
		keep := parseOurs(b, text)
		b.Run("belfry/again/"+zone, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if s := parseOurs(b, text); s != keep {
					b.Fatal("not interned")
				}
			}
		})
		b.Run("belfry/new/"+zone, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				parseOurs(b, newText(i, zone))
			}
		})
		b.Run("robfig/"+zone, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				parseTheirs(b, newText(i, zone))
			}
		})
	}
}

// newText is another spec each time, of some 400 million.
func newText(i int, zone string) string {
	return zoned(fmt.Sprintf("%d,%d %d %d %d *", i%60, i/60%60, i/3600%24, 1+i/86400%28, 1+i/2419200%12), zone)
}

// kept is what n schedules take for as long as they are used, in bytes each, besides the slice that holds them.
func kept[T any](n int, parse func(i int) T) float64 {
	list := make([]T, n)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.GC() // what was forgotten by clean-ups of the first
	runtime.ReadMemStats(&before)
	for i := range list {
		list[i] = parse(i)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	runtime.KeepAlive(list)
	return (float64(after.HeapAlloc) - float64(before.HeapAlloc)) / float64(n)
}

// TestBesideRobfig prints how schedules compare with robfig's:
//
//	go test ./jobs -run TestBesideRobfig -jobs.beside -v -count 1
//
// It measures both in turn, in short rounds, and takes the best: what else runs on the machine only adds.
func TestBesideRobfig(t *testing.T) {
	if !*beside {
		t.Skip("it takes some seconds; give -jobs.beside")
	}
	t.Logf("%-16s %-17s %9s %9s %7s", "Next", "", "belfry ns", "robfig ns", "ratio")
	for _, spec := range benchSpecs {
		for _, zone := range benchZones {
			text := zoned(spec, zone)
			us := ours{parseOurs(t, text)}
			instants := benchInstants(us)
			row(t, spec, zone, walk(us, instants), walk(theirs{parseTheirs(t, text)}, instants))
		}
	}
	t.Logf("%-16s %-17s", "Parse", "")
	for _, zone := range benchZones {
		text := zoned("30 9 * * 1-5", zone)
		keep := parseOurs(t, text)
		n := 0
		robfig := repeat(partSize, func() { parseTheirs(t, newText(n, zone)); n++ })
		row(t, "again", zone, repeat(partSize, func() { parseOurs(t, text) }), robfig)
		row(t, "a new one", zone, repeat(partSize, func() { parseOurs(t, newText(n, zone)); n++ }), robfig)
		runtime.KeepAlive(keep)
	}
	const n = 20_000
	zone := "America/New_York"
	text := zoned("30 9 * * 1-5", zone)
	keep := parseOurs(t, text)
	again := kept(n, func(int) Schedule { return parseOurs(t, text) })
	fresh := kept(n, func(i int) Schedule { return parseOurs(t, newText(i, zone)) })
	robfig := kept(n/10, func(int) cron.Schedule { return parseTheirs(t, text) })
	runtime.KeepAlive(keep)
	t.Logf("bytes kept in %s: %.0f by each further schedule of a known text, %.0f by one of a new text in a known zone; robfig %.0f by each", zone, again, fresh, robfig)
}

// calls are measured part by part, in turn with those of the other.
type calls struct {
	parts, each int
	run         func(part int)
}

const partSize = 16 // some microseconds: most rounds of a part are not interrupted

func walk(s nexter, instants []time.Time) calls {
	return calls{len(instants) / partSize, partSize, func(part int) {
		for _, at := range instants[part*partSize:][:partSize] {
			s.next(at)
		}
	}}
}

func repeat(n int, f func()) calls {
	return calls{1, n, func(int) {
		for range n {
			f()
		}
	}}
}

// row prints the best of many rounds of each part, a call.
func row(t *testing.T, what, zone string, us, them calls) {
	best := func(c calls, part int) time.Duration {
		begin := time.Now()
		c.run(part)
		return time.Since(begin)
	}
	var ns [2]float64
	for part := range us.parts {
		least := [2]time.Duration{best(us, part), best(them, part)}
		for range 30 {
			least = [2]time.Duration{min(least[0], best(us, part)), min(least[1], best(them, part))}
		}
		ns[0] += float64(least[0]) / float64(us.parts*us.each)
		ns[1] += float64(least[1]) / float64(them.parts*them.each)
	}
	t.Logf("%-16s %-17s %9.0f %9.0f %6.1fx", what, zone, ns[0], ns[1], ns[1]/ns[0])
}
