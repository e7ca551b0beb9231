package crontab

import (
	"fmt"
	"strings"
	"time"

	"pgregory.net/rapid"
)

// drawn is a member, a field or a line of which the test knows the meaning by another way than bits: from what a wall
// shows, held as if it were UTC.
type drawn struct {
	text  string
	any   bool
	match func(w time.Time) bool
}

// places of a drawn line, with what the wall shows in them.
var shows = [...]func(time.Time) int{
	time.Time.Second, time.Time.Minute, time.Time.Hour, time.Time.Day,
	func(w time.Time) int { return int(w.Month()) }, func(w time.Time) int { return int(w.Weekday()) },
}

// spell writes a value as a number or a name.
func spell(t *rapid.T, f *field, v int) string {
	if i := v - f.low; i < len(f.names) && rapid.Bool().Draw(t, "named") {
		return rapid.SampledFrom([]string{f.names[i], strings.ToLower(f.names[i])}).Draw(t, "name")
	}
	if v < 10 && rapid.IntRange(0, 9).Draw(t, "zero") == 0 {
		return fmt.Sprintf("0%d", v)
	}
	return fmt.Sprint(v)
}

func drawPlain(t *rapid.T, place int) drawn {
	f := &fields[place]
	a := rapid.IntRange(f.low, f.high).Draw(t, f.name)
	b := rapid.IntRange(a, f.high).Draw(t, f.name+" to")
	first, last, step := a, b, 1
	text := spell(t, f, a)
	kind := rapid.SampledFrom([]string{"value", "value", "range", "star", "from"}).Draw(t, f.name+" kind")
	switch kind {
	case "value":
		last = a
	case "range":
		text += "-" + spell(t, f, b)
	case "star":
		text, first, last = rapid.SampledFrom([]string{"*", "*", "?"}).Draw(t, "star"), f.low, f.last
	case "from":
		if a > f.last {
			text, first = "0", 0
		}
		last = f.last
	}
	if kind == "from" || kind != "value" && rapid.Bool().Draw(t, "stepped") {
		step = rapid.IntRange(1, f.width()-1).Draw(t, f.name+" step")
		text += fmt.Sprintf("/%d", step)
	}
	named := make(map[int]bool)
	for v := first; v <= last; v += step {
		named[v] = true
		if place == dow {
			named[v%7] = true
		}
	}
	return drawn{text, kind == "star" && step == 1, func(w time.Time) bool { return named[shows[place](w)] }}
}

func lastOf(w time.Time) int { return time.Date(w.Year(), w.Month()+1, 0, 0, 0, 0, 0, time.UTC).Day() }

// nearestTo says whether w is the weekday that is nearest to day n of its month, and in it.
func nearestTo(w time.Time, n int) bool {
	last, best, distance := lastOf(w), 0, 99
	if n < 1 || n > last || w.Day() < n-2 || w.Day() > n+2 {
		return false
	}
	for d := max(1, n-2); d <= min(last, n+2); d++ {
		weekday := time.Date(w.Year(), w.Month(), d, 0, 0, 0, 0, time.UTC).Weekday()
		if away := max(d-n, n-d); weekday != time.Saturday && weekday != time.Sunday && away < distance {
			best, distance = d, away
		}
	}
	return w.Day() == best
}

func drawOfMonth(t *rapid.T) drawn {
	n := rapid.IntRange(1, 31).Draw(t, "day")
	back := rapid.IntRange(1, 30).Draw(t, "back")
	switch rapid.SampledFrom([]string{"L", "L-n", "LW", "L-nW", "nW"}).Draw(t, "day by rule") {
	case "L":
		return drawn{"L", false, func(w time.Time) bool { return w.Day() == lastOf(w) }}
	case "L-n":
		return drawn{fmt.Sprintf("l-%d", back), false, func(w time.Time) bool { return w.Day() == lastOf(w)-back }}
	case "LW":
		return drawn{"Lw", false, func(w time.Time) bool { return nearestTo(w, lastOf(w)) }}
	case "L-nW":
		return drawn{fmt.Sprintf("L-%dW", back), false, func(w time.Time) bool { return nearestTo(w, lastOf(w)-back) }}
	}
	return drawn{fmt.Sprintf("%dW", n), false, func(w time.Time) bool { return nearestTo(w, n) }}
}

func drawOfWeek(t *rapid.T) drawn {
	d := rapid.IntRange(0, 7).Draw(t, "weekday")
	text := spell(t, &fields[dow], d)
	switch rapid.SampledFrom([]string{"L", "nL", "n#k"}).Draw(t, "weekday by rule") {
	case "L":
		return drawn{"L", false, func(w time.Time) bool { return w.Weekday() == time.Saturday }}
	case "nL":
		return drawn{text + "L", false, func(w time.Time) bool { return int(w.Weekday()) == d%7 && w.Day()+7 > lastOf(w) }}
	}
	k := rapid.IntRange(1, 5).Draw(t, "week")
	return drawn{fmt.Sprintf("%s#%d", text, k), false, func(w time.Time) bool { return int(w.Weekday()) == d%7 && (w.Day()+6)/7 == k }}
}

// drawField draws a list of one to three members.
func drawField(t *rapid.T, place int) drawn {
	var list []drawn
	var texts []string
	for range rapid.SampledFrom([]int{1, 1, 1, 2, 3}).Draw(t, fields[place].name+" members") {
		m := drawn{}
		switch byRule := rapid.IntRange(0, 2).Draw(t, "by rule") == 0; {
		case byRule && place == dom:
			m = drawOfMonth(t)
		case byRule && place == dow:
			m = drawOfWeek(t)
		default:
			m = drawPlain(t, place)
		}
		list, texts = append(list, m), append(texts, m.text)
	}
	all := drawn{text: strings.Join(texts, ",")}
	for _, m := range list {
		all.any = all.any || m.any
	}
	all.match = func(w time.Time) bool {
		for _, m := range list {
			if m.match(w) {
				return true
			}
		}
		return false
	}
	return all
}

// fixed is a field of one given value.
func fixed(place, v int) drawn {
	return drawn{fmt.Sprint(v), false, func(w time.Time) bool { return shows[place](w) == v }}
}

// drawnLine is a line of six drawn fields.
type drawnLine [6]drawn

func (l *drawnLine) String() string {
	words := make([]string, len(l))
	for i, f := range l {
		words[i] = f.text
	}
	return strings.Join(words, " ")
}

func (l *drawnLine) elapsed() bool { return strings.ContainsAny(l[hour].text, "*?/") }

func (l *drawnLine) matchDay(w time.Time) bool {
	if !l[month].match(w) {
		return false
	}
	if l[dom].any || l[dow].any {
		return l[dom].match(w) && l[dow].match(w)
	}
	return l[dom].match(w) || l[dow].match(w)
}

func (l *drawnLine) match(w time.Time) bool {
	return l[second].match(w) && l[minute].match(w) && l[hour].match(w) && l.matchDay(w)
}
