// Package crontab reads crontab lines and computes their dues.
package crontab

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/robfig/cron/v3"

	"github.com/belfry-go/belfry/jobs/internal/zone"
)

// Blanks separate words in a schedule's text; a blank of any other alphabet is
// a slip of copying and is refused.
const Blanks = " \t\r\n"

// Spec is a crontab line without a zone. It is immutable.
type Spec struct {
	second, minute, hour, dom, month, dow uint64

	text    string
	elapsed bool // fires in both passes of a repeated hour, and makes nothing up
}

// String is the canonical text: one blank between words.
func (s *Spec) String() string { return s.text }

// Hashed says that the line has an H, so that it has no dues until Resolve.
func (s *Spec) Hashed() bool { return false }

// Resolve is the line with each H replaced by what name hashes to.
func (s *Spec) Resolve(name string) *Spec { return s }

// In is the line's rule by the wall clock of a zone.
func (s *Spec) In(z *zone.Zone) *Rule { return &Rule{s, z} }

// field is the place of a cron field; width is how many values it can take.
type field struct {
	name  string
	width int
}

var fields = []field{
	{"second", 60}, {"minute", 60}, {"hour", 24},
	{"day of month", 31}, {"month", 12}, {"day of week", 7},
}

// member is one element of a field's comma list. The parser behind is lenient:
// it takes *-5, empty members and signs for something else than was meant.
var member = regexp.MustCompile(`^(?:[*?]|(?:\d{1,2}|[A-Za-z]{3})(?:-(?:\d{1,2}|[A-Za-z]{3}))?)(?:/(\d{1,2}))?$`)

// hourly is the one descriptor that follows elapsed time.
const hourly = "@hourly"

var parser = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour |
	cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// Parse reads a line without a zone, never into a panic: five fields, six with
// seconds first, or a descriptor such as @hourly.
func Parse(text string) (s *Spec, err error) {
	line := strings.Join(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(Blanks, r) }), " ")
	if err := checkLine(line); err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("not a cron line (%v); write five fields, such as 0 2 * * *", p)
		}
	}()
	parsed, err := parser.Parse(line)
	if err != nil {
		return nil, fmt.Errorf("%w; write five fields, such as 0 2 * * *, or six with seconds first", err)
	}
	s = newSpec(parsed.(*cron.SpecSchedule))
	s.text, s.elapsed = line, followsElapsed(line)
	if _, ok := s.reading(0, neverAfter); !ok {
		return nil, errors.New("it never fires: no month it names has such a day; mend the day or the month")
	}
	return s, nil
}

// checkLine refuses what the parser would take for something else.
func checkLine(line string) error {
	if line == "" {
		return errors.New("nothing to go by; write five fields, such as 0 2 * * *, or @every 1h")
	}
	if strings.HasPrefix(line, "@") {
		return nil
	}
	words := strings.Split(line, " ")
	if len(words) != 5 && len(words) != 6 {
		return fmt.Errorf("%d fields; write five, such as 0 2 * * *, or six with seconds first", len(words))
	}
	for i, word := range words {
		f := fields[i+len(fields)-len(words)]
		for one := range strings.SplitSeq(word, ",") {
			m := member.FindStringSubmatch(one)
			if m == nil {
				return fmt.Errorf("%s field %.40q: %.40q is not a value, a range a-b, * or a step */n", f.name, word, one)
			}
			if step, _ := strconv.Atoi(m[1]); step >= f.width {
				return fmt.Errorf("%s field %.40q: a step of %d leaves the field, so it would not be what it says; "+
					"use @every for an interval", f.name, word, step)
			}
		}
	}
	return nil
}

// followsElapsed tells from the text of the hour field, since its bits cannot:
// 2-6/2 and 2,4,6 have the same.
func followsElapsed(line string) bool {
	if strings.HasPrefix(line, "@") {
		return line == hourly
	}
	words := strings.Split(line, " ")
	return strings.ContainsAny(words[len(words)-4], "*?/")
}

func newSpec(p *cron.SpecSchedule) *Spec {
	const all = ^uint64(star)
	return &Spec{
		second: p.Second & all, minute: p.Minute & all, hour: p.Hour & all, month: p.Month & all,
		dom: p.Dom, dow: p.Dow,
	}
}
