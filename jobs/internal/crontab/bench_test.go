package crontab

import (
	"testing"
	"time"
)

var benchmarked = []string{"* * * * *", "* * * * * *", "*/5 * * * *", "0 0 * * *", "30 9 * * 1-5", "0 0 LW * *", "0 0 29 2 *", "0 0 * 2 MON#5"}

func benchmark(b *testing.B, ask func(r *Rule, at int64) bool) {
	at := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC).Unix()
	for _, name := range []string{"UTC", "America/New_York"} {
		for _, text := range benchmarked {
			r := rule(b, text, name)
			b.Run(name+"/"+text, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if !ask(r, at) {
						b.Fatal("never")
					}
				}
			})
		}
	}
}

func BenchmarkNext(b *testing.B) {
	benchmark(b, func(r *Rule, at int64) bool { _, ok := r.Next(at); return ok })
}

func BenchmarkPrev(b *testing.B) {
	benchmark(b, func(r *Rule, at int64) bool { _, ok := r.Prev(at); return ok })
}

func BenchmarkCountYear(b *testing.B) {
	benchmark(b, func(r *Rule, at int64) bool { return r.Count(at, at+365*day) >= 0 })
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse("*/15 8-18 15,LW * MON-FRI"); err != nil {
			b.Fatal(err)
		}
	}
}
