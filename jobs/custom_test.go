package jobs_test

import (
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

// A calendar is the user's code, and every replica calls it on the
// loop that renews its session: a panic there takes the whole fleet down, again and again.
func TestCustomThatPanics(t *testing.T) {
	t.Parallel()
	defer func() {
		if v := recover(); v != nil {
			t.Errorf("panic: %v", v)
		}
	}()
	s := jobs.Custom("broken", func(time.Time) time.Time { panic("calendar") })
	if due, ok := s.Next(time.Unix(0, 0)); ok {
		t.Errorf("next is %v", due)
	}
}
