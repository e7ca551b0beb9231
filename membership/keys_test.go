package membership

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func secret(b byte) []byte { return bytes.Repeat([]byte{b}, 32) }

// rotate changes the keys of a member, and demands that it works.
func (f *fleet) rotate(c *Cluster, keys ...[]byte) {
	f.Helper()
	if err := c.Rotate(f.Context(), keys); err != nil {
		f.Fatal(err)
	}
}

// keysOf is a member's only key, or none.
func keysOf(key []byte) [][]byte {
	if key == nil {
		return nil
	}
	return [][]byte{key}
}

// TestRotate changes the key of five members in three rounds, a second between each step, while all goes on (S16): nobody
// is lost for a moment, and in the end the old key opens nothing.
func TestRotate(t *testing.T) {
	t.Parallel()
	bubble(t, 3, func(f *fleet) {
		older, newer := secret(1), secret(2)
		all := f.serveAs(5, Config{Secrets: keysOf(older)})
		time.Sleep(10 * time.Second)
		seen := make(chan []int)
		go func() {
			changes, _ := f.swings(all, 50*time.Second)
			seen <- changes
		}()
		for _, round := range [][][]byte{{older, newer}, {newer, older}, {newer}} {
			for _, c := range all {
				f.rotate(c, round...)
				time.Sleep(time.Second)
			}
		}
		late := f.join(Config{Name: "late", Seeds: addrs(all), Secrets: [][]byte{older}})
		f.announce(late, Serving)
		for i, n := range <-seen {
			if n > 0 {
				f.Errorf("seed %d: %s saw its owners change %d times", f.seed, all[i].Self(), n)
			}
		}
		if n := len(late.Members()); n != 1 {
			f.Errorf("the old key found %d members", n)
		}
	})
}

// TestRotateLate leaves one member out of a round (F66): the others refuse it, it is alone, and it is found again as soon
// as it has caught up.
func TestRotateLate(t *testing.T) {
	t.Parallel()
	bubble(t, 2, func(f *fleet) {
		older, newer := secret(1), secret(2)
		all := f.serveAs(4, Config{Secrets: keysOf(older)})
		late := all[3]
		for _, round := range [][][]byte{{older, newer}, {newer, older}, {newer}} {
			for _, c := range all[:3] {
				f.rotate(c, round...)
			}
			time.Sleep(time.Second)
		}
		f.agree(10*time.Second, all[:3], names(3))
		f.agree(10*time.Second, all[3:], []string{letter(3)})
		time.Sleep(time.Minute)
		f.rotate(late, older, newer)
		f.rotate(late, newer, older)
		f.agree(merged, all, names(4))
	})
}

// TestRotateRefused keeps the keys as they are where a step would cut a member off.
func TestRotateRefused(t *testing.T) {
	t.Parallel()
	bubble(t, 1, func(f *fleet) {
		a, b, x := secret(1), secret(2), secret(3)
		c := f.join(Config{Name: "a", Secrets: [][]byte{a, b}})
		open := f.join(Config{Name: "b", Namespace: "open"})
		ended, cancel := context.WithCancel(f.Context())
		cancel()
		for name, k := range map[string]struct {
			of   *Cluster
			ctx  context.Context
			keys [][]byte
			says string
		}{
			"none":          {c, f.Context(), nil, "no secrets"},
			"length":        {c, f.Context(), [][]byte{a, {1}}, "secret 2 has 1 bytes"},
			"twice":         {c, f.Context(), [][]byte{a, a}, "twice"},
			"many":          {c, f.Context(), make([][]byte, 9), "at most 8"},
			"unknown first": {c, f.Context(), [][]byte{x, a}, "not accepted here yet"},
			"drops in use":  {c, f.Context(), [][]byte{b}, "secret in use"},
			"without a key": {open, f.Context(), [][]byte{a}, "joined without a key"},
			"context":       {c, ended, [][]byte{a}, "context canceled"},
		} {
			err := k.of.Rotate(k.ctx, k.keys)
			if err == nil || !strings.Contains(err.Error(), k.says) {
				f.Errorf("%s: got %v", name, err)
			}
		}
		if got := c.keys.GetKeys(); len(got) != 2 || !bytes.Equal(got[0], a) || !bytes.Equal(got[1], b) {
			f.Errorf("the keys are %x", got)
		}
		// One that is kept behind one that goes: what others read meanwhile must not shift.
		f.rotate(c, a, b, x)
		held := c.keys.GetKeys()
		f.rotate(c, a, x)
		if !bytes.Equal(held[1], b) || !bytes.Equal(held[2], x) {
			f.Error("the list that others read has changed")
		}
		if got := c.keys.GetKeys(); len(got) != 2 || !bytes.Equal(got[0], a) || !bytes.Equal(got[1], x) {
			f.Errorf("the keys are %x", got)
		}
		mine := secret(1)
		given := [][]byte{mine, x}
		f.rotate(c, given...)
		clear(mine)
		if got := c.keys.GetKeys(); !bytes.Equal(got[0], a) {
			f.Error("a key changes with the caller's memory")
		}
	})
}

// TestSecretsNotLogged: a key never reaches a log (S12).
func TestSecretsNotLogged(t *testing.T) {
	t.Parallel()
	bubble(t, 1, func(f *fleet) {
		var logged syncBuffer
		canary := []byte("canary-canary-canary-canary-1234")
		log := slog.New(slog.NewTextHandler(&logged, &slog.HandlerOptions{Level: slog.LevelDebug}))
		a := f.join(Config{Name: "a", Secrets: [][]byte{canary}, Logger: log})
		f.join(Config{Name: "b", Secrets: [][]byte{secret(1)}, Seeds: addrs(f.all), Logger: log})
		f.rotate(a, canary, secret(2))
		_ = a.Rotate(f.Context(), [][]byte{secret(3), canary})
		time.Sleep(time.Minute)
		for _, s := range []string{"canary", "63616e617279", "Y2FuYXJ5"} {
			if strings.Contains(logged.String(), s) {
				f.Errorf("logged: %s", logged.String())
			}
		}
		if logged.String() == "" {
			f.Error("nothing was logged")
		}
	})
}
