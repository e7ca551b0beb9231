package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"testing"

	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/jobs"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRefusal tells apart what may do better later from what never will.
func TestRefusal(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]struct{ failed, permanent bool }{
		http.StatusCreated:             {false, false},
		http.StatusOK:                  {false, false},
		http.StatusBadRequest:          {true, true},
		http.StatusPaymentRequired:     {true, true},
		http.StatusUnprocessableEntity: {true, true},
		http.StatusRequestTimeout:      {true, false},
		http.StatusTooManyRequests:     {true, false},
		http.StatusInternalServerError: {true, false},
		http.StatusServiceUnavailable:  {true, false},
	} {
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if got := r.Header.Get("Idempotency-Key"); got != "k1" {
				t.Errorf("idempotency key %q arrived, want k1", got)
			}
			w.WriteHeader(status)
		}))
		p := newProvider(srv.URL, "a")
		err := p.charge(t.Context(), "k1", charge{Customer: "c1", Cents: 500})
		if (err != nil) != want.failed || jobs.IsPermanent(err) != want.permanent {
			t.Errorf("status %d: error %v, permanent %t", status, err, jobs.IsPermanent(err))
		}
		p.client.CloseIdleConnections()
		srv.Close()
	}
	p := newProvider("http://127.0.0.1:1", "a") // nobody listens there
	if err := p.charge(t.Context(), "k1", charge{}); err == nil || jobs.IsPermanent(err) {
		t.Errorf("a provider out of reach: error %v; want one to try again", err)
	}
}

// TestCustomers reads the table back across pages, and seeds it twice.
func TestCustomers(t *testing.T) {
	t.Parallel()
	c, err := openCustomers(t.Context(), filepath.Join(t.TempDir(), "a file with ? and #.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	for _, n := range []int{0, 1, page, page + 1, page + 1} {
		if err := c.seed(t.Context(), n); err != nil {
			t.Fatal(err)
		}
		var ids []string
		for id, err := range c.all(t.Context()) {
			if err != nil {
				t.Fatal(err)
			}
			ids = append(ids, id)
		}
		if len(ids) != n || !slices.IsSorted(ids) || len(slices.Compact(ids)) != n {
			t.Errorf("%d customers seeded, %d listed, sorted: %t", n, len(ids), slices.IsSorted(ids))
		}
	}
	if cents, err := c.price(t.Context(), "customer-00001"); err != nil || cents != 600 {
		t.Errorf("price %d, %v; want 600", cents, err)
	}
	if _, err := c.price(t.Context(), "nobody"); err == nil {
		t.Error("a customer who does not exist has a price")
	}
	if err := c.close(); err != nil {
		t.Fatal(err)
	}
	for _, err := range c.all(t.Context()) {
		if err == nil {
			t.Error("a closed table yields a customer")
		}
	}
}
