package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"
)

// charge is one charge asked for.
type charge struct {
	Customer string    `json:"customer"`
	Cents    int64     `json:"cents"`
	Night    time.Time `json:"night"`
}

// night counts the charges of one night.
type night struct {
	Night    time.Time      `json:"night"`
	Charges  int            `json:"charges"`  // made
	Repeated int            `json:"repeated"` // asked for again: answered, not made
	By       map[string]int `json:"by"`       // made, by the replica that asked
}

// ledger is all the provider knows.
type ledger struct {
	delay time.Duration
	log   *slog.Logger

	mu     sync.Mutex
	made   map[string]charge // by idempotency key
	nights map[time.Time]*night
}

func newLedger(delay time.Duration, log *slog.Logger) *ledger {
	return &ledger{delay: delay, log: log, made: make(map[string]charge), nights: make(map[time.Time]*night)}
}

func (l *ledger) routes() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /charges", l.post)
	mux.HandleFunc("GET /nights", l.list)
	return mux
}

// post makes a charge: 201 where it is new, 200 where its key has been seen with the same charge, 422 where with another.
func (l *ledger) post(w http.ResponseWriter, r *http.Request) {
	key := r.Header.Get("Idempotency-Key")
	if key == "" {
		http.Error(w, "no Idempotency-Key", http.StatusBadRequest)
		return
	}
	var c charge
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 4<<10)).Decode(&c); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if c.Customer == "" || c.Cents <= 0 {
		http.Error(w, "a charge needs a customer and cents above 0", http.StatusBadRequest)
		return
	}
	c.Night = c.Night.UTC() // so that equal instants are equal
	// Half the time passes before the charge, half before the answer: a caller that dies meanwhile has charged or
	// has not, and nobody on its side can know.
	if !l.work(r.Context()) {
		return
	}
	status := l.book(key, c, r.UserAgent())
	if l.work(r.Context()) {
		w.WriteHeader(status)
	}
}

// work takes half of the delay; it reports false where the caller has gone.
func (l *ledger) work(ctx context.Context) bool {
	select {
	case <-time.After(l.delay / 2):
		return true
	case <-ctx.Done():
		return false
	}
}

// book enters the charge and returns the status of the answer.
func (l *ledger) book(key string, c charge, from string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := l.nights[c.Night]
	if n == nil {
		n = &night{Night: c.Night, By: make(map[string]int)}
		l.nights[c.Night] = n
	}
	log := l.log.With("customer", c.Customer, "cents", c.Cents, "night", c.Night, "from", from)
	switch made, ok := l.made[key]; {
	case !ok:
		l.made[key] = c
		n.Charges++
		n.By[from]++
		log.Info("charged")
		return http.StatusCreated
	case made == c:
		n.Repeated++
		log.Info("charged before")
		return http.StatusOK
	default:
		log.Warn("refused: the key belongs to another charge")
		return http.StatusUnprocessableEntity
	}
}

// list writes the nights in order, one a line.
func (l *ledger) list(w http.ResponseWriter, _ *http.Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-ndjson")
	out := json.NewEncoder(w)
	for _, at := range slices.SortedFunc(maps.Keys(l.nights), time.Time.Compare) {
		if err := out.Encode(l.nights[at]); err != nil {
			return // the reader has gone
		}
	}
}
