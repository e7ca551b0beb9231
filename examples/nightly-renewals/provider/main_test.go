package main

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const one = `{"customer":"c1","cents":500,"night":"2026-10-01T04:00:00Z"}`

// ask sends one request to the ledger and returns the status and the body of the answer.
func ask(t *testing.T, l *ledger, method, path, key, body string) (int, string) {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, path, strings.NewReader(body))
	r.Header.Set("User-Agent", "a")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	w := httptest.NewRecorder()
	l.routes().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func quiet() *ledger { return newLedger(0, slog.New(slog.NewTextHandler(io.Discard, nil))) }

func TestAnswers(t *testing.T) {
	t.Parallel()
	l := quiet()
	for _, c := range []struct {
		name, key, body string
		want            int
	}{
		{"new", "k1", one, http.StatusCreated},
		{"the same again", "k1", one, http.StatusOK},
		{"the same instant in another zone", "k1", strings.Replace(one, "04:00:00Z", "00:00:00-04:00", 1), http.StatusOK},
		{"key of another charge", "k1", strings.Replace(one, "500", "501", 1), http.StatusUnprocessableEntity},
		{"new key, same charge", "k2", one, http.StatusCreated},
		{"no key", "", one, http.StatusBadRequest},
		{"no JSON", "k3", "{", http.StatusBadRequest},
		{"nothing to charge", "k3", `{"customer":"c1"}`, http.StatusBadRequest},
		{"too long", "k3", `{"customer":"` + strings.Repeat("c", 5000) + `","cents":1}`, http.StatusBadRequest},
	} {
		if got, body := ask(t, l, "POST", "/charges", c.key, c.body); got != c.want {
			t.Errorf("%s: status %d (%s), want %d", c.name, got, body, c.want)
		}
	}
	_, body := ask(t, l, "GET", "/nights", "", "")
	var n night
	if err := json.Unmarshal([]byte(body), &n); err != nil {
		t.Fatalf("nights: %v in %s", err, body)
	}
	if n.Charges != 2 || n.Repeated != 2 || n.By["a"] != 2 {
		t.Errorf("the night is %+v; want 2 charges by a, 2 repeated", n)
	}
}

// TestHerd asks for one charge from many sides at once.
func TestHerd(t *testing.T) {
	t.Parallel()
	l := newLedger(time.Millisecond, slog.New(slog.NewTextHandler(io.Discard, nil)))
	var created sync.Map
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			if status, _ := ask(t, l, "POST", "/charges", "k1", one); status == http.StatusCreated {
				created.Store(i, true)
			}
		})
	}
	all.Wait()
	n := 0
	created.Range(func(any, any) bool { n++; return true })
	if n != 1 || len(l.made) != 1 {
		t.Errorf("%d of 50 were told they charged, %d charges made; want one", n, len(l.made))
	}
}
