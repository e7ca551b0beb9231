// Package keyset reads the keys of a job page by page, with a query over a table of the application.
//
// Nothing of what a query may get wrong loses a key in silence. Keys that do not ascend by their bytes, a key that
// comes twice, a page that does not begin where the last one ended: each ends the stream with an error that says how to
// mend it. One row that is wrong, such as a key beside the slot of another, keeps no other key from running: the stream
// goes on, and ends with an error.
package keyset

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
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

	// Bytewise says, as the end of an error, how a query of this database compares and orders by bytes.
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
		if err != nil {
			return err
		}
		if st.ended {
			return st.spoilt()
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
	began  string // what the page before came after
	last   string // the last key seen
	ended  bool

	wrong int   // rows
	first error // what is wrong with the first of them
}

// spoilt is how a stream ends that had wrong rows.
func (s *stream) spoilt() error {
	if s.wrong == 0 {
		return nil
	}
	return fmt.Errorf("%d rows are wrong, and only the other keys run: %w", s.wrong, s.first)
}

// noKey stands for a wrong row. The scheduler leaves it out, and for it counts the pass as unfinished; after an error
// alone it would go on behind the last key, and not see the row again.
const noKey = ""

// next reads a page and checks it.
//
// A full page is followed by one that begins with its last key again. A collation that takes two keys for one would
// pass over the second of them where a page ends between the two; but then it passes over the repeated one too, and
// that shows. What follows a page that is not full comes after its last key, and the stream ends with an empty page,
// not with a short one: the query may have a limit of its own.
func (s *stream) next(ctx context.Context) ([]string, error) {
	found, err := s.page(ctx, s.after)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 && s.repeat == "" {
		s.ended = true
		return nil, nil
	}
	full, from := len(found) == pageSize, s.after
	if s.repeat != "" {
		if len(found) > 0 && found[0] != nil && *found[0] == s.repeat {
			found = found[1:]
		} else if err := s.missed(ctx); err != nil {
			return nil, err
		}
	}
	keys := make([]string, 0, len(found))
	before := s.last
	for _, k := range found {
		key, err := s.take(k)
		if err != nil {
			return nil, err
		}
		if k != nil {
			before, s.last = s.last, *k
		}
		keys = append(keys, key)
	}
	s.after, s.repeat, s.began = s.last, "", from
	if full {
		s.after, s.repeat = before, s.last
	}
	return keys, nil
}

// missed finds out why a page does not begin with the last key of the page before: that is gone, or it is there and
// passed over.
func (s *stream) missed(ctx context.Context) error {
	found, err := s.page(ctx, s.began)
	if err == nil && slices.ContainsFunc(found, func(k *string) bool { return k != nil && *k == s.repeat }) {
		err = fmt.Errorf("the keys %q and %q are one for the query, which would pass over the second; %s", s.after, s.repeat, s.Bytewise)
	}
	return err
}

func (s *stream) page(ctx context.Context, after string) ([]*string, error) {
	brief, cancel := context.WithTimeout(ctx, pageWithin)
	defer cancel()
	found, err := s.read(brief, after, pageSize)
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

// take checks one row. An error ends the stream.
func (s *stream) take(row *string) (string, error) {
	var wrong error
	switch {
	case row == nil:
		wrong = errors.New("a key is NULL; add \"is not null\" to the query")
	case *row == s.last && s.last != "":
		return "", fmt.Errorf("the key %q comes twice; let the query select distinct keys, and only those greater than its second parameter", *row)
	case *row < s.last:
		return "", fmt.Errorf("the key %q comes after %q; let the query select only keys greater than its second parameter, in the order of their bytes, for another would lose keys: %s", *row, s.last, s.Bytewise)
	case *row == "":
		wrong = errors.New("a key is empty; leave it out in the query")
	case len(*row) > maxKey:
		wrong = fmt.Errorf("the key %q… has %d bytes; at most %d", (*row)[:40], len(*row), maxKey)
	case !s.r.Contains(*row):
		wrong = fmt.Errorf("the key %q stands beside the slot of another, its own is %d; write ring.Slot(key) into each row, and let the query select by its first parameter", *row, ring.Slot(*row))
	}
	if wrong == nil {
		return *row, nil
	}
	if s.wrong++; s.first == nil {
		s.first = wrong
	}
	return noKey, nil
}
