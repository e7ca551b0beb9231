package crontab

import (
	"errors"
	"strings"
	"testing"
)

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"0 2 * * *", "0 2 * * *"},
		{"\t0   2 *\r\n* * ", "0 2 * * *"},
		{"30 0 2 * * *", "30 0 2 * * *"},
		{"08 09 ? jan-Mar,DEC mon-7/2,friL,Sun#5", "08 09 ? JAN-MAR,DEC MON-7/2,FRIL,SUN#5"},
		{"h h(0-3)/2 l-3w,lw,15w,l * l", "H H(0-3)/2 L-3W,LW,15W,L * L"},
		{"1,1,1 2/3 1-31/30 */11 0-7/6", "1,1,1 2/3 1-31/30 */11 0-7/6"},
		{"0 0 29 2 *", "0 0 29 2 *"},
		{"0 0 L-28 2 *", "0 0 L-28 2 *"},
		{"0 0 30 2 5#5", "0 0 30 2 5#5"},
		{"0 0 30,* 2 *", "0 0 30,* 2 *"},
		{"0 0 H H *", "0 0 H H *"},
		{" @hourly ", "@hourly"},
		{"@annually", "@annually"},
	} {
		s, err := Parse(c.text)
		if err != nil || s.String() != c.want {
			t.Errorf("%q: %q, %v; want %q", c.text, s, err, c.want)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"", `column 1: nothing to go by; write five fields, such as 0 2 * * *, or @every 1h`},
		{"  ", `column 3: nothing to go by; write five fields, such as 0 2 * * *, or @every 1h`},
		{"@reboot", `column 1: "@reboot" is no descriptor; write @hourly, @daily, @midnight, @weekly, @monthly, @yearly or @annually, in lower case and alone, or five fields, such as 0 2 * * *`},
		{"@DAILY", `column 1: "@DAILY" is no descriptor; write @hourly, @daily, @midnight, @weekly, @monthly, @yearly or @annually, in lower case and alone, or five fields, such as 0 2 * * *`},
		{"@daily x", `column 1: "@daily x" is no descriptor; write @hourly, @daily, @midnight, @weekly, @monthly, @yearly or @annually, in lower case and alone, or five fields, such as 0 2 * * *`},
		{"garbage", `column 8: number of fields is 1; write five, such as 0 2 * * * (minute, hour, day of month, month, day of week), or six with seconds first`},
		{"0 9 * *", `column 8: number of fields is 4; write five, such as 0 2 * * * (minute, hour, day of month, month, day of week), or six with seconds first`},
		{"0 0 12 1 1 ? 2030", `column 14: number of fields is 7; write five, such as 0 2 * * * (minute, hour, day of month, month, day of week), or six with seconds first`},
		{"0 0 1 1 * 2030", `day of week field, column 11: "2030" is outside 0-7 or SUN-SAT; write a value of that range, in one or two digits`},
		{"0 9 * * 1–5", `day of week field, column 10: "\u2013" has no meaning in a cron line; write values within 0-7 or SUN-SAT, as in a, a-b, */n, a-b/n, H, 5L, 5#2`},
		{"0\u00a09 * * *", `column 2: "\u00a0" has no meaning in a cron line; write five fields, such as 0 2 * * *`},
		{"0 9 * * *\x00", `day of week field, column 10: "\x00" has no meaning in a cron line; write values within 0-7 or SUN-SAT, as in a, a-b, */n, a-b/n, H, 5L, 5#2`},
		{"0 9 \xff * *", `day of month field, column 5: "\xff" has no meaning in a cron line; write values within 1-31, as in a, a-b, */n, a-b/n, H, L, L-3, LW, 15W`},
		{"tz=UTC 0 9 * * *", `second field, column 3: "=" has no meaning in a cron line; write values within 0-59, as in a, a-b, */n, a-b/n, H`},
		{"60 * * * *", `minute field, column 1: "60" is outside 0-59; write a value of that range, in one or two digits`},
		{"64 * * * * *", `second field, column 1: "64" is outside 0-59; write a value of that range, in one or two digits`},
		{"0 24 * * *", `hour field, column 3: "24" is outside 0-23; write a value of that range, in one or two digits`},
		{"0 0 0 * *", `day of month field, column 5: "0" is outside 1-31; write a value of that range, in one or two digits`},
		{"0 0 32 * *", `day of month field, column 5: "32" is outside 1-31; write a value of that range, in one or two digits`},
		{"0 0 1 13 *", `month field, column 7: "13" is outside 1-12 or JAN-DEC; write a value of that range, in one or two digits`},
		{"0 0 * * 8", `day of week field, column 9: "8" is outside 0-7 or SUN-SAT; write a value of that range, in one or two digits`},
		{"99999999999999999999 * * * *", `minute field, column 1: "99999999999999999999" is outside 0-59; write a value of that range, in one or two digits`},
		{"005 * * * *", `minute field, column 1: "005" is outside 0-59; write a value of that range, in one or two digits`},
		{"0-18446744073709551615 * * * *", `minute field, column 3: "0-18446744073709551615" has 18446744073709551615, outside 0-59; write a value of that range, in one or two digits`},
		{"*/60 * * * *", `minute field, column 3: "*/60" has a step of 60, as wide as the 60 values of the field or wider, so it would not be what it says; write a smaller one (values: 0-59), or use @every for an interval`},
		{"0 5/24 * * *", `hour field, column 5: "5/24" has a step of 24, as wide as the 24 values of the field or wider, so it would not be what it says; write a smaller one (values: 0-23), or use @every for an interval`},
		{"0 0 1-9/31 * *", `day of month field, column 9: "1-9/31" has a step of 31, as wide as the 31 values of the field or wider, so it would not be what it says; write a smaller one (values: 1-31), or use @every for an interval`},
		{"0 0 * * */7", `day of week field, column 11: "*/7" has a step of 7, as wide as the 7 values of the field or wider, so it would not be what it says; write a smaller one (values: 0-7 or SUN-SAT), or use @every for an interval`},
		{"0 0 * * 7/2", `day of week field, column 9: "7/2" begins its steps at 7, where the week ends; begin at 0, which is Sunday too, within 0-7 or SUN-SAT`},
		{"*/0 * * * *", `minute field, column 3: "*/0" has a step of 0, which stands still; write 1 to 59 (values: 0-59)`},
		{"*/ * * * *", `minute field, column 3: "*/" ends where a number is due; write values within 0-59, as in a, a-b, */n, a-b/n, H`},
		{"/5 * * * *", `minute field, column 1: "/5" has '/' where a number is due; write values within 0-59, as in a, a-b, */n, a-b/n, H`},
		{"5- * * * *", `minute field, column 3: "5-" ends where a number is due; write values within 0-59, as in a, a-b, */n, a-b/n, H`},
		{"0 0 * * FRI-MON", `day of week field, column 13: "FRI-MON" is a range that runs backwards, from 5 to 1; write two within 0-7 or SUN-SAT: 5-6,0-1`},
		{"0 0 * * MON-SUN", `day of week field, column 13: "MON-SUN" is a range that runs backwards, since Sunday is 0; end it with 7, which is Sunday too, within 0-7 or SUN-SAT`},
		{"58-2/2 * * * *", `minute field, column 4: "58-2/2" is a range that runs backwards, from 58 to 2; write two within 0-59: 58-59,0-2`},
		{"1--5 * * * *", `minute field, column 3: "1--5" has '-' where a number is due; write values within 0-59, as in a, a-b, */n, a-b/n, H`},
		{"1-5-9 * * * *", `minute field, column 4: "1-5-9" has '-' after what is complete without it; write values within 0-59, as in a, a-b, */n, a-b/n, H`},
		{"1/2/3 * * * *", `minute field, column 4: "1/2/3" has '/' after what is complete without it; write values within 0-59, as in a, a-b, */n, a-b/n, H`},
		{"*-5 * * * *", `minute field, column 2: "*-5" has '-' after what is complete without it; write values within 0-59, as in a, a-b, */n, a-b/n, H`},
		{"** * * * *", `minute field, column 2: "**" has '*' after what is complete without it; write values within 0-59, as in a, a-b, */n, a-b/n, H`},
		{"+5 * * * *", `minute field, column 1: "+" has no meaning in a cron line; write values within 0-59, as in a, a-b, */n, a-b/n, H`},
		{"1,,2 * * * *", `minute field, column 3: "" is an empty member of the list; write values within 0-59, as in a, a-b, */n, a-b/n, H`},
		{"1, 2 * * *", `minute field, column 3: "" is an empty member of the list; write values within 0-59, as in a, a-b, */n, a-b/n, H`},
		{"L * * * *", `minute field, column 1: "L" has 'L' where a value is due (an L is for a day of month or of week); write values within 0-59, as in a, a-b, */n, a-b/n, H`},
		{"0 0 * W *", `month field, column 7: "W" has 'W' where a value is due (a W goes after a day of month, as in 15W or LW); write values within 1-12 or JAN-DEC, as in a, a-b, */n, a-b/n, H`},
		{"0 0 L-0 * *", `day of month field, column 7: "L-0" counts 0 days back from the last; write L, or L-1 to L-30`},
		{"0 0 L-31 * *", `day of month field, column 7: "L-31" counts 31 days back from the last; write L, or L-1 to L-30`},
		{"0 0 L- * *", `day of month field, column 7: "L-" ends where a number is due; write values within 1-31, as in a, a-b, */n, a-b/n, H, L, L-3, LW, 15W`},
		{"0 0 LL * *", `day of month field, column 6: "LL" has 'L' after L, which is followed by -n, W or nothing; write values within 1-31, as in a, a-b, */n, a-b/n, H, L, L-3, LW, 15W`},
		{"0 0 L/2 * *", `day of month field, column 6: "L/2" has '/' after L, which is followed by -n, W or nothing; write values within 1-31, as in a, a-b, */n, a-b/n, H, L, L-3, LW, 15W`},
		{"0 0 W * *", `day of month field, column 5: "W" has 'W' where a value is due (a W goes after a day of month, as in 15W or LW); write values within 1-31, as in a, a-b, */n, a-b/n, H, L, L-3, LW, 15W`},
		{"0 0 1-5W * *", `day of month field, column 8: "1-5W" has 'W' after a range; such a rule takes one day, and several make a list; write values within 1-31, as in a, a-b, */n, a-b/n, H, L, L-3, LW, 15W`},
		{"0 0 *W * *", `day of month field, column 6: "*W" has 'W' after what is complete without it; write values within 1-31, as in a, a-b, */n, a-b/n, H, L, L-3, LW, 15W`},
		{"0 0 0W * *", `day of month field, column 5: "0W" has 0, outside 1-31; write a value of that range, in one or two digits`},
		{"0 0 15W/2 * *", `day of month field, column 8: "15W/2" has '/' after a day by rule, which takes no step, range or second rule; write values within 1-31, as in a, a-b, */n, a-b/n, H, L, L-3, LW, 15W`},
		{"0 0 15L * *", `day of month field, column 7: "15L" has 'L' after what is complete without it; write values within 1-31, as in a, a-b, */n, a-b/n, H, L, L-3, LW, 15W`},
		{"0 0 1#2 * *", `day of month field, column 6: "1#2" has '#' after what is complete without it; write values within 1-31, as in a, a-b, */n, a-b/n, H, L, L-3, LW, 15W`},
		{"0 0 * * L-3", `day of week field, column 10: "L-3" has '-' after L, which is Saturday here; write values within 0-7 or SUN-SAT, as in a, a-b, */n, a-b/n, H, 5L, 5#2`},
		{"0 0 * * LW", `day of week field, column 10: "LW" has 'W' after L, which is Saturday here; write values within 0-7 or SUN-SAT, as in a, a-b, */n, a-b/n, H, 5L, 5#2`},
		{"0 0 * * 5W", `day of week field, column 10: "5W" has 'W' after what is complete without it; write values within 0-7 or SUN-SAT, as in a, a-b, */n, a-b/n, H, 5L, 5#2`},
		{"0 0 * * 1-5L", `day of week field, column 12: "1-5L" has 'L' after a range; such a rule takes one day, and several make a list; write values within 0-7 or SUN-SAT, as in a, a-b, */n, a-b/n, H, 5L, 5#2`},
		{"0 0 * * 8L", `day of week field, column 9: "8L" has 8, outside 0-7 or SUN-SAT; write a value of that range, in one or two digits`},
		{"0 0 * * 5#0", `day of week field, column 11: "5#0" asks for a week that no month has; write #1 to #5, or L for the last, as in 5L`},
		{"0 0 * * 5#6", `day of week field, column 11: "5#6" asks for a week that no month has; write #1 to #5, or L for the last, as in 5L`},
		{"0 0 * * 5#", `day of week field, column 11: "5#" ends where a number is due; write values within 0-7 or SUN-SAT, as in a, a-b, */n, a-b/n, H, 5L, 5#2`},
		{"0 0 * * 5#2/2", `day of week field, column 12: "5#2/2" has '/' after a day by rule, which takes no step, range or second rule; write values within 0-7 or SUN-SAT, as in a, a-b, */n, a-b/n, H, 5L, 5#2`},
		{"0 0 * * *#2", `day of week field, column 10: "*#2" has '#' after what is complete without it; write values within 0-7 or SUN-SAT, as in a, a-b, */n, a-b/n, H, 5L, 5#2`},
		{"0 0 * * MONDAY", `day of week field, column 12: "MONDAY" has 'D' after what is complete without it; write values within 0-7 or SUN-SAT, as in a, a-b, */n, a-b/n, H, 5L, 5#2`},
		{"0 0 * * FOO", `day of week field, column 9: "FOO" has 'F' where a value is due; write values within 0-7 or SUN-SAT, as in a, a-b, */n, a-b/n, H, 5L, 5#2`},
		{"0 0 * * fri-mon", `day of week field, column 13: "fri-mon" is a range that runs backwards, from 5 to 1; write two within 0-7 or SUN-SAT: 5-6,0-1`},
		{"0 0 * * fOo", `day of week field, column 9: "fOo" has 'f' where a value is due; write values within 0-7 or SUN-SAT, as in a, a-b, */n, a-b/n, H, 5L, 5#2`},
		{"5-h * * * *", `minute field, column 3: "5-h" has 'h' where a value is due (an H stands for itself, as in H, H/n or H(a-b)); write values within 0-59, as in a, a-b, */n, a-b/n, H`},
		{"0 0 l-29,30 feb *", `day of month field, column 5: "l-29,30" never fires: the months of "feb" have at most 29 days; mend the day, within 1-29 or L to L-28, or the month`},
		{"0 MON * * *", `hour field, column 3: "MON" has 'M' where a value is due; write values within 0-23, as in a, a-b, */n, a-b/n, H`},
		{"H(5 * * * *", `minute field, column 4: "H(5" ends where H wants a range, as in H(a-b); write values within 0-59, as in a, a-b, */n, a-b/n, H`},
		{"H() * * * *", `minute field, column 3: "H()" has ')' where a number is due; write values within 0-59, as in a, a-b, */n, a-b/n, H`},
		{"H(5) * * * *", `minute field, column 4: "H(5)" has ')' where H wants a range, as in H(a-b); write values within 0-59, as in a, a-b, */n, a-b/n, H`},
		{"H(9-5) * * * *", `minute field, column 5: "H(9-5)" has a range that runs backwards, from 9 to 5; write the lower end first, within 0-59`},
		{"H(0-60) * * * *", `minute field, column 5: "H(0-60)" has 60, outside 0-59; write a value of that range, in one or two digits`},
		{"H/60 * * * *", `minute field, column 3: "H/60" has a step of 60, as wide as the 60 values of the field or wider, so it would not be what it says; write a smaller one (values: 0-59), or use @every for an interval`},
		{"H(0-9)/10 * * * *", `minute field, column 8: "H(0-9)/10" has a step of 10, as wide as the 10 values of the range of H or wider, so it would not be what it says; write a smaller one (values: 0-59), or use @every for an interval`},
		{"0 0 * * H(0-7)/7", `day of week field, column 16: "H(0-7)/7" has a step of 7, as wide as the 7 values of the range of H or wider, so it would not be what it says; write a smaller one (values: 0-7 or SUN-SAT), or use @every for an interval`},
		{"H-5 * * * *", `minute field, column 2: "H-5" has '-' after H, which is followed by (a-b), /n or nothing; write values within 0-59, as in a, a-b, */n, a-b/n, H`},
		{"5-H * * * *", `minute field, column 3: "5-H" has 'H' where a value is due (an H stands for itself, as in H, H/n or H(a-b)); write values within 0-59, as in a, a-b, */n, a-b/n, H`},
		{"0 0 HW * *", `day of month field, column 6: "HW" has 'W' after H, which is followed by (a-b), /n or nothing; write values within 1-31, as in a, a-b, */n, a-b/n, H, L, L-3, LW, 15W`},
		{"0 0 30 2 *", `day of month field, column 5: "30" never fires: the months of "2" have at most 29 days; mend the day, within 1-29 or L to L-28, or the month`},
		{"0 0 31 4,6 *", `day of month field, column 5: "31" never fires: the months of "4,6" have at most 30 days; mend the day, within 1-30 or L to L-29, or the month`},
		{"0 0 L-29 2 *", `day of month field, column 5: "L-29" never fires: the months of "2" have at most 29 days; mend the day, within 1-29 or L to L-28, or the month`},
		{"0 0 30W 2 *", `day of month field, column 5: "30W" never fires: the months of "2" have at most 29 days; mend the day, within 1-29 or L to L-28, or the month`},
		{"0 0 H(28-30) 2 *", `day of month field, column 5: "H(28-30)" never fires for some names: the months of "2" have at most 29 days; mend the day, within 1-29 or L to L-28, or the month`},
		{"H H 30 2 *", `day of month field, column 5: "30" never fires: the months of "2" have at most 29 days; mend the day, within 1-29 or L to L-28, or the month`},
		{"0 0 31 H *", `day of month field, column 5: "31" never fires for some names: the months of "H" have at most 29 days; mend the day, within 1-29 or L to L-28, or the month`},
		{"0 0 H/30 2 *", `day of month field, column 5: "H/30" never fires for some names: the months of "2" have at most 29 days; mend the day, within 1-29 or L to L-28, or the month`},
	} {
		s, err := Parse(c.text)
		if err == nil {
			t.Errorf("%q is accepted as %s", c.text, s)
			continue
		}
		if err.Error() != c.want {
			t.Errorf("%q:\n got %v\nwant %s", c.text, err, c.want)
		}
		var e *Error
		if !errors.As(err, &e) || e.Column < 1 || e.Column > len(c.text)+1 {
			t.Errorf("%q: %#v", c.text, err)
		}
	}
}

// A long text makes no long message.
func TestRefusedBriefly(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("9", 1000)
	for _, text := range []string{
		long + " * * * *", "1-" + long + " * * * *", "*/" + long + " * * * *", long, "@" + long, strings.Repeat("x", 1000) + " * * * *",
		"0 0 L-" + long + " * *", "0 0 " + strings.Repeat("31,", 500) + "31 2 *", "0 0 * * 5#" + long,
	} {
		if _, err := Parse(text); err == nil || len(err.Error()) > 400 {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}
