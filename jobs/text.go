package jobs

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/belfry-go/belfry/jobs/internal/crontab"
)

// maxText bounds a schedule's text; an At of 1,000 instants fits.
const maxText = 32 << 10

// ParseSchedule reads a schedule's text, the one door for strings:
//
//	0 2 * * 1-5                       as Cron, in UTC
//	TZ=Europe/Berlin 0 2 * * *        in a zone; CRON_TZ= means the same
//	@every 1h30m phase 10m            as Every, with an optional Phase
//	@at 2026-10-01T04:00:00Z,…        as At
//
// The grammar is frozen. "@custom name" is how a Custom writes itself, but no
// text can bring its function back. The error says what to do.
func ParseSchedule(text string) (Schedule, error) {
	s := parse(text)
	return s, s.Err()
}

// MarshalText is String for a schedule without an error.
func (s Schedule) MarshalText() ([]byte, error) {
	if err := s.Err(); err != nil {
		return nil, err
	}
	return []byte(s.c.text), nil
}

// UnmarshalText is ParseSchedule; on an error s is left as it was.
func (s *Schedule) UnmarshalText(b []byte) error {
	parsed, err := ParseSchedule(string(b))
	if err == nil {
		*s = parsed
	}
	return err
}

// parse hands the text to the form its first word names; all others may have a
// zone prefix, which Cron takes off.
func parse(text string) Schedule {
	if len(text) > maxText {
		return broken(text, fmt.Errorf("%d bytes are too long; use at most %d", len(text), maxText))
	}
	word, rest, _ := strings.Cut(text, " ")
	switch word {
	case "@at":
		return parseAt(text, rest)
	case "@custom":
		return broken(text, errors.New("a custom calendar is code; build it with jobs.Custom"))
	}
	return parseCron(text)
}

func parseEvery(text, rest string) Schedule {
	words := strings.Fields(rest)
	if len(words) != 1 && (len(words) != 3 || words[1] != "phase") {
		return broken(text, errors.New("write @every 1h30m, or @every 1h30m phase 10m"))
	}
	d, err := time.ParseDuration(words[0])
	if err != nil {
		return broken(text, fmt.Errorf("interval: %w; write it as 90s, 15m or 1h30m", err))
	}
	s := newEvery(d, 0)
	if len(words) == 1 || s.fault() != nil {
		return s
	}
	phase, err := time.ParseDuration(words[2])
	if err != nil {
		return broken(text, fmt.Errorf("phase: %w; write it as 90s, 15m or 1h30m", err))
	}
	return s.Phase(phase)
}

func parseAt(text, rest string) Schedule {
	var times []time.Time
	for one := range strings.SplitSeq(rest, ",") {
		t, err := time.Parse(time.RFC3339, strings.Trim(one, crontab.Blanks))
		if err != nil {
			return broken(text, fmt.Errorf("instant %.40q: write it as 2026-10-01T04:00:00Z", one))
		}
		times = append(times, t)
	}
	return At(times...)
}
