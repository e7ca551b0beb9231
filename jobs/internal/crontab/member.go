package crontab

import (
	"strconv"
	"strings"
)

type kind int

const (
	plain    kind = iota // *, a, a-b, each with a step or not
	hashed               // H, H(a-b), each with a step or not
	fromLast             // L-n or, in the other day field, nL: n is low
	lastNear             // L-nW
	nearest              // nW
	nth                  // n#k: k is high
)

// member is one element of a field's comma list.
type member struct {
	kind      kind
	low, high int
	step      int    // 0: none
	ranged    bool   // of an H: the range is written
	any       bool   // * or ?, without a step or with one of 1
	text      string // upper case
	written   string // as the user did
	column    int
}

func (m member) isHashed() bool { return m.kind == hashed }
func (m member) isPlain() bool  { return m.kind == plain }

// parseMember reads a member of the field.
func (f *field) parseMember(written string, column int) (m member, err error) {
	text := strings.ToUpper(written)
	l := &lexer{field: f, text: text, written: written, column: column}
	switch {
	case text == "":
		return m, l.fail(0, "is an empty member of the list; %s", f.advice())
	case l.take('*') || l.take('?'):
		m.low, m.high = f.low, f.last
		m.step, err = l.step(f.width(), "the field")
		m.any = m.step <= 1
	case l.take('H'):
		m, err = l.hashed()
	case f.name == fields[dom].name && l.take('L'):
		m, err = l.fromLast()
	case f.name == fields[dow].name && l.take('L'):
		m.low, m.high = 6, 6 // the week's last day
		if l.at < len(text) {
			err = l.unexpected("after L, which is Saturday here")
		}
	default:
		m, err = l.value()
	}
	if err == nil {
		err = l.end()
	}
	m.text, m.written, m.column = text, written, column
	return m, err
}

// value reads what begins with a value.
func (l *lexer) value() (m member, err error) {
	if m.low, err = l.number(); err != nil {
		return m, err
	}
	m.high = m.low
	days, weekdays := l.name == fields[dom].name, l.name == fields[dow].name
	switch {
	case days && l.take('W'):
		m.kind = nearest
	case weekdays && l.take('L'):
		m.kind, m.low = fromLast, m.low%7
	case weekdays && l.take('#'):
		m.kind, m.low = nth, m.low%7
		begin := l.at
		if m.high, err = l.digits(); err == nil && (m.high < 1 || m.high > len(dayRules{}.nth)) {
			err = l.fail(begin, "asks for a week that no month has; write #1 to #5, or L for the last, as in 5L")
		}
	case l.take('-'):
		return l.rangeFrom(m)
	case l.at < len(l.text) && l.text[l.at] == '/':
		if m.low > l.last {
			return m, l.fail(0, "begins its steps at 7, where the week ends; begin at 0, which is Sunday too, within %s", l.allowed)
		}
		m.high = l.last
		m.step, err = l.step(l.width(), "the field")
		return m, err
	}
	if err == nil && m.kind != plain && l.at < len(l.text) {
		err = l.unexpected("after a day by rule, which takes no step, range or second rule")
	}
	return m, err
}

// rangeFrom reads the end of a range, and its step.
func (l *lexer) rangeFrom(m member) (member, error) {
	var err error
	begin := l.at
	if m.high, err = l.number(); err != nil {
		return m, err
	}
	if m.high < m.low {
		return m, l.backwards(begin, m.low, m.high)
	}
	if l.at < len(l.text) && strings.IndexByte("WL#", l.text[l.at]) >= 0 {
		return m, l.unexpected("after a range; such a rule takes one day, and several make a list")
	}
	m.step, err = l.step(l.width(), "the field")
	return m, err
}

// hashed reads what follows an H.
func (l *lexer) hashed() (m member, err error) {
	m = member{kind: hashed, low: l.low, high: l.last}
	if l.name == fields[dom].name {
		m.high = 28 // every month has it
	}
	whole := "the field"
	width := l.width()
	if l.take('(') {
		m.ranged = true
		if m.low, err = l.number(); err != nil {
			return m, err
		}
		if !l.take('-') {
			return m, l.unexpected("where H wants a range, as in H(a-b)")
		}
		begin := l.at
		if m.high, err = l.number(); err != nil {
			return m, err
		}
		if m.high < m.low {
			return m, l.backwards(begin, m.low, m.high)
		}
		if !l.take(')') {
			return m, l.unexpected("where H wants the end of its range, as in H(a-b)")
		}
		whole, width = "the range of H", min(width, m.high-m.low+1)
	}
	m.step, err = l.step(width, whole)
	if err == nil && l.at < len(l.text) {
		err = l.unexpected("after H, which is followed by (a-b), /n or nothing")
	}
	return m, err
}

// fromLast reads what follows the L of a day of month.
func (l *lexer) fromLast() (m member, err error) {
	m.kind = fromLast
	if l.take('-') {
		begin := l.at
		if m.low, err = l.digits(); err != nil {
			return m, err
		}
		if m.low < 1 || m.low > 30 {
			return m, l.fail(begin, "counts %.20s days back from the last; write L, or L-1 to L-30", l.text[begin:l.at])
		}
	}
	if l.take('W') {
		m.kind = lastNear
	}
	if l.at < len(l.text) {
		err = l.unexpected("after L, which is followed by -n, W or nothing")
	}
	return m, err
}

// appendPlain writes a plain member as a range in numbers, and a comma.
func (m *member) appendPlain(b []byte, place int) []byte {
	high, step := m.high, max(m.step, 1)
	if place == dow && high == 7 {
		if high = 6; (7-m.low)%step == 0 {
			b = append(b, "0,"...)
		}
		if m.low == 7 {
			return b
		}
	}
	b = append(strconv.AppendInt(b, int64(m.low), 10), '-')
	b = append(strconv.AppendInt(b, int64(high), 10), '/')
	return append(strconv.AppendInt(b, int64(step), 10), ',')
}

// values are those of a plain member.
func (m *member) values(yield func(int) bool) {
	for v := m.low; v <= m.high; v += max(m.step, 1) {
		if !yield(v) {
			return
		}
	}
}

// lengthNeeded is how long a month must be for a member of the days of a month to match in it.
func (m *member) lengthNeeded() int {
	switch {
	case m.kind == fromLast || m.kind == lastNear:
		return m.low + 1
	case m.kind == hashed && m.step > 0:
		return m.low + m.step - 1
	case m.kind == hashed:
		return m.high
	}
	return m.low
}

// longestMonth is the length of the longest month that a member matches, in a leap year.
func (m *member) longestMonth() int {
	if m.kind == hashed {
		one, shortest := *m, 31
		one.kind = plain
		for one.low = m.low; one.low <= m.high && (m.step == 0 || one.low < m.low+m.step); one.low++ {
			if m.step == 0 {
				one.high = one.low
			}
			shortest = min(shortest, one.longestMonth())
		}
		return shortest
	}
	longest := 0
	for v := range m.values {
		longest = max(longest, int(daysIn(4, uint32(v))))
	}
	return longest
}
