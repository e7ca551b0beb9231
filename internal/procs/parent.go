package procs

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// ErrReleased is the cause of the context of Attach when the parent let go or died.
var ErrReleased = errors.New("procs: the parent let go")

// Parent is the process that started this one, seen by the child. Its methods are safe for concurrent use.
type Parent struct {
	ctx  context.Context
	docs chan json.RawMessage // unbuffered; the reader closes it at the end of input

	mu  sync.Mutex
	out *json.Encoder
}

// Attach makes a Parent of this process's standard input and output. The returned context ends with ctx, and with
// the input. Its reader lives as long as the input does. The parent should send no more than is received: a document
// that nobody takes hides the end of the input.
func Attach(ctx context.Context, in io.Reader, out io.Writer) (context.Context, *Parent) {
	ctx, cancel := context.WithCancelCause(ctx)
	p := &Parent{ctx: ctx, docs: make(chan json.RawMessage), out: json.NewEncoder(out)}
	go p.read(json.NewDecoder(in), cancel)
	return ctx, p
}

func (p *Parent) read(in *json.Decoder, cancel context.CancelCauseFunc) {
	defer close(p.docs)
	for {
		var doc json.RawMessage
		if err := in.Decode(&doc); err != nil {
			cancel(ErrReleased)
			return
		}
		select {
		case p.docs <- doc:
		case <-p.ctx.Done():
		}
	}
}

// Receive waits for the parent's next document and reads it into v. It fails with the cause of Attach's context
// when that ends first.
func (p *Parent) Receive(v any) error {
	select {
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	case doc, ok := <-p.docs:
		if !ok {
			return ErrReleased
		}
		if err := json.Unmarshal(doc, v); err != nil {
			return fmt.Errorf("procs: receive from the parent: %w", err)
		}
		return nil
	}
}

// Report sends one document to the parent. It blocks while the parent does not read.
func (p *Parent) Report(v any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.out.Encode(v); err != nil {
		return fmt.Errorf("procs: report: %w", err)
	}
	return nil
}
