package keyset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

// table is what a query reads.
type table struct {
	rows  []row
	less  func(a, b string) bool // the collation; nil: of bytes
	limit int                    // of the query's own; 0: none
	at    func(page int)         // called before each page
	reads int
}

type row struct {
	key  string
	slot int // -1: the key's own
}

func (t *table) add(keys ...string) *table {
	for _, k := range keys {
		t.rows = append(t.rows, row{k, -1})
	}
	return t
}

func (t *table) source() *Source {
	less := t.less
	if less == nil {
		less = func(a, b string) bool { return a < b }
	}
	return &Source{Driver: "test", Bytewise: "order by bytes", Over: func(wanted []int32) (Read, error) {
		return func(_ context.Context, after string, limit int) (keys []*string, err error) {
			if t.reads++; t.at != nil {
				t.at(t.reads)
			}
			sort.SliceStable(t.rows, func(i, j int) bool { return less(t.rows[i].key, t.rows[j].key) })
			if t.limit > 0 {
				limit = t.limit
			}
			for _, r := range t.rows {
				slot := r.slot
				if slot < 0 {
					slot = ring.Slot(r.key)
				}
				if _, mine := slices.BinarySearch(wanted, int32(slot)); mine && less(after, r.key) && len(keys) < limit {
					keys = append(keys, &r.key)
				}
			}
			return keys, nil
		}, nil
	}}
}

// all is the range of every key.
func all() jobs.KeyRange { return jobs.KeyRange{Partitions: []int{0, 1, 2, 3, 4, 5, 6, 7}, Count: 8} }

func drain(s jobs.KeySource, r jobs.KeyRange) (keys []string, err error) {
	for key, e := range s.Keys(context.Background(), r) {
		if e != nil {
			return keys, e
		}
		keys = append(keys, key)
	}
	return keys, nil
}

func numbered(n int) []string {
	keys := make([]string, n)
	for i := range keys {
		keys[i] = fmt.Sprintf("k%05d", i)
	}
	return keys
}

func TestEveryKeyOnceInOrder(t *testing.T) {
	t.Parallel()
	for _, n := range []int{0, 1, 2, pageSize - 1, pageSize, pageSize + 1, 2*pageSize - 1, 2 * pageSize, 3*pageSize + 7} {
		for _, own := range []int{0, 1, 2, pageSize - 1} {
			if own > 0 && own < 3 && n > 10 {
				continue // a query for each key or two
			}
			tab := (&table{limit: own}).add(numbered(n)...)
			got, err := drain(tab.source(), all())
			if err != nil || !slices.Equal(got, numbered(n)) {
				t.Errorf("%d keys, the query's own limit %d: %d keys in %d pages, %v", n, own, len(got), tab.reads, err)
			}
		}
	}
}

// The partition of a key is its slot mod P, whatever P is: nothing that is stored changes with it.
func TestPartitionsMayChange(t *testing.T) {
	t.Parallel()
	tab := (&table{}).add(numbered(3000)...)
	for _, count := range []int{1, 8, 4096, 65536} {
		var got []string
		for part := range 3 { // three replicas
			r := jobs.KeyRange{Count: count}
			for p := part; p < count; p += 3 {
				r.Partitions = append(r.Partitions, p)
			}
			keys, err := drain(tab.source(), r)
			if err != nil {
				t.Fatalf("P %d: %v", count, err)
			}
			got = append(got, keys...)
		}
		if slices.Sort(got); !slices.Equal(got, numbered(3000)) {
			t.Errorf("P %d: three replicas read %d keys, want each of 3000 once", count, len(got))
		}
	}
}

func TestResumesAfterAKey(t *testing.T) {
	t.Parallel()
	keys := numbered(2500)
	tab := (&table{}).add(keys...)
	for _, at := range []int{0, 998, 999, 1000, 2498, 2499} {
		r := all()
		r.After = keys[at]
		if got, err := drain(tab.source(), r); err != nil || !slices.Equal(got, keys[at+1:]) {
			t.Errorf("after %s: %d keys, %v; want %d", keys[at], len(got), err, len(keys)-at-1)
		}
	}
}

// Keys that come and go between two pages do not end the stream early, and none that stays is lost.
func TestTableChangesMeanwhile(t *testing.T) {
	t.Parallel()
	tab := (&table{}).add(numbered(2500)...)
	tab.at = func(page int) {
		if page == 2 {
			tab.rows = slices.DeleteFunc(tab.rows, func(r row) bool { return r.key == "k00999" || r.key == "k01500" })
			tab.add("k00500x", "k02000x")
		}
	}
	got, err := drain(tab.source(), all())
	if err != nil || len(got) != 2500 || tab.reads != 5 || !slices.Contains(got, "k02000x") {
		t.Errorf("%d keys, %v", len(got), err)
	}
}

func folded(a, b string) bool { return strings.ToLower(a) < strings.ToLower(b) }

