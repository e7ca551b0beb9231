package core

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/belfry-go/belfry/idempotency"
)

// The states that a replica announces.
const (
	Serving  = "serving"
	Draining = "draining"
	Unfit    = "unfit"
)

// maxReason is how long a reason may be, in bytes, so that members show all of it; maxCause is the part
// of that which an error's text may take.
const (
	maxReason = 128
	maxCause  = 60
)

// announce tells the others our state where it changed. To serve, a session must have taken our jobs: until
// then there is nothing to tell, or what was told last still holds.
func (c *Core) announce() {
	say := Announce{State: Serving, Store: announced(c.store), Fence: c.witness.of(c.store), RolledBack: c.rolledBack != ""}
	switch {
	case c.draining:
		say.State, say.Reason = Draining, c.stopping
	case c.refused != "":
		say.State, say.Reason = Unfit, c.refused
	case c.foreign != "":
		say.State, say.Reason = Unfit, c.foreign
	case c.rolledBack != "":
		say.State, say.Reason = Unfit, c.rolledBack
	case c.health.unfit != "":
		say.State, say.Reason = Unfit, c.health.unfit
	case c.cfg.Store && c.said.State != Serving && (c.session == nil || !c.session.declared):
		return
	}
	news := say
	news.Fence = c.said.Fence
	if news != c.said {
		c.said = say
		c.emit(say)
	}
}

// enough is how many calls of the store in a row must fail, or succeed, for a
// replica to count as unfit, or fit again.
const enough = 3

type health struct {
	bad, good int
	since     time.Time // the first of the bad ones, by the host's clock
	unfit     string    // reason
}

// hear counts how the store answers. A dead session is an answer.
func (c *Core) hear(call *Call, err error) {
	h := &c.health
	switch {
	case errors.Is(err, context.Canceled): // we gave up, the store is not to blame
	case err == nil || errors.Is(err, idempotency.ErrSessionDead):
		h.bad, h.good = 0, h.good+1
		if h.unfit != "" && h.good >= enough {
			h.unfit = ""
			c.announce()
		}
	default:
		if h.bad == 0 {
			h.since = c.now.Wall
		}
		h.bad, h.good = h.bad+1, 0
		if h.bad >= enough && h.unfit == "" {
			h.unfit = fmt.Sprintf("the store fails since %s: %s; check it and the way to it",
				h.since.UTC().Format("15:04:05Z"), shorten(symptom(call, err), maxCause))
			c.emit(Problem{Err: fmt.Errorf("the store fails, in %s: %w", call.Name, err)})
			c.announce()
		}
	}
}

// symptom says what a call came to.
func symptom(call *Call, err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("%s has no answer in %v", call.Name, call.Within)
	}
	return err.Error()
}

// replaced notes that another store answers than the one that we began with. That one stays ours, and is what
// we announce, until somebody restarts the fleet.
func (c *Core) replaced(by string) {
	const most = 26 // of an identity; two of them and the advice have to fit
	c.foreign = fmt.Sprintf("the store was replaced: it is %s, not %s; restart the fleet if that is meant", shorten(by, most), shorten(c.store, most))
	c.announce()
}

// refuse ends the replica: the store will never take it as it is. The others see why.
func (c *Core) refuse(err error) {
	c.stopped = true
	const head = "refused by the store: "
	why := strings.TrimPrefix(err.Error(), idempotency.ErrRefused.Error()+": ")
	c.refused = head + shorten(why, maxReason-len(head))
	c.emit(Failed{Err: err})
	c.announce()
}

// shorten makes one line of a text, of at most so many bytes; a longer one loses its middle, since an error
// that wraps others says first what was done, and last what was wrong.
func shorten(text string, most int) string {
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) <= most {
		return text
	}
	keep := most - len("…")
	head, tail := keep/2, len(text)-(keep-keep/2)
	for !utf8.RuneStart(text[head]) {
		head--
	}
	for tail < len(text) && !utf8.RuneStart(text[tail]) {
		tail++
	}
	return text[:head] + "…" + text[tail:]
}
