// Package keyset reads the keys of a job page by page, with a query over a table of the application.
//
// Nothing of what a query may get wrong loses a key in silence. Keys that do not ascend by their bytes, a key that comes
// twice, one whose stored slot is not its own, a page that does not begin where the last one ended: each is an error that says how to mend it.
package keyset

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

const (
	// pageSize is how many keys one query returns.
	pageSize = 1000

	// pageWithin is how long one query may take: the scheduler waits for a source for minutes, so that one hung
	// query can end and be told of before that.
	pageWithin = time.Minute

	// maxKey is the longest key that a store takes, in bytes.
	maxKey = 255

	slots = 65536
)

// Read returns the next keys after one, limit of them at most, in the order of their bytes; nil stands for NULL.
type Read func(ctx context.Context, after string, limit int) ([]*string, error)

// Source is a KeySource. All fields are set; it is safe for concurrent use if what Over returns is.
type Source struct {
	// Driver begins the errors.
	Driver string

	// Bytewise says how a query of this database compares and orders by bytes.
	Bytewise string

	// Over begins a stream of the keys that are stored with one of the slots, which ascend.
	Over func(slots []int32) (Read, error)
}

// Keys yields the keys of r after r.After, ascending. No query is open while the caller works on a key.
func (s *Source) Keys(ctx context.Context, r jobs.KeyRange) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := s.stream(ctx, r, func(key string) bool { return yield(key, nil) }); err != nil {
			yield("", fmt.Errorf("%s: Keys: %w", s.Driver, err))
		}
	}
}

func (s *Source) stream(ctx context.Context, r jobs.KeyRange, yield func(string) bool) error {
	wanted := slotsOf(r)
	if len(wanted) == 0 {
		return nil
	}
	read, err := s.Over(wanted)
	if err != nil {
		return err
	}
	st := stream{Source: s, r: r, read: read, after: r.After, last: r.After}
	for {
		keys, err := st.next(ctx)
		if err != nil || st.ended {
			return err
		}
		for _, key := range keys {
			if !yield(key) {
				return nil
			}
		}
	}
}

// slotsOf are all slots of the wanted partitions.
func slotsOf(r jobs.KeyRange) []int32 {
	if r.Count < 1 || r.Count > slots {
		return nil
	}
	list := make([]int32, 0, len(r.Partitions)*(slots/r.Count))
	for base := 0; base < slots; base += r.Count {
		for _, p := range r.Partitions {
			list = append(list, int32(base+p))
		}
	}
	return list
}

// stream is one reading of a range.
type stream struct {
	*Source
	r    jobs.KeyRange
	read Read

	after  string // what the next page comes after
	repeat string // the key that it begins with, seen already; "": none
	last   string // the last key seen
	ended  bool
}

// next reads a page and checks it.
//
// A full page is followed by one that begins with its last key again. A collation that takes two keys for one would
// pass over the second of them where a page ends between the two; but then it passes over the repeated one too, and that shows. What follows
// a page that is not full comes after its last key, and the stream ends with an empty page, not with a short one:
// the query may have a limit of its own.
func (s *stream) next(ctx context.Context) ([]string, error) {
	found, err := s.page(ctx)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 && s.repeat == "" {
		s.ended = true
		return nil, nil
	}
	full := len(found) == pageSize
	if s.repeat != "" {
		if len(found) == 0 || found[0] == nil || *found[0] != s.repeat {
			return nil, fmt.Errorf("a page does not begin with %q, the last key of the page before: it was deleted meanwhile, or the query takes two keys for one; %s", s.repeat, s.Bytewise)
		}
		found = found[1:]
	}
	keys := make([]string, 0, len(found))
	before := s.last
	for _, k := range found {
		if err := s.check(k); err != nil {
			return nil, err
		}
		before, s.last = s.last, *k
		keys = append(keys, *k)
	}
	s.after, s.repeat = s.last, ""
	if full && len(keys) > 0 {
		s.after, s.repeat = before, s.last
	}
	return keys, nil
}

func (s *stream) page(ctx context.Context) ([]*string, error) {
	brief, cancel := context.WithTimeout(ctx, pageWithin)
	defer cancel()
	found, err := s.read(brief, s.after, pageSize)
	switch {
	case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("a page of the query that lists the job's keys took longer than %v; give it an index: %w", pageWithin, err)
	case err != nil:
		return nil, fmt.Errorf("the query that lists the job's keys failed: %w", err)
	case len(found) > pageSize:
		return nil, fmt.Errorf("the query that lists the job's keys returned more than %d rows; end it with a limit that is its third parameter", pageSize)
	}
	return found, nil
}

// check demands of a key what the store and the scheduler do, and that it is of the range.
func (s *stream) check(key *string) error {
	switch {
	case key == nil:
		return errors.New("a key is NULL; add \"is not null\" to the query")
	case *key == "":
		return errors.New("a key is empty; leave it out in the query")
	case len(*key) > maxKey:
		return fmt.Errorf("the key %q… has %d bytes; at most %d", (*key)[:40], len(*key), maxKey)
	case *key == s.last:
		return fmt.Errorf("the key %q comes twice; let the query select distinct keys, and only those that are greater than its second parameter", *key)
	case *key < s.last:
		return fmt.Errorf("the key %q comes after %q, which is not the order of their bytes: another order would lose keys; %s", *key, s.last, s.Bytewise)
	case !s.r.Contains(*key):
		return fmt.Errorf("the key %q is stored with the slot of another: its own is %d; write ring.Slot(key) into the column of each row, and let the query select by its first parameter", *key, ring.Slot(*key))
	}
	return nil
}
