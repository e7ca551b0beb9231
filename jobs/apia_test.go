package jobs_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// CK-11: a preview, a catch-up and a back-test ask across a day that the zone left out. Each of them returns: the loop that
// asks serves all other jobs too.
func TestQuestionsAcrossADayThatNeverWas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		zone string
		from time.Time
	}{
		{"Pacific/Apia", time.Date(2011, 12, 20, 0, 0, 0, 0, time.UTC)},
		{"Pacific/Kwajalein", time.Date(1993, 8, 10, 0, 0, 0, 0, time.UTC)},
	} {
		s := jobs.Cron("0 8 31 * *").In(c.zone)
		to := c.from.AddDate(1, 0, 0)
		done := make(chan int64, 3) // one answer each
		go func() {
			var n int64
			for due, ok := s.Next(c.from); ok && !due.After(to); due, ok = s.Next(due) {
				n++
			}
			done <- n
		}()
		go func() { done <- s.Count(c.from, to) }()
		go func() {
			var n int64
			for range s.All(c.from, to) {
				n++
			}
			done <- n
		}()
		for range 3 {
			select {
			case n := <-done:
				if n != 7 {
					t.Errorf("%s: %d dues in a year of seven months with 31 days", c.zone, n)
				}
			case <-time.After(time.Minute):
				t.Fatalf("%s: no answer", c.zone)
			}
		}
	}
}
