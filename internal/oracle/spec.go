package oracle

import (
	"fmt"
	"slices"
	"strings"
)

// Spec is a crontab line as predicates over what a wall clock shows. It is
// immutable.
type Spec struct {
	second, minute, hour, month set

	dom, dow       []func(date) bool // one for each member of the field's list
	anyDom, anyDow bool              // the field restricts nothing
	elapsed        bool              // fires in both passes, and makes nothing up
}

// set says which values a field names.
type set [60]bool

// field is one of the six fields of a line.
type field struct {
	name      string
	low, high int
	names     []string // of the values from low on
}

var (
	seconds  = field{"second", 0, 59, nil}
	minutes  = field{"minute", 0, 59, nil}
	hours    = field{"hour", 0, 23, nil}
	doms     = field{"day of month", 1, 31, nil}
	months   = field{"month", 1, 12, strings.Fields("JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC")}
	weekdays = field{"day of week", 0, 6, strings.Fields("SUN MON TUE WED THU FRI SAT")}
)

var descriptors = map[string]string{
	"@hourly":   "0 * * * *",
	"@daily":    "0 0 * * *",
	"@midnight": "0 0 * * *",
	"@weekly":   "0 0 * * 0",
	"@monthly":  "0 0 1 * *",
	"@yearly":   "0 0 1 1 *",
	"@annually": "0 0 1 1 *",
}

// Parse reads a crontab line without a zone: five fields, six with seconds
// first, or a descriptor such as @daily. A day of month may also be L, L-n, LW,
// L-nW or nW; a day of week L (Saturday), nL or n#k, as Quartz has them, but with
// cron's numbers: 0 and 7 are Sunday.
func Parse(line string) (*Spec, error) {
	if long, ok := descriptors[line]; ok {
		line = long
	}
	words := strings.FieldsFunc(strings.ToUpper(line), func(r rune) bool { return strings.ContainsRune(" \t\r\n", r) })
	if len(words) == 5 {
		words = slices.Insert(words, 0, "0")
	}
	if len(words) != 6 {
		return nil, fmt.Errorf("oracle: %q: %d fields; write five or six", line, len(words))
	}
	s := &Spec{elapsed: strings.ContainsAny(words[2], "*?/")}
	var errs [6]error
	s.second, errs[0] = seconds.set(words[0])
	s.minute, errs[1] = minutes.set(words[1])
	s.hour, errs[2] = hours.set(words[2])
	s.dom, s.anyDom, errs[3] = days(words[3], ofMonth)
	s.month, errs[4] = months.set(words[4])
	s.dow, s.anyDow, errs[5] = days(words[5], ofWeek)
	for _, err := range errs {
		if err != nil {
			return nil, fmt.Errorf("oracle: %q: %w", line, err)
		}
	}
	return s, nil
}

// set reads a list of plain members.
func (f field) set(list string) (all set, err error) {
	for member := range strings.SplitSeq(list, ",") {
		one, err := f.member(member)
		if err != nil {
			return set{}, err
		}
		for v, named := range one {
			all[v] = all[v] || named
		}
	}
	return all, nil
}

// member reads a value, a range, a star, or one of these with a step. A step
// after a single value runs to the end of the field.
func (f field) member(text string) (one set, err error) {
	body, stepText, stepped := strings.Cut(text, "/")
	step := 1
	if stepped {
		if step, err = number(stepText); err != nil || step < 1 || step > f.high-f.low {
			return set{}, fmt.Errorf("%s: no step in %q", f.name, text)
		}
	}
	low, high := f.low, f.high
	if from, to, isRange := strings.Cut(body, "-"); isRange {
		if low, err = f.value(from); err == nil {
			high, err = f.value(to)
		}
	} else if body != "*" && body != "?" {
		low, err = f.value(body)
		if !stepped {
			high = low
		}
	}
	if err != nil {
		return set{}, err
	}
	if low > high {
		return set{}, fmt.Errorf("%s: %q runs backwards", f.name, text)
	}
	for v := low; v <= high; v += step {
		if f.name == weekdays.name {
			one[v%7] = true
		} else {
			one[v] = true
		}
	}
	return one, nil
}

// value reads a number or a name. A day of week may be 7, which is Sunday.
func (f field) value(text string) (int, error) {
	if i := slices.Index(f.names, text); i >= 0 {
		return f.low + i, nil
	}
	v, err := number(text)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", f.name, err)
	}
	if v == 7 && f.name == weekdays.name {
		return v, nil
	}
	if v < f.low || v > f.high {
		return 0, fmt.Errorf("%s: %d is not in %d-%d", f.name, v, f.low, f.high)
	}
	return v, nil
}

// number reads one or two decimal digits and nothing else.
func number(text string) (n int, err error) {
	if len(text) < 1 || len(text) > 2 {
		return 0, fmt.Errorf("%q is no number", text)
	}
	for _, c := range []byte(text) {
		if c < '0' || c > '9' {
			return 0, fmt.Errorf("%q is no number", text)
		}
		n = n*10 + int(c-'0')
	}
	return n, nil
}
