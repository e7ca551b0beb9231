package demo

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"
)

// call is one line of the provider's ledger.
type call struct {
	Arrived time.Time `json:"arrived"`
	At      time.Time `json:"at"` // when it was answered for
	Key     string    `json:"idempotency_key"`
	charge
	First bool `json:"first"` // money was taken
}

// ledger reads the provider's file while it is written. The zero ledger with a path is at its beginning.
type ledger struct {
	path string
	at   int64 // what was read, whole lines only
	line int
}

// next returns the calls written since the last next.
func (l *ledger) next() ([]call, error) {
	f, err := os.Open(l.path)
	if err != nil {
		return nil, fmt.Errorf("demo: ledger: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, l.at, 1<<62))
	if err != nil {
		return nil, fmt.Errorf("demo: ledger: %w", err)
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1] // the rest of a line comes with the next
	var calls []call
	for line := range bytes.Lines(text) {
		l.line++
		var c call
		if err := json.Unmarshal(line, &c); err != nil {
			return nil, fmt.Errorf("demo: ledger %q: line %d: %w", l.path, l.line, err)
		}
		calls = append(calls, c)
	}
	l.at += int64(len(text))
	return calls, nil
}
