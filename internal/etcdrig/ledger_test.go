//go:build unix

package etcdrig

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// The phases of a ledger's lines.
const (
	trusted   = "trusted"   // the context of a term was not over at At; the first one is where the term begins
	over      = "over"      // it was, or the term was given up; Text: why
	inRole    = "in role"   // as trusted, of the context that a role of the leader has
	leftRole  = "left role" // the role is about to return
	fencedOff = "fenced"    // etcd refused the term's write
	started   = "started"   // a handler began
	effect    = "effect"    // its effect is applied: this line is it
	held      = "held"      // the handler waits until it is told to go on
	committed = "committed" // the store answered a finish as written
	refused   = "refused"   // Hooks.Refused; Text: the cause
	session   = "session"   // this process has opened a session
	faulted   = "fault"     // this process is about to do a fault to itself; Text: the fault
	condition = "condition" // Text: not ready, and why; or the owners that it sees
	gossips   = "gossips"   // Text: its address
)

// line is one of the ledger.
type line struct {
	Phase   string `json:"phase"`
	Pid     int    `json:"pid"`
	Replica string `json:"replica"`
	At      int64  `json:"at"`   // nanoseconds of the host's monotonic clock
	Wall    int64  `json:"wall"` // microseconds since 1970
	Term    int64  `json:"term,omitempty"`
	Due     int64  `json:"due,omitempty"` // seconds since 1970
	Fence   int64  `json:"fence,omitempty"`
	Text    string `json:"text,omitempty"`
}

// mono reads the clock that all processes of a host share, and that nobody sets.
func mono() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		panic(err)
	}
	return t.Nano()
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

// write ends the process where it fails: what is not in the ledger must not have happened. A line whose At is 0 is of now.
func (l *ledger) write(n line) {
	n.Pid, n.Replica, n.Wall = os.Getpid(), l.replica, time.Now().UnixMicro()
	if n.At == 0 {
		n.At = mono()
	}
	text, err := json.Marshal(n)
	if err != nil {
		panic(err)
	}
	if _, err := l.file.Write(append(text, '\n')); err != nil {
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
