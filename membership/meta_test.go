package membership

import (
	"bytes"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/hashicorp/memberlist"
	"pgregory.net/rapid"
)

// full is a meta with every part at its bound.
func full() meta {
	m := meta{name: strings.Repeat("n", maxName), boot: "0123456789abcdef", born: math.MaxInt64, state: Unfit,
		reason: strings.Repeat("r", maxReason), layout: strings.Repeat("l", maxLayout),
		version: strings.Repeat("v", maxVersion), zone: strings.Repeat("z", maxZone), facts: map[string]string{}}
	for i := range maxFacts {
		m.facts[fmt.Sprint(i)] = strings.Repeat("f", maxFactBytes/maxFacts-4)
	}
	return m
}

func equal(a, b meta) bool {
	fa, fb := a.facts, b.facts
	a.facts, b.facts = nil, nil
	return fmt.Sprint(a) == fmt.Sprint(b) && maps.Equal(fa, fb)
}

// TestMetaFits at its bounds (F67): memberlist panics on more. The doc comment of meta names the figure.
func TestMetaFits(t *testing.T) {
	t.Parallel()
	m := full()
	if err := m.check(); err != nil {
		t.Fatal(err)
	}
	b := m.encode()
	if len(b) != 507 || len(b) > memberlist.MetaMaxSize {
		t.Errorf("%d bytes", len(b))
	}
	got, err := decodeMeta(b)
	if err != nil || !equal(got, m) {
		t.Errorf("got %v, %v", got, err)
	}
	one := meta{name: "a", boot: "0123456789abcdef", facts: map[string]string{"": strings.Repeat("v", maxFactBytes-4)}}
	if err := one.check(); err != nil || len(one.encode()) > memberlist.MetaMaxSize {
		t.Errorf("one large fact: %d bytes, %v", len(one.encode()), err)
	}
}

func TestMetaBounds(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*meta){
		"name":    func(m *meta) { m.name += "n" },
		"empty":   func(m *meta) { m.name = "" },
		"state":   func(m *meta) { m.state = Unfit + 1 },
		"reason":  func(m *meta) { m.reason += "r" },
		"line":    func(m *meta) { m.reason = "a\nb" },
		"zone":    func(m *meta) { m.zone += "z" },
		"escape":  func(m *meta) { m.zone = "\x1b[2J" },
		"layout":  func(m *meta) { m.layout += "l" },
		"version": func(m *meta) { m.version += "v" },
		"facts":   func(m *meta) { m.facts["x"] = "" },
		"size":    func(m *meta) { m.facts["0"] += "123456789" },
	} {
		m := full()
		change(&m)
		if m.check() == nil {
			t.Errorf("%s: taken", name)
		}
		if _, err := decodeMeta(m.encode()); err == nil {
			t.Errorf("%s: decoded", name)
		}
	}
}

// TestMetaGrows lets a later version add a field, and change what this one cannot read.
func TestMetaGrows(t *testing.T) {
	t.Parallel()
	m := meta{name: "a", boot: "0123456789abcdef", born: 1, state: Serving}
	b := appendField(m.encode(), 99, []byte("new"))
	if got, err := decodeMeta(b); err != nil || !equal(got, m) {
		t.Errorf("with a new field: %v, %v", got, err)
	}
	b[0]++
	if _, err := decodeMeta(b); err == nil || !strings.Contains(err.Error(), "format 2") {
		t.Errorf("with a new format: %v", err)
	}
}

// TestMetaCut decodes no prefix of a whole one, but for those that end after whole optional fields.
func TestMetaCut(t *testing.T) {
	t.Parallel()
	m := meta{name: "a", boot: "0123456789abcdef", born: 1, state: Serving}
	b := m.encode()
	for i := range len(b) {
		got, err := decodeMeta(b[:i])
		if stateless := i == len(b)-3; (err == nil) != stateless {
			t.Errorf("%d of %d bytes: %v, %v", i, len(b), got, err)
		}
	}
	if _, err := decodeMeta(append(b, b[1:]...)); err == nil {
		t.Error("fields twice: taken")
	}
	if _, err := decodeMeta(bytes.Repeat([]byte{1}, memberlist.MetaMaxSize+1)); err == nil {
		t.Error("too long: taken")
	}
}

func TestMetaRoundTrip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := meta{
			name:    rapid.StringMatching(`[A-Za-z0-9._-]{1,64}`).Draw(t, "name"),
			boot:    rapid.StringMatching(`[0-9a-f]{16}`).Draw(t, "boot"),
			born:    rapid.Int64().Draw(t, "born"),
			state:   State(rapid.IntRange(0, int(Unfit)).Draw(t, "state")),
			reason:  clip(rapid.String().Draw(t, "reason")),
			layout:  rapid.StringN(0, 16, maxLayout).Draw(t, "layout"),
			version: rapid.StringMatching(`[ -~]{0,32}`).Draw(t, "version"),
			zone:    rapid.StringMatching(`[ -~]{0,32}`).Draw(t, "zone"),
			facts:   rapid.MapOfN(rapid.StringN(0, 2, 8), rapid.StringN(0, 2, 8), 0, maxFacts).Draw(t, "facts"),
		}
		if err := m.check(); err != nil {
			t.Fatal(err)
		}
		b := m.encode()
		if len(b) > memberlist.MetaMaxSize {
			t.Fatalf("%d bytes", len(b))
		}
		got, err := decodeMeta(b)
		if err != nil || !equal(got, m) {
			t.Fatalf("got %v, %v", got, err)
		}
	})
}

func TestClip(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		s := rapid.StringN(0, 200, -1).Draw(t, "s")
		c := clip(s)
		plain := utf8.ValidString(s) && !strings.ContainsFunc(s, unicode.IsControl) && len(s) <= maxReason
		if len(c) > maxReason || !utf8.ValidString(c) || strings.ContainsFunc(c, unicode.IsControl) || plain && c != s || clip(c) != c {
			t.Fatalf("%q became %q", s, c)
		}
	})
	for give, want := range map[string]string{"a\r\nb": "a  b", "\x80": "\uFFFD"} {
		if c := clip(give); c != want {
			t.Errorf("%q became %q", give, c)
		}
	}
	if c := clip(strings.Repeat("\x80", 200)); len(c) > maxReason {
		t.Errorf("%d bytes", len(c))
	}
}

// FuzzMeta decodes anything without a panic, within the bounds, and what it takes it can give again.
func FuzzMeta(f *testing.F) {
	f.Add(full().encode())
	f.Add(meta{name: "a", boot: "0123456789abcdef", facts: map[string]string{"k": "v"}}.encode())
	f.Add([]byte{})
	f.Add([]byte{metaFormat, tagFact, 3, 200, 1, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := decodeMeta(b)
		if err != nil {
			return
		}
		if err := m.check(); err != nil {
			t.Fatal(err)
		}
		again := m.encode()
		if len(again) > memberlist.MetaMaxSize {
			t.Fatalf("%d bytes", len(again))
		}
		if got, err := decodeMeta(again); err != nil || !equal(got, m) {
			t.Fatalf("%v became %v, %v", m, got, err)
		}
	})
}
