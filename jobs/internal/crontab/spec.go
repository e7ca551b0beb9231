// Package crontab reads crontab lines and computes their dues.
//
// A line has five fields, minute, hour, day of month, month and day of week, or six with seconds first:
//
//	line    = "@hourly" | "@daily" | "@midnight" | "@weekly" | "@monthly" | "@yearly" | "@annually"
//	        | [field] field field field field field
//	field   = member { "," member }
//	member  = ("*" | "?") [step] | value [step] | value "-" value [step] | hash | day
//	step    = "/" number                    // narrower than the field; a value with a step runs to the field's end
//	hash    = "H" ["(" value "-" value ")"] [step]
//	day     = "L" ["-" number] ["W"] | value "W"                // of a month
//	        | "L" | value "L" | value "#" number                // of a week
//	value   = number | "JAN" … "DEC" | "SUN" … "SAT"           // in any case
//
// Weekdays are 0-7, Sunday 0 and 7; a step from a weekday on runs to Saturday. The L of a month is its last day, L-3
// three days before that, 15W the day from Monday to Friday that is nearest to the 15th and in the same month, LW
// and L-3W the nearest to those. The L of a week is Saturday, 5L the last Friday of the month, 5#2 its second. A month that
// has no such day is left out. H is a value that the name of a job or key picks: see Spec.Resolve.
//
// A day field is unrestricted by a bare * or ? or one with a step of 1; where both are restricted, either may match.
package crontab

import (
	"fmt"
	"math/bits"
	"strings"

	"github.com/robfig/cron/v3"

	"github.com/belfry-go/belfry/jobs/internal/zone"
)

// Blanks separate words in a schedule's text; a blank of any other alphabet is
// a slip of copying and is refused.
const Blanks = " \t\r\n"

// Spec is a crontab line without a zone. It is immutable.
type Spec struct {
	second, minute, hour uint64
	months               uint32
	opens, closes        uint32 // the first and the last time of day, in seconds
	days                 table

	text    string
	elapsed bool // fires in both passes of a repeated hour, and makes nothing up
	hashed  bool
}

// String is the canonical text: one blank between words, names and letters in
// upper case.
func (s *Spec) String() string { return s.text }

// Hashed says that the line has an H, so that it has no dues until Resolve.
func (s *Spec) Hashed() bool { return s.hashed }

// Resolve is the line with each H replaced by what name hashes to, the same in
// every process and release. The hash is xxhash64 (seed 0) of the field's name
// (second, minute, hour, day of month, month or day of week), a NUL byte and
// name. H(a-b) becomes a + hash mod the number of values in it; H alone is all of
// its field, but for days of a month 1-28, which every month has. With a step of n the
// steps begin at a + hash mod n, so H/15 becomes, say, 8/15.
func (s *Spec) Resolve(name string) *Spec {
	if !s.hashed {
		return s
	}
	ln, err := parseLine(split(s.text))
	if err != nil {
		return s // cannot be: its text was made by Parse
	}
	for place := range ln.fields {
		for i := range ln.fields[place] {
			if m := &ln.fields[place][i]; m.kind == hashed {
				m.text = m.resolve(&fields[place], name)
			}
		}
	}
	resolved, err := Parse(ln.String())
	if err != nil {
		return s // cannot be: Parse refuses a line that is wrong for any hash
	}
	return resolved
}

// In is the line's rule by the wall clock of a zone.
func (s *Spec) In(z *zone.Zone) *Rule { return &Rule{s, z} }

// descriptors are the words that stand for a line.
var descriptors = map[string]string{
	"@hourly":   "0 * * * *",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@weekly":   "0 0 * * 0",
	"@monthly":  "0 0 1 * *",
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
}

// Parse reads a line without a zone. What is wrong with it is an *Error.
func Parse(text string) (*Spec, error) {
	words := split(text)
	name := ""
	if len(words) == 1 && descriptors[words[0].text] != "" {
		name = words[0].text
		words = split(descriptors[name])
	}
	if err := checkWords(text, words); err != nil {
		return nil, err
	}
	ln, err := parseLine(words)
	if err != nil {
		return nil, err
	}
	if err := ln.checkDays(); err != nil {
		return nil, err
	}
	s, err := compile(ln)
	if err != nil {
		return nil, &Error{Column: 1, Reason: err.Error() + "; write five fields, such as 0 2 * * *"}
	}
	if name != "" {
		s.text = name
	}
	return s, nil
}

// checkWords refuses what is no line of five or six fields.
func checkWords(text string, words []word) error {
	if len(words) == 0 {
		return &Error{Column: len(text) + 1, Reason: "nothing to go by; write five fields, such as 0 2 * * *, or @every 1h"}
	}
	if words[0].text[0] == '@' {
		return &Error{Column: words[0].column, Reason: fmt.Sprintf("%q is no descriptor; write @hourly, @daily, @midnight, @weekly, "+
			"@monthly, @yearly or @annually, in lower case and alone, or five fields, such as 0 2 * * *", Shown(text, 40))}
	}
	if err := checkAlphabet(words); err != nil {
		return err
	}
	column := len(text) + 1
	switch n := len(words); {
	case n == 5 || n == 6:
		return nil
	case n > 6:
		column = words[6].column
		fallthrough
	default:
		return &Error{Column: column, Reason: fmt.Sprintf("number of fields is %d; write five, such as 0 2 * * * (minute, hour, day of month, "+
			"month, day of week), or six with seconds first", n)}
	}
}

var parser = cron.NewParser(cron.Second | cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// compile turns a line's members into bits.
func compile(ln *line) (s *Spec, err error) {
	defer func() {
		if p := recover(); p != nil {
			s, err = nil, fmt.Errorf("not a cron line: %v", p) // never seen with what parseLine lets through
		}
	}()
	parsed, err := parser.Parse(ln.plainText())
	if err != nil {
		return nil, err
	}
	p := parsed.(*cron.SpecSchedule)
	days := dayRules{dom: p.Dom, dow: p.Dow, anyDom: ln.any(dom), anyDow: ln.any(dow)}
	days.add(ln)
	s = &Spec{
		second: p.Second, minute: p.Minute, hour: p.Hour, months: uint32(p.Month), days: days.table(),
		text: ln.String(), elapsed: followsElapsed(ln.text(hour)), hashed: ln.hashed(),
	}
	s.opens = lowest(s.hour)*3600 + lowest(s.minute)*60 + lowest(s.second)
	s.closes = highest(s.hour)*3600 + highest(s.minute)*60 + highest(s.second)
	return s, nil
}

// followsElapsed tells from the text of the hour field, since its values cannot:
// 2-6/2 and 2,4,6 have the same.
func followsElapsed(hours string) bool { return strings.ContainsAny(hours, "*?/") }

func lowest(set uint64) uint32  { return uint32(bits.TrailingZeros64(set)) }
func highest(set uint64) uint32 { return uint32(bits.Len64(set)) - 1 }
