package oracle_test

import (
	"slices"
	"strings"
	"testing"
	"time"
)

// Famous days of clocks, in zones and years that the other comparisons may not come by, and years that zones know by
// their rules only.
func TestOddDays(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		zone, from string
		days       int
		why        string
	}{
		{"Pacific/Apia", "2011-12-28", 5, "30 December never was"},
		{"Pacific/Apia", "1892-07-03", 4, "4 July was twice"},
		{"Pacific/Kwajalein", "1993-08-19", 5, "21 August never was"},
		{"Pacific/Kwajalein", "1969-09-29", 4, "23 hours back"},
		{"Pacific/Kiritimati", "1994-12-29", 5, "a year without its last day"},
		{"Pacific/Fakaofo", "2011-12-28", 5, "as Apia, elsewhere"},
		{"Asia/Manila", "1844-12-29", 5, "a year without its last day, on local mean time"},
		{"America/Juneau", "1867-10-17", 4, "a day twice, on local mean time, to the second"},
		{"Africa/Monrovia", "1972-01-05", 4, "44 minutes and 30 seconds"},
		{"America/New_York", "1883-11-17", 3, "back by 3 minutes and 58 seconds"},
		{"Europe/Dublin", "1916-09-29", 4, "an hour and 25 minutes in one night, to the second"},
		{"Europe/Moscow", "1917-06-29", 12, "offsets with seconds, on and off"},
		{"Europe/Moscow", "1919-05-29", 36, "two changes in a month"},
		{"Europe/London", "1941-05-03", 3, "double summer time"},
		{"Europe/Berlin", "1945-05-23", 4, "double summer time after the war"},
		{"Asia/Kuching", "1935-09-12", 4, "20 minutes"},
		{"Asia/Colombo", "1996-05-23", 4, "an hour at midnight"},
		{"Asia/Colombo", "1996-10-24", 4, "half an hour at half past midnight"},
		{"America/Caracas", "2007-12-08", 3, "half an hour back"},
		{"America/Caracas", "2016-04-30", 3, "half an hour on"},
		{"Asia/Pyongyang", "2015-08-13", 4, "half an hour back"},
		{"Asia/Pyongyang", "2018-05-03", 4, "half an hour on"},
		{"Australia/Lord_Howe", "2024-04-05", 4, "half an hour back"},
		{"Australia/Lord_Howe", "2024-10-04", 4, "half an hour on"},
		{"Antarctica/Troll", "2024-03-30", 3, "two hours on"},
		{"Antarctica/Troll", "2024-10-26", 3, "two hours back"},
		{"Africa/Cairo", "2014-05-10", 145, "four changes"},
		{"Africa/Casablanca", "2025-02-20", 50, "Ramadan"},
		{"Africa/Casablanca", "2086-03-01", 700, "the last Ramadan that is listed"},
		{"Europe/Istanbul", "2016-03-25", 230, "summer time that stayed"},
		{"Europe/Dublin", "2026-03-27", 4, "winter time is the exception"},
		{"Asia/Gaza", "2025-02-20", 80, "Ramadan and summer time"},
		{"America/Ciudad_Juarez", "2022-10-28", 40, "a change of zone after the last listed one"},
		{"America/New_York", "2099-12-20", 420, "2100 is no leap year"},
		{"Europe/London", "2096-12-25", 110, "the end of a leap year, by rule"},
		{"America/Santiago", "2100-03-25", 170, "south, by rule"},
		{"Europe/Berlin", "2400-02-20", 40, "2400 is a leap year"},
		{"Australia/Lord_Howe", "9998-09-20", 220, "the far end"},
		{"Europe/Brussels", "0002-01-01", 2, "before there were zones"},
	} {
		t.Run(strings.ReplaceAll(c.zone, "/", " ")+" "+c.from, func(t *testing.T) {
			t.Parallel()
			if underRace && !slices.Contains(fewZones, c.zone) {
				t.Skip("other zones without the race detector")
			}
			from, err := time.Parse(time.DateOnly, c.from)
			if err != nil {
				t.Fatal(err)
			}
			if n := judge(t, c.zone, from, from.AddDate(0, 0, c.days)); n == 0 {
				t.Error("no dues")
			}
			if t.Failed() {
				t.Logf("here: %s", c.why)
			}
		})
	}
}

// Two changes of one clock are never so close that the oracle's glance could miss both.
func TestNoQuickChange(t *testing.T) {
	t.Parallel()
	data, err := zoneData()
	if err != nil {
		t.Fatal(err)
	}
	closest, where := time.Duration(1<<62), ""
	for name := range data {
		all := changes(location(t, name))
		for i := range len(all) - 1 {
			if d := all[i+1].Sub(all[i]); d < closest {
				closest, where = d, name+" "+all[i].Format(time.RFC3339)
			}
		}
	}
	t.Logf("%v, in %s", closest, where)
	if closest < 15*time.Minute {
		t.Errorf("two changes within %v, in %s", closest, where)
	}
}
