package show

import (
	"fmt"
	"time"
)

// Instant is t in UTC to the second, as flags take it; "-" where there is none.
func Instant(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format(time.RFC3339)
}

// Age is how far t is from now, in one unit and rounded down: "3 min ago", "in 20 h", "now".
func Age(t, now time.Time) string {
	switch d := now.Sub(t); {
	case d >= time.Second:
		return roughly(d) + " ago"
	case d <= -time.Second:
		return "in " + roughly(-d)
	}
	return "now"
}

func roughly(d time.Duration) string {
	const day = 24 * time.Hour
	switch {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < 2*day:
		return fmt.Sprintf("%d h", d/time.Hour)
	}
	return fmt.Sprintf("%d d", d/day)
}
