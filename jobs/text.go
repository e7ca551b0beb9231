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
//	@manual                           as Manual
//	union(A; B; …)                    as Union; of one schedule it is that one
//	except(A; B)                      as A.Except(B)
//	from(2026-10-01T04:00:00Z; A)     as A.From
//	until(2026-10-01T04:00:00Z; A)    as A.Until
//
// A and B are schedules by the same grammar. A zone belongs to a crontab line,
// not in front of a combination. Blanks may stand round A, B and the instants;
// words are lower case.
//
// The text of a schedule (String) is canonical: one blank between words, instants
// in UTC, a Union flat, sorted and without doubles, From outside Until. Equal
// texts are equal schedules. The grammar is frozen. "@custom name" is how a
// Custom writes itself, but no text can bring its function back. The error says
// what to do.
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

// parse reads a text of bounded length.
func parse(text string) Schedule {
	if len(text) > maxText {
		return broken(text, fmt.Errorf("%d bytes are too long; use at most %d", len(text), maxText))
	}
	return parseNested(text, 0)
}

// parseNested hands the text to the form its first word names; all others may
// have a zone prefix, which Cron takes off.
func parseNested(text string, depth int) Schedule {
	if op, inner, ok := splitTree(text); ok {
		return asGiven(text, parseTree(op, inner, depth))
	}
	word, rest, _ := strings.Cut(text, " ")
	switch word {
	case "@at":
		return parseAt(text, rest)
	case "@manual":
		if rest != "" {
			return broken(text, errors.New("nothing follows @manual; leave the rest out"))
		}
		return Manual()
	case "@custom":
		return broken(text, errors.New("a custom calendar is code; build it with jobs.Custom"))
	}
	if err := checkNoTree(text); err != nil {
		return broken(text, err)
	}
	return parseCron(text)
}

// splitTree takes the word and the brackets off a combination.
func splitTree(text string) (op operation, inner string, ok bool) {
	word, rest, _ := strings.Cut(text, "(")
	switch op = operation(word); op {
	case opUnion, opExcept, opFrom, opUntil:
		inner, ok = strings.CutSuffix(rest, ")")
		return op, inner, ok
	}
	return "", "", false
}

// checkNoTree explains why something that looks like a combination is none.
func checkNoTree(text string) error {
	line := strings.TrimLeft(text, crontab.Blanks)
	prefixed := false
	for _, prefix := range []string{"TZ=", "CRON_TZ="} {
		if after, ok := strings.CutPrefix(line, prefix); ok {
			_, line, _ = strings.Cut(after, " ")
			line, prefixed = strings.TrimLeft(line, crontab.Blanks), true
			break
		}
	}
	for _, op := range []operation{opUnion, opExcept, opFrom, opUntil} {
		if len(line) < len(op) || !strings.EqualFold(line[:len(op)], string(op)) {
			continue
		}
		if prefixed {
			return fmt.Errorf("a zone in front of %s; put it in front of each crontab line inside, or use In", op)
		}
		return fmt.Errorf("not a combination; write %s, in lower case and without a blank before ( or behind )", forms[op])
	}
	return nil
}

var forms = map[operation]string{
	opUnion:  "union(A; B)",
	opExcept: "except(A; B)",
	opFrom:   "from(2026-10-01T04:00:00Z; A)",
	opUntil:  "until(2026-10-01T04:00:00Z; A)",
}

func parseTree(op operation, inner string, depth int) Schedule {
	if depth == maxDepth {
		return broken(inner, fmt.Errorf("schedules nest too deep; use at most %d levels", maxDepth))
	}
	parts, err := splitOperands(inner)
	if err == nil && op != opUnion && len(parts) != 2 {
		err = fmt.Errorf("%d operands; write %s", len(parts), forms[op])
	}
	if err != nil {
		return broken(inner, err)
	}
	if op == opFrom || op == opUntil {
		return parseWindow(op, parts, depth)
	}
	operands := make([]Schedule, len(parts))
	for i, part := range parts {
		operands[i] = parseNested(part, depth+1)
	}
	if op == opExcept {
		return operands[0].Except(operands[1])
	}
	return Union(operands...)
}

func parseWindow(op operation, parts []string, depth int) Schedule {
	bound, err := parseInstant(parts[0])
	if err != nil {
		return broken(parts[0], err)
	}
	s := parseNested(parts[1], depth+1)
	if op == opFrom {
		return s.From(bound)
	}
	return s.Until(bound)
}

// splitOperands cuts at each ; that is in no bracket, and takes the blanks off.
func splitOperands(inner string) ([]string, error) {
	var parts []string
	open, begin := 0, 0
	for i := range len(inner) {
		switch inner[i] {
		case '(':
			open++
		case ')':
			if open--; open < 0 {
				return nil, errors.New("a ) closes nothing; take it out")
			}
		case ';':
			if open == 0 {
				parts, begin = append(parts, inner[begin:i]), i+1
			}
		}
		if len(parts) >= maxLeaves {
			return nil, fmt.Errorf("too many operands; use at most %d", maxLeaves)
		}
	}
	if open > 0 {
		return nil, errors.New("a ( is not closed; add its )")
	}
	parts = append(parts, inner[begin:])
	for i, part := range parts {
		parts[i] = strings.Trim(part, crontab.Blanks)
	}
	return parts, nil
}

func parseEvery(text, rest string) Schedule {
	words := strings.FieldsFunc(rest, func(r rune) bool { return strings.ContainsRune(crontab.Blanks, r) })
	if len(words) != 1 && (len(words) != 3 || words[1] != "phase") {
		return broken(text, errors.New("write @every 1h30m, or @every 1h30m phase 10m"))
	}
	d, err := parseDuration("interval", words[0])
	if err != nil {
		return broken(text, err)
	}
	s := asGiven(text, newEvery(d, 0))
	if len(words) == 1 || s.fault() != nil {
		return s
	}
	phase, err := parseDuration("phase", words[2])
	if err != nil {
		return broken(text, err)
	}
	return asGiven(text, s.Phase(phase))
}

func parseAt(text, rest string) Schedule {
	var times []time.Time
	for one := range strings.SplitSeq(rest, ",") {
		t, err := parseInstant(strings.Trim(one, crontab.Blanks))
		if err != nil {
			return broken(text, fmt.Errorf("instant %d of the list: %w", len(times)+1, err))
		}
		times = append(times, t)
	}
	return asGiven(text, At(times...))
}

// parseInstant reads RFC 3339 to the letter; time.Parse takes 4:00 and 00,5 too.
func parseInstant(text string) (t time.Time, err error) {
	if err := t.UnmarshalText([]byte(text)); err != nil {
		return t, fmt.Errorf("%q is no instant with a zone; write it as 2026-10-01T04:00:00Z, or with an offset such as -04:00", crontab.Shown(text, maxShown))
	}
	return t, nil
}

func parseDuration(what, text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, fmt.Errorf("%s %q is no duration; write it as 90s, 15m or 1h30m", what, crontab.Shown(text, maxShown))
	}
	return d, nil
}
