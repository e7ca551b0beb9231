package jobs

import (
	"runtime"
	"sync"
	"testing"
	"time"
)

// knownTexts are of every kind that is interned.
var knownTexts = []string{
	"TZ=America/New_York 30 9 * * 1-5", "0 2 * * *", "@every 1h30m phase 10m", "@at 2026-10-01T04:00:00Z",
	"except(TZ=Europe/Berlin 0 2 * * *; TZ=Europe/Berlin * * 24-26 12 *)",
	"from(2026-10-01T04:00:00Z; union(TZ=Asia/Tokyo 0 2 * * *; @every 1h))",
}

func TestInternedFormsAreShared(t *testing.T) {
	t.Parallel()
	a, b := Cron("TZ=Asia/Tokyo 1 2 3 4 *"), Cron("1  2 3 4 *").In("Asia/Tokyo")
	if a != b {
		t.Fatal("one text, two compiled forms")
	}
	if a == Cron("TZ=Asia/Seoul 1 2 3 4 *") {
		t.Fatal("two zones share one form")
	}
}

// A further schedule of a known text keeps nothing but its pointer.
func TestFurtherScheduleKeepsNothing(t *testing.T) {
	const n = 100_000
	held := make([]Schedule, 0, n+len(knownTexts))
	for _, text := range knownTexts {
		s, err := ParseSchedule(text)
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, s)
	}
	heap := func() int64 {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	before := heap()
	for i := range n {
		s, _ := ParseSchedule(knownTexts[i%len(knownTexts)])
		held = append(held, s)
	}
	each := float64(heap()-before)/n + 8 // the pointer, in held since before
	t.Logf("%.1f bytes a schedule", each)
	if each > 64 {
		t.Errorf("%.1f bytes a schedule, want at most 64", each)
	}
	runtime.KeepAlive(held)
}

// Of those that compile one text at once, one form stays.
func TestInternAtOnce(t *testing.T) {
	t.Parallel()
	for round := range 50 {
		forms := make([]Schedule, 8)
		var wg sync.WaitGroup
		for i := range forms {
			wg.Go(func() {
				base := Every(time.Duration(1000+round) * time.Second)
				forms[i] = Union(base, Cron("0 2 * * *")).Except(At(due)).In("Asia/Tokyo")
			})
		}
		wg.Wait()
		for i, s := range forms {
			if s != forms[0] || s.Err() != nil {
				t.Fatalf("round %d: form %d is another: %v", round, i, s.Err())
			}
		}
	}
}

// Texts that come and go leave nothing behind.
func TestInternedFormsAreForgotten(t *testing.T) {
	const text = "@every 271h3m5s"
	held := func() bool {
		interned.mu.Lock()
		defer interned.mu.Unlock()
		_, ok := interned.byText[text]
		return ok
	}
	s, _ := ParseSchedule(text)
	runtime.GC()
	if !held() {
		t.Fatal("forgotten while in use")
	}
	runtime.KeepAlive(s)
	s = Schedule{}
	for range 1000 {
		runtime.GC() // its clean-up runs some time after a collection
		if !held() {
			return
		}
		runtime.Gosched()
	}
	t.Fatal("never forgotten")
}
