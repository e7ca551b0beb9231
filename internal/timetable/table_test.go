package timetable

import (
	"cmp"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// model is a Table by sorting.
type model struct {
	set  []waiting
	out  []ID // popped
	seq  int
	once map[ID]bool // every ID there ever was
	most int         // entries at once
}

type waiting struct {
	Due
	seq int
}

func (m *model) put(id ID, at int64) {
	m.take(id)
	m.seq++
	m.set = append(m.set, waiting{Due{at, id}, m.seq})
	slices.SortFunc(m.set, func(a, b waiting) int { return cmp.Or(cmp.Compare(a.At, b.At), cmp.Compare(a.seq, b.seq)) })
}

func (m *model) take(id ID) {
	m.set = slices.DeleteFunc(m.set, func(w waiting) bool { return w.ID == id })
	m.out = slices.DeleteFunc(m.out, func(o ID) bool { return o == id })
}

func (m *model) pop(now int64, most int) []Due {
	dues := []Due{}
	for len(m.set) > 0 && m.set[0].At <= now && len(dues) < most {
		dues = append(dues, m.set[0].Due)
		m.out = append(m.out, m.set[0].ID)
		m.set = m.set[1:]
	}
	return dues
}

func (m *model) ids() []ID {
	ids := slices.Clone(m.out)
	for _, w := range m.set {
		ids = append(ids, w.ID)
	}
	slices.Sort(ids)
	return ids
}

// drawInstant is one of few, so that some are equal, or one of the odd ones.
func drawInstant(t *rapid.T) int64 {
	odd := []int64{math.MinInt64, math.MinInt64 + 1, -62135596800, -1, 0, 253402300799, 253402300799e6, math.MaxInt64 - 1, math.MaxInt64}
	return rapid.OneOf(rapid.Int64Range(-1, 1), rapid.Int64Range(-3, 12), rapid.Int64Range(-1e6, 1e6), rapid.SampledFrom(odd), rapid.Int64()).Draw(t, "at")
}

func TestLikeAModel(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var table Table
		m := model{once: map[ID]bool{}}
		any := func(t *rapid.T) ID {
			ids := m.ids()
			if len(ids) == 0 {
				t.Skip("nothing there")
			}
			return rapid.SampledFrom(ids).Draw(t, "id")
		}
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				at := drawInstant(t)
				for range rapid.IntRange(1, 4).Draw(t, "n") {
					id := table.Add(at)
					if slices.Contains(m.ids(), id) || id <= 0 {
						t.Fatalf("added as %d, which is taken or none", id)
					}
					m.put(id, at)
					m.once[id] = true
					m.most = max(m.most, len(m.ids()))
				}
			},
			"set": func(t *rapid.T) {
				id, at := any(t), drawInstant(t)
				table.Set(id, at)
				m.put(id, at)
			},
			"set anew": func(t *rapid.T) { // to the instant that it has
				id := any(t)
				for _, w := range m.set {
					if w.ID == id {
						table.Set(id, w.At)
						m.put(id, w.At)
						return
					}
				}
			},
			"remove": func(t *rapid.T) {
				id := any(t)
				table.Remove(id)
				m.take(id)
			},
			"pop": func(t *rapid.T) {
				now := drawInstant(t)
				got := make([]Due, rapid.IntRange(0, 5).Draw(t, "most"))
				want := m.pop(now, len(got))
				if got = got[:table.Pop(now, got)]; !slices.Equal(got, want) {
					t.Fatalf("popped %v, want %v", got, want)
				}
			},
			"": func(t *rapid.T) {
				at, ok := table.First()
				if ok != (len(m.set) > 0) || ok && at != m.set[0].At {
					t.Fatalf("first %d, %t, want of %v", at, ok, m.set)
				}
				if len(m.once) > m.most {
					t.Fatalf("%d IDs for at most %d entries at once", len(m.once), m.most)
				}
			},
		})
		rest := make([]Due, len(m.set)+1)
		want := m.pop(math.MaxInt64, len(rest))
		if rest = rest[:table.Pop(math.MaxInt64, rest)]; !slices.Equal(rest, want) {
			t.Fatalf("left %v, want %v", rest, want)
		}
	})
}

