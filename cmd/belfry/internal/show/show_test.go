package show

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"
	"pgregory.net/rapid"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ in, line, word string }{
		{"c-000042", "c-000042", "c-000042"},
		{"Zoë 日本", "Zoë 日本", `"Zoë 日本"`},
		{"", "", `""`},
		{"-", "-", `"-"`},
		{"a\x1b[31mb", `a\x1b[31mb`, `"a\x1b[31mb"`},
		{"a\u009b31m", `a\u009b31m`, `"a\u009b31m"`},
		{"a\u202egnp.exe", `a\u202egnp.exe`, `"a\u202egnp.exe"`},
		{"one\ntwo\t\r\x00\x7f", `one\ntwo\t\r\x00\x7f`, `"one\ntwo\t\r\x00\x7f"`},
		{"\xff\xfe", `\xff\xfe`, `"\xff\xfe"`},
		{`a\x1b"`, `a\x1b"`, `"a\\x1b\""`},
	} {
		if line, word := Line(c.in), Word(c.in); line != c.line || word != c.word {
			t.Errorf("%q: got %s and %s, want %s and %s", c.in, line, word, c.line, c.word)
		}
	}
	if got, want := Lines("a\x1b:\n\tb\rc"), "a\\x1b:\n\tb\\rc"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := Clip("日本語", 2)+Clip("日本", 2), "日本…日本"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Whatever is stored, a terminal gets nothing to obey, and programs get it back as it was.
func TestHostileText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.OneOf(rapid.String(), rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) })).Draw(t, "s")
		for _, said := range []string{Line(s), Word(s)} {
			if !utf8.ValidString(said) || strings.IndexFunc(said, obeyed) >= 0 {
				t.Errorf("%q is shown as %q", s, said)
			}
		}
		line, err := JSON(map[string]string{"s": s})
		text, ok := strings.CutSuffix(string(line), "\n")
		if err != nil || !ok || strings.IndexFunc(text, obeyed) >= 0 {
			t.Fatalf("%q as JSON: %q (%v)", s, line, err)
		}
		var back map[string]string
		if err := json.Unmarshal(line, &back); err != nil || utf8.ValidString(s) && back["s"] != s {
			t.Errorf("%q is read back as %q (%v)", s, back["s"], err)
		}
	})
}

// obeyed are the controls of ASCII and those of Unicode, and marks of the direction of writing.
func obeyed(r rune) bool {
	return r < 0x20 || r >= 0x7f && r < 0xa0 || r == '\u061c' || r >= '\u200b' && r <= '\u200f' || r >= '\u2028' && r <= '\u202e' || r >= '\u2066' && r <= '\u2069'
}

func TestJSONBeyondPlaneZero(t *testing.T) {
	t.Parallel()
	line, err := JSON("<é😀\U000e0041\u2028>")
	if want := `"<é😀\udb40\udc41\u2028>"` + "\n"; err != nil || string(line) != want {
		t.Errorf("got %s (%v), want %s", line, err, want)
	}
}

func TestAge(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 10, 1, 4, 0, 0, 0, time.UTC)
	for d, want := range map[time.Duration]string{
		0: "now", 999 * time.Millisecond: "now", -999 * time.Millisecond: "now", time.Second: "1 s ago", 59 * time.Second: "59 s ago",
		time.Minute: "1 min ago", 3*time.Minute + 59*time.Second: "3 min ago", time.Hour: "1 h ago", 47 * time.Hour: "47 h ago",
		48 * time.Hour: "2 d ago", -20 * time.Hour: "in 20 h", -time.Second: "in 1 s",
	} {
		if got := Age(now.Add(-d), now); got != want {
			t.Errorf("%v: got %q, want %q", d, got, want)
		}
	}
	if got := Instant(time.Time{}) + " " + Instant(now.In(time.FixedZone("", 7200))); got != "- 2026-10-01T04:00:00Z" {
		t.Errorf("got %q", got)
	}
}

// Columns are aligned by what a terminal shows, empty ones are left out, and no line ends in blanks.
func TestTable(t *testing.T) {
	t.Parallel()
	table := NewTable("JOB", "KEY", "REQUEST", "TEXT")
	table.Add("a", "日本", "", "")
	table.Add("renewals", "e\u0301", "", "x")
	var b strings.Builder
	if err := table.Write(&b); err != nil {
		t.Fatal(err)
	}
	want := "JOB       KEY   TEXT\n" +
		"a         日本\n" +
		"renewals  e\u0301     x\n"
	if b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
