package membership

import (
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestOwnersLogged says of each owner that went why it did.
func TestOwnersLogged(t *testing.T) {
	t.Parallel()
	bubble(t, 1, func(f *fleet) {
		var logged syncBuffer
		a := f.join(Config{Name: "a", Logger: slog.New(slog.NewTextHandler(&logged, nil))})
		f.announce(a, Serving)
		b := f.join(Config{Name: "b", Seeds: addrs(f.all)})
		c := f.join(Config{Name: "c", Seeds: addrs(f.all)})
		f.announce(b, Serving)
		f.announce(c, Serving)
		f.agree(time.Second, f.all, []string{"a", "b", "c"})
		if err := b.Announce(f.Context(), "unfit", "layout", "no store", nil); err != nil {
			f.Fatal(err)
		}
		f.crash(c)
		f.agree(5*time.Second, f.all, []string{"a"})
		for _, want := range []string{"b: unfit: no store", "c: left, or out of reach"} {
			if !strings.Contains(logged.String(), want) {
				f.Errorf("the log does not say %q: %s", want, logged.String())
			}
		}
	})
}

// TestTextForms: members and statistics survive JSON, and read there as people know them.
func TestTextForms(t *testing.T) {
	t.Parallel()
	members := []Member{{Name: "a", State: Unfit}, {Name: "b"}}
	stats := Stats{Sent: 1, Refused: map[Refusal]int64{RefusedKey: 2, RefusedMeta: 3}}
	b, err := json.Marshal([]any{members, stats})
	if err != nil || !strings.Contains(string(b), `"State":"unfit"`) || !strings.Contains(string(b), `"key":2`) {
		t.Fatalf("%s, %v", b, err)
	}
	var gotMembers []Member
	var gotStats Stats
	if err := json.Unmarshal(b, &[]any{&gotMembers, &gotStats}); err != nil || !slices.Equal(gotMembers, members) ||
		gotStats.Sent != 1 || !maps.Equal(gotStats.Refused, stats.Refused) {
		t.Errorf("%s became %v, %v, %v", b, gotMembers, gotStats, err)
	}
	for _, bad := range []string{`[[{"State":"gone"}]]`, `[[],{"Refused":{"x":1}}]`} {
		if err := json.Unmarshal([]byte(bad), &[]any{&gotMembers, &gotStats}); err == nil {
			t.Errorf("%s was taken", bad)
		}
	}
}
