package sim

import (
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"
)

// trace is the history of a world: a hash of all of it, and its text where that is wanted.
type trace struct {
	sum  *xxhash.Digest
	text io.Writer
	buf  []byte
}

func newTrace(text io.Writer) trace { return trace{sum: xxhash.New(), text: text} }

// note adds an event. who is a replica's name, or empty for the world.
func (w *World) note(who, what string, a ...any) {
	t := &w.trace
	b := binary.LittleEndian.AppendUint64(t.buf[:0], uint64(w.now))
	b = append(append(append(b, who...), 0), what...)
	for _, x := range a {
		b = append(b, 0)
		switch x := x.(type) {
		case string:
			b = append(b, x...)
		case int:
			b = binary.LittleEndian.AppendUint64(b, uint64(x))
		case int64:
			b = binary.LittleEndian.AppendUint64(b, uint64(x))
		case time.Duration:
			b = binary.LittleEndian.AppendUint64(b, uint64(x))
		case time.Time:
			b = binary.LittleEndian.AppendUint64(b, uint64(x.UnixNano()))
		default:
			b = fmt.Append(b, x)
		}
	}
	t.buf = b
	t.sum.Write(b)
	if t.text != nil {
		fmt.Fprintf(t.text, "%12.6f  %-3s %s", w.now.Seconds(), who, what)
		for _, x := range a {
			if at, ok := x.(time.Time); ok {
				x = at.Sub(epoch).String()
			}
			fmt.Fprintf(t.text, "  %v", x)
		}
		fmt.Fprintln(t.text)
	}
}

// Digest stands for the whole history so far.
func (w *World) Digest() string { return fmt.Sprintf("%016x", w.trace.sum.Sum64()) }
