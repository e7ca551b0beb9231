package crontab

// A date is counted in days from 1 March of the year -400: no date that can be
// asked for is negative, and a leap day is the last of its year. Dates and
// years are converted by the integer formulas of C. Neri and L. Schneider,
// "Euclidean affine functions and their application to calendar algorithms",
// Software: Practice and Experience 53 (2023).
const (
	cycle     = 146097         // days in 400 years, and a whole number of weeks
	epochDate = 719468 + cycle // 1 January 1970
	epoch     = epochDate * day
	day       = 24 * 60 * 60
)

// civil is the year, month and day of month of a date.
func civil(date uint32) (y, m, d uint32) {
	n := 4*date + 3
	century := n / cycle
	p := 2939745 * uint64(n%cycle|3)
	y = 100*century + uint32(p>>32)
	ofYear := uint32(p) / 2939745 / 4 // 0 is 1 March
	n = 2141*ofYear + 197913
	m, d = n>>16, n&0xffff/2141+1
	if ofYear >= 306 { // January and February end the year before
		y, m = y+1, m-12
	}
	return y - 400, m, d
}

// firstOf is the date of the first of a month.
func firstOf(y, m uint32) uint32 {
	y += 400
	if m <= 2 {
		y, m = y-1, m+12
	}
	century := y / 100
	return 1461*y/4 - century + century/4 + (979*m-2919)/32
}

// weekday of a date; 0 is Sunday.
func weekday(date uint32) uint32 { return (date + 3) % 7 }

func daysIn(y, m uint32) uint32 {
	if m == 2 {
		if y%4 == 0 && (y%100 != 0 || y%400 == 0) {
			return 29
		}
		return 28
	}
	return 30 | (m ^ m>>3) // of April to July the odd have 31, of August to November the even
}
