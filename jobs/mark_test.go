package jobs

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"
)

// The marks of errors are found below any wrapping, also below each other, and hide nothing of what they mark.
func TestMarks(t *testing.T) {
	t.Parallel()
	cause := &fs.PathError{Op: "open", Path: "ledger", Err: fs.ErrNotExist}
	for name, err := range map[string]error{
		"permanent":                  Permanent(cause),
		"retry after":                RetryAfter(time.Minute, cause),
		"wrapped":                    fmt.Errorf("charge: %w", RetryAfter(time.Minute, cause)),
		"joined":                     errors.Join(errors.New("first"), Permanent(cause)),
		"permanent and retry after":  Permanent(RetryAfter(time.Minute, cause)),
		"retry after, and permanent": RetryAfter(time.Minute, fmt.Errorf("charge: %w", Permanent(cause))),
	} {
		var found *fs.PathError
		if !errors.Is(err, fs.ErrNotExist) || !errors.As(err, &found) || found != cause {
			t.Errorf("%s hides its cause: %v", name, err)
		}
	}
	both := RetryAfter(time.Minute, Permanent(cause))
	if d, ok := RetryDelay(both); !ok || d != time.Minute || !IsPermanent(both) || both.Error() != cause.Error() {
		t.Errorf("%v, %t, permanent %t: %v", d, ok, IsPermanent(both), both)
	}
}

func TestRetryAfter(t *testing.T) {
	t.Parallel()
	busy := errors.New("busy")
	for _, c := range []struct {
		err  error
		want time.Duration
		ok   bool
	}{
		{nil, 0, false},
		{busy, 0, false},
		{Permanent(busy), 0, false},
		{RetryAfter(time.Hour, nil), 0, false},
		{RetryAfter(time.Hour, busy), time.Hour, true},
		{RetryAfter(-time.Hour, busy), 0, true},
		{RetryAfter(0, busy), 0, true},
		{fmt.Errorf("provider: %w", RetryAfter(time.Hour, busy)), time.Hour, true},
		{RetryAfter(time.Second, RetryAfter(time.Hour, busy)), time.Second, true}, // who wraps knows more
	} {
		if d, ok := RetryDelay(c.err); d != c.want || ok != c.ok {
			t.Errorf("%v: %v, %t; want %v, %t", c.err, d, ok, c.want, c.ok)
		}
	}
	if err := RetryAfter(time.Hour, nil); err != nil {
		t.Errorf("of nil: %v", err)
	}
	if text := RetryAfter(time.Hour, busy).Error(); text != "busy" {
		t.Errorf("the text is %q", text)
	}
}

func TestSkip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		reason string
		ok     bool
	}{
		{nil, "", false},
		{errors.New("skipped: no"), "", false},
		{Permanent(errors.New("gone")), "", false},
		{Skip("the customer has left"), "the customer has left", true},
		{Skip(""), "", true},
		{fmt.Errorf("renewals: %w", Skip("left")), "left", true},
		{Permanent(Skip("left")), "left", true},
	} {
		if reason, ok := SkipReason(c.err); reason != c.reason || ok != c.ok {
			t.Errorf("%v: %q, %t; want %q, %t", c.err, reason, ok, c.reason, c.ok)
		}
	}
	if text := Skip("left").Error(); text != "skipped: left" {
		t.Errorf("the text is %q", text)
	}
}

// Whoever looks at why a handler's context ended can tell the causes apart.
func TestCausesDiffer(t *testing.T) {
	t.Parallel()
	causes := []error{ErrTimeout, ErrStalled, ErrCanceled, ErrSessionLost, ErrDraining, ErrOvertaken}
	for i, a := range causes {
		for k, b := range causes {
			if errors.Is(a, b) != (i == k) || (a.Error() == b.Error()) != (i == k) {
				t.Errorf("%v and %v", a, b)
			}
		}
	}
}
