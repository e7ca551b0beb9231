package jobs

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// A column counts in the text that the user wrote, prefix and all.
func TestCronColumn(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, at string }{
		{"0 60 2 * * *", "60"},
		{"TZ=UTC 0 24 * * *", "24"},
		{"CRON_TZ=Europe/Berlin   0 2 * * MON-SUN", "SUN"},
		{"TZ=UTC 0\t2 31 2 *", "31"},
		{"TZ=Asia/Tokyo @nightly", "@nightly"},
		{"TZ=Mars/Olympus 0 2 * * *", "Mars"},
		{"CRON_TZ=Local 0 2 * * *", "Local"},
		{"TZ=UTC", ""},
	} {
		want := strings.Index(c.text, c.at) + 1
		if c.at == "" {
			want = len(c.text) + 1
		}
		err := Cron(c.text).Err()
		if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("column %d:", want)) {
			t.Errorf("%q: %v; want column %d", c.text, err, want)
		}
	}
}

// Blanks of other alphabets separate nothing, in front of an interval as little as in a line.
func TestForeignBlank(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"\u00a0@every 1h", "TZ=UTC \u2003@every 1h", "0\u00a02 * * *", "TZ=UTC\u00a00 2 * * *", "@every 1h\u00a0phase 10m", "@every 1h phase\u00a010m", "@every\u00a01h"} {
		if s := Cron(text); s.Err() == nil {
			t.Errorf("%q is accepted as %s", text, s)
		}
	}
	if s := Cron("TZ=UTC \t@every\t1h"); s.Err() != nil || s != Every(time.Hour) {
		t.Errorf("%s, %v", s, s.Err())
	}
}
