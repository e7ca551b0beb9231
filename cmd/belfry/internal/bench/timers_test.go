package bench

import (
	"bytes"
	"strings"
	"testing"
	"time"
)

func TestTimers(t *testing.T) {
	t.Parallel()
	const entries = 7200 // two each second of the hour
	var log, text bytes.Buffer
	r, err := timersPlan{Entries: entries, Measure: 1100 * time.Millisecond}.run(t.Context(), &log)
	if err != nil {
		t.Fatal(err)
	}
	if r.Entries != entries || r.Workers < 1 || r.Add <= 0 || r.OneMore.N != moreEntries || r.IdleCPU <= 0 || r.HourlyCPU <= 0 || r.BurstCPU <= 0 {
		t.Errorf("something was not measured: %+v", r)
	}
	if r.Bytes < 4 || r.Bytes > 64 {
		t.Errorf("%g bytes an entry, want 4 for its schedule and some more", r.Bytes)
	}
	if r.HourlyLate.N < 1 || r.HourlyLate.N > entries/10 {
		t.Errorf("%d dues in about a second, want those of one second or a few", r.HourlyLate.N)
	}
	if r.BurstLate.N != entries || r.BurstLate.P50 < 0 {
		t.Errorf("of %d due at once workers got %+v", entries, r.BurstLate)
	}
	r.Print(&text)
	if n := strings.Count(log.String(), "\n"); n != 3 || !strings.Contains(text.String(), "7200 entries") {
		t.Errorf("logged\n%s\nprinted\n%s", &log, &text)
	}
}
