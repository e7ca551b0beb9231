package jobs

import (
	"errors"
	"fmt"
	"strings"

	"github.com/belfry-go/belfry/jobs/internal/crontab"
	"github.com/belfry-go/belfry/jobs/internal/zone"
)

// cronRule is a crontab line in a zone.
type cronRule struct {
	*crontab.Rule
	zone string // as in the text; "" for none
}

func (r cronRule) next(after int64) (int64, bool)  { return r.Next(after) }
func (r cronRule) prev(before int64) (int64, bool) { return r.Prev(before) }

// parseCron compiles a crontab line, prefix and all. The canonical text has one
// blank between words and the zone as TZ=.
func parseCron(text string) Schedule {
	if s, ok := known(text); ok && s.isLine() {
		return s
	}
	name, z, rest, err := splitZone(text)
	if err != nil {
		return broken(text, err)
	}
	if word, interval := cutWord(rest); word == "@every" {
		return parseEvery(text, interval) // a zone means nothing to it
	}
	spec, err := crontab.Parse(rest)
	if err != nil {
		if wrong := new(crontab.Error); errors.As(err, &wrong) {
			wrong.Column += len(text) - len(rest) // from the line's column to the text's
		}
		return broken(text, err)
	}
	canonical := spec.String()
	if name != "" {
		canonical = "TZ=" + name + " " + canonical
	}
	return intern(canonical, func() rule {
		r := cronRule{spec.In(z), name}
		if spec.Hashed() {
			return hashedRule{line: r}
		}
		return r
	})
}

// isLine says that the schedule is a crontab line alone.
func (s Schedule) isLine() bool {
	switch s.c.rule.(type) {
	case cronRule, hashedRule:
		return true
	}
	return false
}

// cutWord takes off the first word.
func cutWord(text string) (word, rest string) {
	text = strings.TrimLeft(text, crontab.Blanks)
	if i := strings.IndexAny(text, crontab.Blanks); i >= 0 {
		return text[:i], text[i:]
	}
	return text, ""
}

// splitZone takes the zone prefix off; name is "" and the zone UTC where there is none.
func splitZone(text string) (name string, z *zone.Zone, rest string, err error) {
	if len(text) > maxText {
		return "", nil, "", fmt.Errorf("%d bytes are too long; use at most %d", len(text), maxText)
	}
	if strings.Trim(text, crontab.Blanks) != text {
		return "", nil, "", errors.New("blanks around it; trim the text")
	}
	for _, prefix := range []string{"TZ=", "CRON_TZ="} {
		if after, ok := strings.CutPrefix(text, prefix); ok {
			name, rest, _ = strings.Cut(after, " ")
			if z, err = zone.Load(name); err != nil {
				err = fmt.Errorf("column %d: %w", len(prefix)+1, err)
			}
			return name, z, rest, err
		}
	}
	return "", zone.UTC, text, nil
}
