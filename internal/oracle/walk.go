package oracle

import "time"

const (
	minute = 60
	hour   = 60 * minute
	// history is how long before the first instant the walk begins, to know which readings the clock has shown. The
	// clocks of one zone are at most 31 hours apart, so that nothing older can be shown again.
	history = 48 * hour
	// glance is how often a calm hour's clock is looked at. It would miss a clock that is changed and changed back
	// between two looks; that no two changes are so near each other a test checks.
	glance = 10 * minute
)

// Dues are the dues of the spec in (from, to] by the wall clock of a zone, UTC
// and ascending.
func (s *Spec) Dues(loc *time.Location, from, to time.Time) (dues []time.Time) {
	Walk([]*Spec{s}, loc, from, to, func(_ int, due time.Time) { dues = append(dues, due) })
	return dues
}

// Walk finds the dues of several specs in one walk over (from, to] in a zone. It
// calls due with the index of the spec, for each spec with ascending instants.
func Walk(specs []*Spec, loc *time.Location, from, to time.Time, due func(spec int, at time.Time)) {
	w := walk{
		specs: specs, loc: loc, from: from.Unix(), to: to.Unix(),
		due: func(spec int, at int64) { due(spec, time.Unix(at, 0).UTC()) },
	}
	begin := (w.from/hour)*hour - history
	for i, s := range specs {
		for m, named := range s.minute {
			if named {
				w.naming[m] = append(w.naming[m], i)
			}
		}
	}
	w.latest = w.wall(begin - 1)
	for t := begin; t <= w.to; t += hour {
		if offset, calm := w.calm(t); calm {
			for m := t; m < t+hour; m += minute {
				w.show(m, m+offset, minute)
			}
			continue
		}
		for s := t; s < t+hour; s++ {
			if wall := w.wall(s); wall > w.latest+1 {
				w.land(s, wall)
			} else {
				w.show(s, wall, 1)
			}
		}
	}
}

// walk is one walk. Instants and readings of the wall clock are seconds since
// 1970, the latter as if the wall clock were one of UTC.
type walk struct {
	specs    []*Spec
	loc      *time.Location
	from, to int64
	due      func(spec int, at int64)
	naming   [60][]int // the specs that name a minute
	latest   int64     // every reading up to here has been shown or jumped over
}

// wall is what the clock shows at an instant.
func (w *walk) wall(t int64) int64 {
	_, offset := time.Unix(t, 0).In(w.loc).Zone()
	return t + int64(offset)
}

// calm says that the clock keeps one offset, of whole minutes, from a while before the hour to its end. Then no reading
// in it is jumped over, and minutes of the wall clock begin with those of UTC.
func (w *walk) calm(t int64) (offset int64, ok bool) {
	offset = w.wall(t) - t
	if offset%minute != 0 {
		return 0, false
	}
	for m := t - glance; m <= t+hour; m += glance {
		if w.wall(m)-m != offset {
			return 0, false
		}
	}
	return offset, true
}

// show judges the n instants from t on, at which the clock shows n seconds of one minute, the first of them wall.
func (w *walk) show(t, wall, n int64) {
	h, m, first := time.Unix(wall, 0).UTC().Clock()
	for _, i := range w.naming[m] {
		s := w.specs[i]
		if !s.hour[h] || !s.onDate(read(wall).date) {
			continue
		}
		for k := range n {
			if s.second[int64(first)+k] && (s.elapsed || wall+k > w.latest) {
				w.fire(i, t+k)
			}
		}
	}
	w.latest = max(w.latest, wall+n-1)
}

// land judges the first instant after a jump, which shows wall: what was jumped over and what is shown are one.
func (w *walk) land(t, wall int64) {
	for i, s := range w.specs {
		fires := s.matches(read(wall))
		for jumped := w.latest + 1; jumped < wall && !fires && !s.elapsed; jumped++ {
			fires = s.matches(read(jumped))
		}
		if fires {
			w.fire(i, t)
		}
	}
	w.latest = wall
}

func (w *walk) fire(spec int, t int64) {
	if w.from < t && t <= w.to {
		w.due(spec, t)
	}
}

// reading is what a wall clock shows.
type reading struct {
	date
	hour, minute, second int
}

func read(wall int64) (r reading) {
	t := time.Unix(wall, 0).UTC()
	r.year, r.month, r.day = t.Date()
	r.weekday = t.Weekday()
	r.hour, r.minute, r.second = t.Clock()
	return r
}

// matches says that the line names the reading.
func (s *Spec) matches(r reading) bool {
	return s.second[r.second] && s.minute[r.minute] && s.hour[r.hour] && s.onDate(r.date)
}

// onDate says that the line names the date: its month, and one of the two day fields where both are restricted, else
// both.
func (s *Spec) onDate(d date) bool {
	if !s.month[d.month] {
		return false
	}
	dom, dow := false, false
	for _, names := range s.dom {
		dom = dom || names(d)
	}
	for _, names := range s.dow {
		dow = dow || names(d)
	}
	if s.anyDom || s.anyDow {
		return dom && dow
	}
	return dom || dow
}
