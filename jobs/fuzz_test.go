package jobs

import (
	"testing"
	"time"
)

// FuzzParseSchedule takes any text and any instant: no text crashes or hangs, a
// schedule comes back from its text, and its dues are in order, forwards and back.
func FuzzParseSchedule(f *testing.F) {
	for _, text := range []string{
		"0 2 * * 1-5", "TZ=Europe/Berlin 0 2 * * *", "@every 1h30m phase 10m", "@at 2026-10-01T04:00:00Z", "@daily",
		"TZ=", "TZ=TZ=TZ=", "CRON_TZ=UTC@daily", "@custom x", "0 0 30 2 *", "59 59 23 31 12 6", "TZ=Pacific/Apia 0 8 31 * *",
		"@every -24h", "1,,2 * * * *", "*-5 * * * *", "@every 2562047h47m16s phase 1s", "@at 9999-12-31T23:59:59Z",
		"@manual", "@manual x", "H H(0-3) * * *", "0 0 L-3W * 5#2",
		"union(0 2 * * *; @every 1h; H 3 * * *)", "union()", "union(;)", "union(@manual; @daily)", "Union(@daily; @hourly)",
		"except(* * * * * *; * * * * 1-11 *)", "except(@every 1s; union(@every 2s; @every 2s phase 1s))",
		"except(@every 1m; except(@every 1s; until(2030-01-01T00:00:00Z; @every 1s)))", "except(@daily; @daily)",
		"from(2026-10-01T04:00:00Z; until(2026-10-02T00:00:00Z; TZ=Europe/Berlin */5 * * * *))",
		"from(2026-10-01T04:00:00.5Z; @daily)", "from(; @daily)", "until(0001-01-01T00:00:00Z; @daily)", "TZ=UTC union(@daily; @hourly)",
		"union(union(union(union(union(union(union(union(union(@daily)))))))))", "union(@daily", "union(@daily))", "except(a; b; c)",
		"except(* * * * *; union(0-29 * * 3-8 *; 30-59 * * 3-8 *))", "except(@every 1m; union(@every 2m; @every 2m phase 1m))",
		"except(@every 1m; from(2030-01-01T00:00:00Z; union(@every 3m; @every 3m phase 1m; @every 3m phase 2m)))",
		"except(TZ=Europe/Berlin * * * * *; union(TZ=Europe/Berlin 0-29 2 * * 1-5; except(30-59 2 * * *; H 2 1 * *)))",
	} {
		f.Add(text, int64(1_324_000_000))
	}
	f.Fuzz(func(t *testing.T, text string, after int64) {
		s, err := ParseSchedule(text)
		if (err == nil) != (s.Err() == nil) {
			t.Fatalf("%q: %v, but Err %v", text, err, s.Err())
		}
		if err != nil {
			return
		}
		again, err := ParseSchedule(s.String())
		if err != nil || again != s {
			t.Fatalf("%q: text %q does not come back: %v", text, s, err)
		}
		if s = s.For("job").In("Europe/Berlin"); s.Err() != nil {
			return // what is left of a combination may never fire
		}
		walkBothWays(t, s, time.Unix(after, 0))
	})
}

// walkBothWays goes some dues forward and back again.
func walkBothWays(t *testing.T, s Schedule, at time.Time) {
	dues := []time.Time{at}
	for range 3 {
		last := dues[len(dues)-1]
		next, ok := s.Next(last)
		if !ok {
			break
		}
		if !next.After(last) || next.Nanosecond() != 0 {
			t.Fatalf("%v after %v: %v", s, last, next)
		}
		dues = append(dues, next)
	}
	for i := len(dues) - 1; i > 1; i-- {
		if prev, ok := s.Prev(dues[i]); !ok || !prev.Equal(dues[i-1]) {
			t.Fatalf("%v before %v: %v, %t, but Next came from %v", s, dues[i], prev, ok, dues[i-1])
		}
	}
	n, until := s.Tally(at, dues[len(dues)-1], 1000)
	if len(dues) > 1 && (!until.After(at) || n > int64(len(dues)-1) || until.Equal(dues[len(dues)-1]) && n != int64(len(dues)-1)) {
		t.Fatalf("%v: %d dues after %v until %v, want those of %v", s, n, at, until, dues)
	}
}
