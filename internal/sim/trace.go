package sim

import (
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/belfry-go/belfry/internal/sim/oracle"
)

// trace is the history of a world: a hash of all of it, and its text where that is wanted.
type trace struct {
	sum  *xxhash.Digest
	text io.Writer
	buf  []byte
}

func newTrace(text io.Writer) trace { return trace{sum: xxhash.New(), text: text} }

// note adds an event. who is a replica's name, or empty for the world. A pointer is to what it stands for, which need not be boxed.
func (w *World) note(who, what string, a ...any) {
	t := &w.trace
	b := t.begin(w.now, who, what)
	for _, x := range a {
		b = append(b, 0)
		switch x := x.(type) {
		case string:
			b = append(b, x...)
		case *string:
			b = append(b, *x...)
		case int:
			b = binary.LittleEndian.AppendUint64(b, uint64(x))
		case bool:
			b = append(b, bit(x))
		case bits:
			b = append(b, x...)
		case []int:
			for _, n := range x {
				b = binary.LittleEndian.AppendUint64(b, uint64(n))
			}
		case error:
			b = append(b, x.Error()...)
		case nil:
		case int64:
			b = binary.LittleEndian.AppendUint64(b, uint64(x))
		case time.Duration:
			b = binary.LittleEndian.AppendUint64(b, uint64(x))
		case time.Time:
			b = binary.LittleEndian.AppendUint64(b, uint64(x.UnixNano()))
		case *time.Time:
			b = binary.LittleEndian.AppendUint64(b, uint64(x.UnixNano()))
		default:
			b = fmt.Append(b, x)
		}
	}
	t.end(b)
	if t.text != nil {
		fmt.Fprintf(t.text, "%12.6f  %-3s %s", w.now.Seconds(), who, what)
		for _, x := range a {
			fmt.Fprintf(t.text, "  %v", inText(x))
		}
		fmt.Fprintln(t.text)
	}
}

// inText is what an event tells, as its text has it.
func inText(x any) any {
	switch x := x.(type) {
	case time.Time:
		return x.Sub(epoch)
	case *time.Time:
		return x.Sub(epoch)
	case *string:
		return *x
	}
	return x
}

// noteRun adds an event of a run, with numbers and a word on it. Most of a history is of these, so nothing is boxed or put
// into words for the hash.
func (w *World) noteRun(who, what string, id oracle.ID, word string, n ...int64) {
	t := &w.trace
	b := t.begin(w.now, who, what)
	for _, s := range [...]string{id.Job, id.Key, id.Request, word} {
		b = append(append(b, 0), s...)
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(id.Due))
	for _, x := range n {
		b = binary.LittleEndian.AppendUint64(b, uint64(x))
	}
	t.end(b)
	if t.text != nil {
		fmt.Fprintf(t.text, "%12.6f  %-3s %s  %v", w.now.Seconds(), who, what, id)
		for _, x := range n {
			fmt.Fprintf(t.text, "  %d", x)
		}
		fmt.Fprintln(t.text, " ", word)
	}
}

// bits are those of partitions.
type bits []byte

// String has them as they are stored.
func (b bits) String() string { return fmt.Sprintf("%x", []byte(b)) }

func (t *trace) begin(now time.Duration, who, what string) []byte {
	b := binary.LittleEndian.AppendUint64(t.buf[:0], uint64(now))
	return append(append(append(b, who...), 0), what...)
}

func (t *trace) end(b []byte) {
	t.buf = b
	t.sum.Write(b)
}

func bit(b bool) byte {
	if b {
		return 1
	}
	return 0
}

// Digest stands for the whole history so far.
func (w *World) Digest() string { return fmt.Sprintf("%016x", w.trace.sum.Sum64()) }
