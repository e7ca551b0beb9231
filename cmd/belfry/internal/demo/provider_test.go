package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/belfry-go/belfry/jobs"
)

func startTest(t *testing.T, w *bytes.Buffer, latency time.Duration) *client {
	t.Helper()
	s := httptest.NewServer(&provider{ledger: w, latency: latency, charged: map[string]bool{}})
	t.Cleanup(s.Close)
	return &client{url: s.URL, replica: "replica-1", pid: 7, http: s.Client()}
}

// read is the calls in the text of a ledger.
func read(t *testing.T, text string) []call {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ledger")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	calls, err := (&ledger{path: path}).next()
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

func occurrence(key string) jobs.Occurrence {
	return jobs.Occurrence{Namespace: "demo", Job: jobName, Key: key, Due: time.Unix(1_790_000_000, 0).UTC()}
}

func TestProviderChargesOncePerKey(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	c := startTest(t, &text, 0)
	const customers, callers = 20, 8
	var wait sync.WaitGroup
	for range callers {
		for i := range customers {
			wait.Go(func() {
				if err := c.charge(t.Context(), occurrence(customer(i))); err != nil {
					t.Error(err)
				}
			})
		}
	}
	wait.Wait()
	first := map[string]int{}
	calls := read(t, text.String())
	for _, l := range calls {
		if l.First {
			first[l.Key]++
		}
		if l.Key != occurrence(l.Customer).IdempotencyKey() || l.Replica != "replica-1" || l.Pid != 7 || l.At.Before(l.Arrived) {
			t.Errorf("line %+v", l)
		}
	}
	if len(calls) != customers*callers || len(first) != customers {
		t.Errorf("%d calls, %d keys; want %d, %d", len(calls), len(first), customers*callers, customers)
	}
	for key, n := range first {
		if n != 1 {
			t.Errorf("%s was charged %d times", key, n)
		}
	}
}

// TestProviderForgetsTheDead: a caller that is gone before the charge was not charged.
func TestProviderForgetsTheDead(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	p := &provider{ledger: &text, latency: time.Hour, charged: map[string]bool{}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", strings.NewReader(`{}`))
	r.Header.Set(keyHeader, "k")
	p.ServeHTTP(httptest.NewRecorder(), r)
	if text.Len() != 0 {
		t.Errorf("ledger: %q", text.String())
	}
}

func TestProviderRefuses(t *testing.T) {
	t.Parallel()
	p := &provider{ledger: brokenDisk{}, charged: map[string]bool{}}
	for _, c := range []struct {
		name, key, body string
		want            int
	}{
		{"no key", "", `{}`, http.StatusBadRequest},
		{"no JSON", "k", `nonsense`, http.StatusBadRequest},
		{"no ledger", "k", `{}`, http.StatusInternalServerError},
	} {
		w, r := httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/", strings.NewReader(c.body))
		r.Header.Set(keyHeader, c.key)
		if p.ServeHTTP(w, r); w.Code != c.want {
			t.Errorf("%s: status %d, want %d", c.name, w.Code, c.want)
		}
	}
	if len(p.charged) > 0 {
		t.Error("what is not in the ledger counts as charged")
	}
}

type brokenDisk struct{}

func (brokenDisk) Write([]byte) (int, error) { return 0, errors.New("disk is full") }

func TestClientReportsRefusal(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(&provider{ledger: brokenDisk{}, charged: map[string]bool{}})
	t.Cleanup(s.Close)
	c := &client{url: s.URL, http: s.Client()}
	if err := c.charge(t.Context(), occurrence("c")); err == nil || !strings.Contains(err.Error(), "disk is full") {
		t.Errorf("got %v", err)
	}
}

func TestLedgerIsReadWhileWritten(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "ledger")
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	l := &ledger{path: path}
	for i, step := range []struct {
		write string
		want  int
	}{
		{"", 0},
		{`{"idempotency_key":"a","first":true}` + "\n" + `{"idempotency`, 1},
		{`_key":"b"`, 0},
		{"}\n", 1},
		{`{}` + "\n" + `{}` + "\n", 2},
	} {
		fmt.Fprint(f, step.write)
		calls, err := l.next()
		if err != nil || len(calls) != step.want {
			t.Fatalf("step %d: %d calls (%v), want %d", i, len(calls), err, step.want)
		}
	}
	fmt.Fprintln(f, "torn")
	if _, err := l.next(); err == nil || !strings.Contains(err.Error(), "line 5") {
		t.Errorf("a broken line: %v", err)
	}
	if _, err := (&ledger{path: path + "x"}).next(); err == nil {
		t.Error("no error without a file")
	}
}
