package membership

import (
	"log/slog"
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
