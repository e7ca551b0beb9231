//go:build unix

package rig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// The phases of a ledger's lines.
const (
	claimed   = "claimed"   // the store answered a claim as won
	started   = "started"   // a handler began
	effect    = "effect"    // its effect is applied: this line is it
	applied   = "applied"   // its effect is written in a transaction that completes the run, which is not committed yet
	gaveUp    = "gave up"   // it failed because its transaction did; Text: the error
	returned  = "returned"  // it is about to return; Text: the cause of its ended context, if it ended
	committed = "committed" // the store answered a finish as written; Text: the outcome
	refused   = "refused"   // Hooks.Refused; Text: the cause
	stuck     = "stuck"     // Hooks.Stuck
	hedged    = "hedged"    // Hooks.Hedged
	session   = "session"   // this process has opened a session
	lapsed    = "lapsed"    // the session of this process has come to its end by itself, or may have
	waited    = "waited"    // this process has waited for a processor
	storeCut  = "store cut" // this process does not reach the store from now on; storeHealed: it does again
	faulted   = "fault"     // this process is about to do a fault to itself; Text: the fault
)

const storeHealed = "store healed"

// line is one of the ledger. All but those of a session and of the way to the store name a run.
type line struct {
	Phase   string `json:"phase"`
	Pid     int    `json:"pid"`
	Replica string `json:"replica"`
	At      int64  `json:"at"` // microseconds since 1970
	Job     string `json:"job,omitempty"`
	Key     string `json:"key,omitempty"`
	Due     int64  `json:"due,omitempty"` // seconds since 1970
	Idem    string `json:"idem,omitempty"`
	Fence   int64  `json:"fence,omitempty"`
	Attempt int    `json:"attempt,omitempty"`
	Text    string `json:"text,omitempty"`
}

// run names an occurrence of the one namespace.
type run struct {
	job, key string
	due      int64
}

func (r run) String() string { return fmt.Sprintf("%s/%s@%d", r.job, r.key, r.due) }

func (l line) run() run { return run{l.Job, l.Key, l.Due} }

func ofOccurrence(phase, text string, o jobs.Occurrence) line {
	return line{Phase: phase, Text: text, Job: o.Job, Key: o.Key, Due: o.Due.Unix(), Idem: o.IdempotencyKey(), Fence: o.Fence, Attempt: o.Attempt}
}

func ofID(phase, text string, id idempotency.ID, fence int64) line {
	return line{Phase: phase, Text: text, Job: id.Job, Key: id.Key, Due: id.Due.Unix(), Fence: fence}
}

// ledger is the child's side: each line is one write to a file in append mode, so that the lines of all processes have
// one order and none is torn.
type ledger struct {
	file    *os.File
	replica string
}

func openLedger(path, replica string) (*ledger, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return &ledger{f, replica}, err
}

// write ends the process where it fails: what is not in the ledger must not have happened.
func (l *ledger) write(lines ...line) {
	var b []byte
	for _, n := range lines {
		n.Pid, n.Replica, n.At = os.Getpid(), l.replica, time.Now().UnixMicro()
		text, err := json.Marshal(n)
		if err != nil {
			panic(err)
		}
		b = append(append(b, text...), '\n')
	}
	if _, err := l.file.Write(b); err != nil {
		panic(err)
	}
}

// book is the parent's side: the lines read so far.
type book struct {
	path  string
	read  int64 // bytes
	lines []line
}

// refresh reads what was written since.
func (b *book) refresh() error {
	f, err := os.Open(b.path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	text := make([]byte, info.Size()-b.read)
	if _, err := f.ReadAt(text, b.read); err != nil {
		return err
	}
	text = text[:bytes.LastIndexByte(text, '\n')+1]
	b.read += int64(len(text))
	for one := range bytes.Lines(text) {
		var l line
		if err := json.Unmarshal(one, &l); err != nil {
			return fmt.Errorf("ledger %s: %w", b.path, err)
		}
		b.lines = append(b.lines, l)
	}
	return nil
}
