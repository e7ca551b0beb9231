package jobs

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// blanks separate words in a schedule's text; a blank of any other alphabet is
// a slip of copying and is refused.
const blanks = " \t\r\n"

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

// hourly is the one descriptor that follows elapsed time; see cronRule.
const hourly = "@hourly"

var parser = cron.NewParser(cron.SecondOptional | cron.Minute | cron.Hour |
	cron.Dom | cron.Month | cron.Dow | cron.Descriptor)

// parseCron compiles a crontab line, prefix and all. The canonical text has one
// blank between words and the zone as TZ=.
func parseCron(spec string) Schedule {
	zone, loc, rest, err := splitZone(spec)
	if err != nil {
		return broken(spec, err)
	}
	words := strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune(blanks, r) })
	if len(words) > 0 && words[0] == "@every" {
		return parseEvery(spec, strings.Join(words[1:], " ")) // a zone means nothing to it
	}
	line := strings.Join(words, " ")
	r, err := compileCron(line)
	if err != nil {
		return broken(spec, err)
	}
	r.zone, r.loc = zone, loc
	if zone != "" {
		line = "TZ=" + zone + " " + line
	}
	return intern(line, func() rule { return r })
}

// splitZone takes the zone prefix off; zone is "" and loc UTC where there is
// none.
func splitZone(spec string) (zone string, loc *time.Location, rest string, err error) {
	if len(spec) > maxText {
		return "", nil, "", fmt.Errorf("%d bytes are too long; use at most %d", len(spec), maxText)
	}
	if strings.Trim(spec, blanks) != spec {
		return "", nil, "", errors.New("blanks around it; trim the text")
	}
	for _, prefix := range []string{"TZ=", "CRON_TZ="} {
		if after, ok := strings.CutPrefix(spec, prefix); ok {
			zone, rest, _ = strings.Cut(after, " ")
			loc, err = loadZone(zone)
			return zone, loc, rest, err
		}
	}
	return "", time.UTC, spec, nil
}

// compileCron turns a line without zone into bits, never into a panic.
func compileCron(line string) (r *cronRule, err error) {
	if err := checkLine(line); err != nil {
		return nil, err
	}
	defer func() {
		if p := recover(); p != nil {
			r, err = nil, fmt.Errorf("not a cron line (%v); write five fields, such as 0 2 * * *", p)
		}
	}()
	parsed, err := parser.Parse(line)
	if err != nil {
		return nil, fmt.Errorf("%w; write five fields, such as 0 2 * * *, or six with seconds first", err)
	}
	r = newCronRule(parsed.(*cron.SpecSchedule))
	r.elapsed = followsElapsed(line)
	if _, ok := r.reading(0, neverAfter); !ok {
		return nil, errors.New("it never fires: no month it names has such a day; mend the day or the month")
	}
	return r, nil
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