// padded takes "a" and "a " for one, as most collations of MySQL do.
func padded(a, b string) bool { return strings.TrimRight(a, " ") < strings.TrimRight(b, " ") }

// What would lose keys is an error that says how to mend the query, wherever the pages end.
func TestWrongQueries(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		table table
		keys  []string
		want  string
	}{
		"order without case":         {table{less: folded}, []string{"a", "B", "c"}, `"B" comes after "a"`},
		"keys that differ by a case": {table{less: folded}, []string{"a", "A"}, `in the order of their bytes`},
		"no lower bound": {table{less: func(a, b string) bool { return a != "" && a < b || b != "" }},
			[]string{"a"}, `comes twice`},
		"a key twice":  {table{}, []string{"a", "b", "b"}, `"b" comes twice`},
		"no limit":     {table{limit: 1 << 20}, numbered(pageSize + 1), "limit"},
		"an empty key": {table{less: func(a, b string) bool { return a != b && a < b || a == "" && b == "" }}, []string{""}, "empty"},
		"a long key":   {table{}, []string{strings.Repeat("x", 256)}, "256 bytes"},
	} {
		c.table.add(c.keys...)
		if name == "an empty key" {
			c.table.limit, c.table.at = 0, func(page int) {
				if page == 2 {
					c.table.rows = nil
				}
			}
		}
		if _, err := drain(c.table.source(), all()); err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "test: Keys: ") {
			t.Errorf("%s: %v; want %q", name, err, c.want)
		}
	}
	// The two keys that the collation takes for one, at each place of a page.
	for before := pageSize - 4; before < pageSize+2; before++ {
		tab := &table{less: padded}
		for i := range before {
			tab.add(fmt.Sprintf("a%05d", i))
		}
		tab.add("b", "b ").add("c")
		got, err := drain(tab.source(), all())
		if err == nil && len(got) != before+3 {
			t.Fatalf("%d keys before: one of %d is lost in silence", before, before+3)
		}
		if before == pageSize-2 && (err == nil || !strings.Contains(err.Error(), "order by bytes")) {
			t.Errorf("a page comes after the first of the two: %v", err)
		}
	}
}

// A row with the slot of another key is read by a replica whose key it is not, and its owner never sees it. All others run.
func TestWrongSlot(t *testing.T) {
	t.Parallel()
	tab := (&table{}).add(numbered(1500)...)
	tab.rows[700].slot = ring.Slot(tab.rows[700].key) ^ 1
	var got []string
	failed := 0
	for p := range 8 {
		keys, err := drain(tab.source(), jobs.KeyRange{Partitions: []int{p}, Count: 8})
		if err != nil {
			failed++
			if !strings.Contains(err.Error(), `1 rows are wrong`) || !strings.Contains(err.Error(), `"k00700"`) {
				t.Errorf("%v", err)
			}
		}
		got = append(got, keys...)
	}
	empty := slices.Index(got, "")
	if failed != 1 || len(got) != 1500 || empty < 0 || slices.Contains(got, "k00700") {
		t.Errorf("%d replicas failed, %d keys; want 1, and all but one key with an empty one for it", failed, len(got))
	}
}

func TestNull(t *testing.T) {
	t.Parallel()
	page := 0
	s := &Source{Driver: "test", Over: func([]int32) (Read, error) {
		return func(context.Context, string, int) ([]*string, error) {
			a := "a"
			if page++; page == 1 {
				return []*string{nil, &a}, nil
			}
			return nil, nil
		}, nil
	}}
	if got, err := drain(s, all()); err == nil || !strings.Contains(err.Error(), "NULL") || !slices.Equal(got, []string{"", "a"}) {
		t.Errorf("%q, %v", got, err)
	}
}

// A query that fails or hangs ends the stream with an error; the context ends it with its own.
func TestFailingQuery(t *testing.T) {
	t.Parallel()
	down := errors.New("down")
	of := func(read Read, err error) *Source {
		return &Source{Driver: "test", Over: func([]int32) (Read, error) { return read, err }}
	}
	if _, err := drain(of(nil, down), all()); !errors.Is(err, down) {
		t.Errorf("%v", err)
	}
	if _, err := drain(of(func(context.Context, string, int) ([]*string, error) { return nil, down }, nil), all()); !errors.Is(err, down) || !strings.Contains(err.Error(), "lists the job's keys") {
		t.Errorf("%v", err)
	}
	hangs := of(func(ctx context.Context, _ string, _ int) ([]*string, error) { <-ctx.Done(); return nil, ctx.Err() }, nil)
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if _, err := drain(hangs, all()); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "index") || time.Since(began) != pageWithin {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
	if _, err := drain(of(nil, down), jobs.KeyRange{Count: 8}); err != nil {
		t.Errorf("no partition is wanted, and a query is made: %v", err)
	}
}
