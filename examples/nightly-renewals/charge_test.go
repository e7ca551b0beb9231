package main

import (
	"net/http"
	"net/http/httptest"
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
