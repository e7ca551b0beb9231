package sim

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/belfry-go/belfry/internal/core"
	"github.com/belfry-go/belfry/jobs"
)

// Source is where the keys of a job come from: a table that all replicas read,
// some of them perhaps from a copy that lags.
type Source struct {
	Unordered bool // yields in no order and takes no cursor
	Whole     bool // yields the keys of all partitions, whatever it is asked for
	Batch     int  // yields at most so many at once; 0: what was asked for

	// Flow decides how a pull goes on; false leaves it to chance. Nil: chance alone.
	Flow func(r *Replica, due time.Duration, yielded int) (Flow, bool)

	w    *World
	job  string
	keys map[string]span // those that went stay, with their end
	list []string        // the same, sorted
	read *Replica        // who reads now
}

// span is when a key exists.
type span struct{ from, to time.Duration }

const forever = time.Duration(1<<63 - 1)

// maxLag is how far behind a copy may be.
const maxLag = 2 * time.Second

// Flow is how a pull goes on.
type Flow struct {
	Takes time.Duration
	Err   error // ends the stream
	Hang  bool  // no answer ever comes
}

var errSource = errors.New("source: connection reset")

// NewSource returns one with n keys, k000 and on.
func NewSource(n int) *Source {
	s := &Source{keys: map[string]span{}}
	for i := range n {
		s.keys[keyName(i)] = span{-maxLag, forever}
	}
	return s
}

func keyName(i int) string { return fmt.Sprintf("k%03d", i) }

func (s *Source) begin(w *World, job string) {
	s.w, s.job = w, job
	for _, key := range s.names() {
		w.Oracle.Present(job, key, true)
	}
}

// Add makes a key exist from now on. A copy that lags does not have it yet, so
// it is demanded from when all have it; until then it may run.
func (s *Source) Add(key string) {
	if s.keys[key].to == forever {
		return
	}
	s.keys[key] = span{s.w.now, forever}
	s.w.note("", "key appears", s.job, key)
	s.w.Oracle.Copied(s.job, key, true)
	s.w.After(maxLag, func() {
		if s.keys[key].to == forever {
			s.w.Oracle.Present(s.job, key, true)
		}
	})
}

// Remove makes a key exist no longer.
func (s *Source) Remove(key string) {
	if x, ok := s.keys[key]; ok && x.to == forever {
		s.keys[key] = span{x.from, s.w.now}
		s.w.note("", "key goes", s.job, key)
		s.w.Oracle.Present(s.job, key, false)
		s.w.After(maxLag, func() {
			if s.keys[key].to <= s.w.now-maxLag {
				s.w.Oracle.Copied(s.job, key, false)
			}
		})
	}
}

// names are all keys that there ever were, sorted; whoever reads them changes nothing.
func (s *Source) names() []string {
	if len(s.list) != len(s.keys) {
		s.list = slices.Sorted(maps.Keys(s.keys))
	}
	return s.list
}

// Keys yields the keys of a range that exist now for the replica that reads.
func (s *Source) Keys(_ context.Context, r jobs.KeyRange) iter.Seq2[string, error] {
	names := s.names()
	at := s.w.now - s.read.lag
	if s.Unordered {
		r.After, names = "", slices.Clone(names)
		s.w.rand.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	}
	return func(yield func(string, error) bool) {
		for _, key := range names {
			x := s.keys[key]
			if x.from <= at && at < x.to && key > r.After && (s.Whole || r.Contains(key)) && !yield(key, nil) {
				return
			}
		}
	}
}

// stream is one that a replica opened.
type stream struct {
	id      int64
	source  *Source
	asked   jobs.KeyRange
	left    []string
	yielded int
}

func (r *Replica) openStream(a core.OpenStream) {
	s := &stream{id: a.Stream, source: r.w.job(a.Job.Name).Source, asked: a.Range}
	s.source.read = r
	for key := range a.Job.Keys.Keys(context.Background(), a.Range) {
		s.left = append(s.left, key)
	}
	r.streams[s.id] = s
	r.w.note(r.Name, "stream opens", s.id, a.Job.Name, a.Range.Due, a.Range.After, a.Range.Partitions)
}

func (r *Replica) pull(a core.Pull) {
	s := r.streams[a.Stream]
	f := r.flow(s)
	if f.Hang {
		return
	}
	r.after(f.Takes, func() {
		if r.streams[s.id] != s {
			return // closed meanwhile
		}
		n := min(len(s.left), a.Max)
		if s.source.Batch > 0 {
			n = min(n, s.source.Batch)
		}
		if f.Err != nil {
			n = r.w.rand.IntN(n + 1)
		}
		e := core.Streamed{Stream: s.id, Keys: slices.Clone(s.left[:n]), Err: f.Err}
		s.left, s.yielded = s.left[n:], s.yielded+n
		e.End = f.Err != nil || len(s.left) == 0
		if e.End {
			delete(r.streams, s.id)
		}
		r.w.note(r.Name, "streamed", s.id, n, e.End, e.Err)
		r.tell(e)
	})
}

func (r *Replica) flow(s *stream) Flow {
	if s.source.Flow != nil {
		if f, ok := s.source.Flow(r, s.asked.Due.Sub(epoch), s.yielded); ok {
			return f
		}
	}
	w := r.w
	f := Flow{Takes: w.between(time.Millisecond, 5*time.Millisecond)}
	if w.fault(SlowSource, .3) {
		f.Takes = w.between(50*time.Millisecond, 2*time.Second)
	}
	if w.fault(FailingSource, .25) {
		f.Err = errSource
	}
	return f
}
