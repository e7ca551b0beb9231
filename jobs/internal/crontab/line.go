package crontab

import (
	"fmt"
	"slices"
	"strings"
)

// line is a crontab line taken apart.
type line struct {
	fields [len(fields)][]member
	five   bool // written without seconds
}

// parseLine takes a line of five or six fields apart.
func parseLine(words []word) (*line, error) {
	ln := &line{five: len(words) == 5}
	skipped := 0
	if ln.five {
		ln.fields[second] = []member{{text: "0"}} // on the minute
		skipped = 1
	}
	for i, w := range words {
		f := &fields[i+skipped]
		column := w.column
		for text := range strings.SplitSeq(w.text, ",") {
			m, err := f.parseMember(text, column)
			if err != nil {
				return nil, err
			}
			ln.fields[i+skipped] = append(ln.fields[i+skipped], m)
			column += len(text) + 1
		}
	}
	return ln, nil
}

// text is a field in upper case.
func (ln *line) text(place int) string {
	return ln.list(place, func(m member) string { return m.text })
}

// written is a field as the user wrote it.
func (ln *line) written(place int) string {
	return ln.list(place, func(m member) string { return m.written })
}

func (ln *line) list(place int, text func(member) string) string {
	var b strings.Builder
	for i, m := range ln.fields[place] {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(text(m))
	}
	return b.String()
}

// String is the canonical text: upper case, and one blank between fields.
func (ln *line) String() string {
	places := []int{second, minute, hour, dom, month, dow}
	if ln.five {
		places = places[1:]
	}
	words := make([]string, len(places))
	for i, place := range places {
		words[i] = ln.text(place)
	}
	return strings.Join(words, " ")
}

// plainText writes the plain members of six fields for the parser behind, in numbers below 7 for
// weekdays. A field without any has a stand-in.
func (ln *line) plainText() string {
	var b []byte
	for place := range ln.fields {
		begin := len(b)
		for _, m := range ln.fields[place] {
			if m.kind == plain {
				b = m.appendPlain(b, place)
			}
		}
		if len(b) == begin {
			b = append(b, "1,"...)
		}
		b[len(b)-1] = ' '
	}
	return string(b[:len(b)-1])
}

func (ln *line) hashed() bool {
	return slices.ContainsFunc(ln.fields[:], func(members []member) bool {
		return slices.ContainsFunc(members, member.isHashed)
	})
}

// any says whether a day field leaves the choice to the other.
func (ln *line) any(place int) bool {
	return slices.ContainsFunc(ln.fields[place], func(m member) bool { return m.any })
}

// checkDays refuses a line that never fires. Only days of the month can be out of reach: every
// weekday is in every month, and a fifth one even in a February, of some leap year. Where both
// day fields are restricted either may match. Of an H, the worst hash counts.
func (ln *line) checkDays() error {
	if ln.any(dom) || !ln.any(dow) {
		return nil
	}
	longest := 0
	for _, m := range ln.fields[month] {
		longest = max(longest, m.longestMonth())
	}
	for _, m := range ln.fields[dom] {
		if m.lengthNeeded() <= longest {
			return nil
		}
	}
	never := "never fires"
	if slices.ContainsFunc(slices.Concat(ln.fields[dom], ln.fields[month]), member.isHashed) {
		never = "never fires for some names"
	}
	return &Error{ln.fields[dom][0].column, fields[dom].name, fmt.Sprintf("%q %s: the months of %q have at most %d days; "+
		"mend the day, within 1-%d or L to L-%d, or the month", Shown(ln.written(dom), 40), never, Shown(ln.written(month), 40), longest, longest, longest-1)}
}
