package jobs

import (
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/cespare/xxhash/v2"
)

// slots is the size of the space keys hash into; every count of partitions
// divides it, so the count can change without rehashing what was stored.
const slots = 65536

// KeySource yields the keys of a job, partition by partition. Its laws:
//
//   - Keys yields every key of r that exists when the stream begins. Keys that
//     r.Contains refuses are ignored by the caller, so filtering is a matter of
//     cost, not of meaning; a key yielded twice is claimed once.
//   - Where r.After is set, a source that can order yields the keys after it in
//     ascending order of their bytes. Others may ignore After: claims settle the
//     overlap.
//   - An error ends the stream and leaves the pass unfinished; it is tried again.
//   - To end early without an error is a bug of the source: the missing keys
//     count as not existing.
//   - It reads the primary: a lagging copy may lack a key.
//
// Keys is called from several goroutines at once, each with a range of its own;
// it may block and should stop when ctx ends, with ctx's error.
type KeySource interface {
	Keys(ctx context.Context, r KeyRange) iter.Seq2[string, error]
}

// KeyRange is what one stream is asked for: the keys of some partitions, for one
// due. It is a value; do not change the slice inside.
type KeyRange struct {
	// Due is the due the keys are wanted for.
	Due time.Time
	// Partitions are wanted, in ascending order, each in [0, Count).
	Partitions []int
	// Count is how many partitions there are: a power of two, at most 65536.
	Count int
	// After is the last key already claimed; "" at the beginning.
	After string
}

// Contains reports whether the key's partition, xxhash64(key) mod 65536 mod
// Count, is one of Partitions. It does not look at After. It costs one hash and
// a binary search, and allocates nothing; a Count below 1 contains no key.
func (r KeyRange) Contains(key string) bool {
	if r.Count < 1 {
		return false
	}
	_, ok := slices.BinarySearch(r.Partitions, int(xxhash.Sum64String(key)%slots)%r.Count)
	return ok
}

// KeyFunc is a function as a KeySource.
type KeyFunc func(ctx context.Context, r KeyRange) iter.Seq2[string, error]

// Keys calls f.
func (f KeyFunc) Keys(ctx context.Context, r KeyRange) iter.Seq2[string, error] { return f(ctx, r) }

type keyList []string

// KeyList is a fixed set of keys, in any order; doubles count once. The slice is
// copied. It never blocks.
func KeyList(keys ...string) KeySource {
	l := slices.Clone(keys)
	slices.Sort(l)
	return keyList(slices.Compact(l))
}

// Keys yields the keys of r after r.After, ascending.
func (l keyList) Keys(_ context.Context, r KeyRange) iter.Seq2[string, error] {
	from, found := slices.BinarySearch(l, r.After)
	if found && r.After != "" {
		from++
	}
	return func(yield func(string, error) bool) {
		for _, key := range l[from:] {
			if r.Contains(key) && !yield(key, nil) {
				return
			}
		}
	}
}

type allKeys func(ctx context.Context) iter.Seq2[string, error]

// AllKeys makes a source of a function that knows nothing of partitions and
// yields every key, in any order: each replica reads all and keeps its own. Good
// for some ten thousand keys; beyond that let the query filter by slot.
func AllKeys(f func(ctx context.Context) iter.Seq2[string, error]) KeySource {
	return allKeys(f)
}

// Keys yields the keys of r and passes an error on; it ignores r.After.
func (f allKeys) Keys(ctx context.Context, r KeyRange) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for key, err := range f(ctx) {
			if err != nil {
				yield("", err)
				return
			}
			if r.Contains(key) && !yield(key, nil) {
				return
			}
		}
	}
}

// checkSource finds what is wrong with a source before it is ever asked: a nil
// function inside, or a listed key that no store would take.
func checkSource(s KeySource) error {
	var errs []error
	switch s := s.(type) {
	case KeyFunc:
		if s == nil {
			errs = append(errs, errors.New("keys: nil KeyFunc; leave Keys nil for a job without keys"))
		}
	case allKeys:
		if s == nil {
			errs = append(errs, errors.New("keys: AllKeys of a nil function; give it one that yields the keys"))
		}
	case keyList:
		for _, key := range s {
			if err := checkKey(key); err != nil {
				errs = append(errs, err)
			}
		}
	}
	return errors.Join(errs...)
}