// The model's tables are small; here the hash and the heap are many pages, and all of them come and go.
func TestManyInstants(t *testing.T) {
	t.Parallel()
	const n = 50_000
	var table Table
	ids := make([]ID, n)
	for i := range ids {
		ids[i] = table.Add(int64(i) * 7919 % n)
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range n {
		table.Set(ids[r.IntN(n)], r.Int64N(2*n))
	}
	made := table.instants.lists.n
	dues := make([]Due, 1000)
	last, total := int64(math.MinInt64), 0
	for k := table.Pop(2*n, dues); k > 0; k = table.Pop(2*n, dues) {
		for _, d := range dues[:k] {
			if d.At < last {
				t.Fatalf("%d comes after %d", d.At, last)
			}
			last = d.At
		}
		total += k
	}
	if _, ok := table.First(); ok || total != n {
		t.Fatalf("popped %d of %d, and there are more: %t", total, n, ok)
	}
	for i, id := range ids {
		table.Set(id, int64(-i))
	}
	if table.instants.lists.n != made {
		t.Errorf("%d instants were made for at most %d at once", table.instants.lists.n, made)
	}
}

func TestGoneIsGone(t *testing.T) {
	t.Parallel()
	var table Table
	gone := table.Add(1)
	table.Remove(gone)
	for name, do := range map[string]func(){
		"removed": func() { table.Remove(gone) },
		"set":     func() { table.Set(gone, 2) },
		"never":   func() { table.Set(gone+1, 2) },
		"none":    func() { table.Set(0, 2) },
		"odd":     func() { table.Remove(-7) },
		"empty":   func() { new(Table).Remove(1) },
	} {
		func() {
			defer func() {
				if _, told := recover().(string); !told {
					t.Errorf("%s: taken, or not told what is wrong", name)
				}
			}()
			do()
		}()
	}
	if id := table.Add(3); id != gone {
		t.Errorf("added as %d, want %d again", id, gone)
	}
}

// TestBytes counts all that a table takes, at its worst and where entries share their instants. It also holds what making it took
// altogether: that is more where growing copies.
func TestBytes(t *testing.T) {
	const n = 200_000
	for _, c := range []struct {
		name string
		at   func(i int) int64
		most float64
	}{
		{"each at its own", func(i int) int64 { return int64(i) * 1_000_003 }, 50},
		{"hourly, each second", func(i int) int64 { return int64(i % 3600) }, 13},
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		table := new(Table)
		for i := range n {
			table.Add(c.at(i))
		}
		runtime.ReadMemStats(&after)
		made := float64(after.TotalAlloc-before.TotalAlloc) / n
		runtime.GC()
		runtime.ReadMemStats(&after)
		kept := float64(after.HeapAlloc-before.HeapAlloc) / n
		runtime.KeepAlive(table)
		t.Logf("%s: %.1f bytes an entry kept, %.1f made", c.name, kept, made)
		if kept > c.most || made > c.most+1 {
			t.Errorf("%s: %.1f bytes an entry kept, %.1f made, want at most %g", c.name, kept, made, c.most)
		}
	}
}

// What has run for long must not cost more than it did.
func TestNoAllocationsOnceGrown(t *testing.T) {
	var table Table
	var ids []ID
	for i := range 10_000 {
		ids = append(ids, table.Add(int64(i)))
	}
	now, dues := int64(0), make([]Due, 100)
	if n := testing.AllocsPerRun(1000, func() {
		now += 13
		for _, d := range dues[:table.Pop(now, dues)] {
			table.Set(d.ID, d.At+10_000)
		}
		id := ids[now%10_000]
		table.Remove(id)
		ids[now%10_000] = table.Add(now + 5000)
	}); n > 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkTable(b *testing.B) {
	const n = 1_000_000
	for _, c := range []struct {
		name string
		at   func(i int) int64
	}{
		{"same", func(int) int64 { return 0 }},
		{"hourly", func(i int) int64 { return int64(i % 3600) }},
		{"own", func(i int) int64 { return int64(hash(int64(i))) }},
	} {
		var table Table
		fill := time.Now()
		for i := range n {
			table.Add(c.at(i))
		}
		filled := time.Since(fill)
		b.Run("add/"+c.name, func(b *testing.B) {
			for i := 0; b.Loop(); i++ {
				table.Remove(table.Add(c.at(i)))
			}
			b.ReportMetric(float64(filled.Nanoseconds())/n, "ns/fill")
		})
		b.Run("again/"+c.name, func(b *testing.B) { // popped and set, each a lap later
			dues := make([]Due, 1024)
			for left := 0; b.Loop(); left-- {
				if left == 0 {
					left = table.Pop(math.MaxInt64, dues)
				}
				d := dues[left-1]
				table.Set(d.ID, d.At+1<<33)
			}
		})
	}
}
