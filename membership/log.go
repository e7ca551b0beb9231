package membership

import (
	"bytes"
	"cmp"
	"context"
	"log/slog"
	"regexp"
	"sync/atomic"
	"time"
)

// A hostile or misconfigured neighbour makes memberlist complain at each packet. At most logBurst lines go through
// in each logWindow; what was left out is counted.
const (
	logBurst  = 10
	logWindow = time.Minute
)

// pump carries memberlist's log lines to slog. memberlist logs with its locks held, and a log handler may block,
// so Write only queues.
type pump struct {
	logger  *slog.Logger
	lines   chan line    // capacity logBurst; what does not fit is dropped and counted
	ours    chan string  // of refusals, which bound themselves
	dropped atomic.Int64 // since the last line that went through

	who atomic.Pointer[func(node string) string] // a member for people, "" if nobody known; nil: not yet
}

type line struct {
	level slog.Level
	text  string
}

func newPump(l *slog.Logger) *pump {
	return &pump{logger: l, lines: make(chan line, logBurst), ours: make(chan string, 4*refusals)}
}

// Write takes one line in memberlist's form, "[WARN] memberlist: text".
func (p *pump) Write(b []byte) (int, error) {
	level, text, ok := bytes.Cut(bytes.TrimSpace(b), []byte("] "))
	if !ok {
		level, text = nil, level
	}
	text = bytes.TrimPrefix(text, []byte("memberlist: "))
	switch string(level) {
	case "[DEBUG": // a line for each connection: noise
	case "[INFO":
		p.add(slog.LevelDebug, string(text))
	default:
		if !bytes.HasPrefix(text, []byte("ignoring alive message")) { // the gate's counters say why
			p.add(slog.LevelWarn, string(text))
		}
	}
	return len(b), nil
}

// say queues a line of ours, which memberlist's never keep out; it never blocks.
func (p *pump) say(text string) {
	select {
	case p.ours <- text:
	default:
		p.dropped.Add(1)
	}
}

// node is what may be a member's name in memberlist.
var node = regexp.MustCompile(`[A-Za-z0-9_-]{11}`)

// named replaces memberlist's names of members by those that people know.
func (p *pump) named(text string) string {
	who := p.who.Load()
	if who == nil {
		return text
	}
	return node.ReplaceAllStringFunc(text, func(n string) string { return cmp.Or((*who)(n), n) })
}

// add queues a line; it never blocks.
func (p *pump) add(level slog.Level, text string) {
	select {
	case p.lines <- line{level, text}:
	default:
		p.dropped.Add(1)
	}
}

// run logs what is queued until ctx ends.
func (p *pump) run(ctx context.Context) {
	var begun time.Time
	n := 0
	for {
		var l line
		select {
		case <-ctx.Done():
			return
		case text := <-p.ours:
			p.logger.Warn("gossip", "text", text)
			continue
		case l = <-p.lines:
		}
		if !p.logger.Enabled(ctx, l.level) {
			continue
		}
		if now := time.Now(); now.Sub(begun) >= logWindow {
			begun, n = now, 0
		}
		if n++; n > logBurst {
			p.dropped.Add(1)
			continue
		}
		p.logger.Log(ctx, l.level, "gossip", "text", p.named(l.text), "dropped", p.dropped.Swap(0))
	}
}
