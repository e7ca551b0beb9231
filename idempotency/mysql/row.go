package mysql

import (
	"cmp"
	"database/sql"
	"encoding/binary"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// fencesOf is how many fences one drawn number makes: two for each place in a batch. The odd one is of a run that runs
// exclusively, so that a finish knows where its row in belfry_running is.
const fencesOf = 2048

// fenceOf is the fence of the run at a place in a batch that drew n.
func fenceOf(n int64, place int, exclusive bool) int64 {
	f := n*fencesOf + 2*int64(place)
	if exclusive {
		f++
	}
	return f
}

func isExclusive(fence int64) bool { return fence%2 == 1 }

// ref names a run within its namespace.
type ref struct {
	due               int64
	job, key, request string
}

func refOf(id idempotency.ID) ref { return ref{id.Due.Unix(), id.Job, id.Key, id.Request} }

// compareRefs is the order of runs everywhere: oldest due first.
func compareRefs(a, b ref) int {
	return cmp.Or(cmp.Compare(a.due, b.due), strings.Compare(a.job, b.job), strings.Compare(a.key, b.key), strings.Compare(a.request, b.request))
}

func (r ref) id() idempotency.ID {
	return idempotency.ID{Job: r.job, Key: r.key, Request: r.request, Due: time.Unix(r.due, 0).UTC()}
}

// first is before all refs, and final behind them.
var (
	first = ref{due: math.MinInt64 + 1}
	final = ref{due: math.MaxInt64}
)

// behind is the condition for what comes behind r in a table whose primary key is a space and a ref, in words of which
// planners make ranges of that key: of a comparison of rows they make none.
func (r ref) behind(table string) sqlText { return r.beyond(table, ">") }

// before is behind in the reverse order.
func (r ref) before(table string) sqlText { return r.beyond(table, "<") }

func (r ref) beyond(table, than string) sqlText {
	return sqlText(render(defaultPrefix, strings.NewReplacer("T.", table, ">", than).Replace(`T.due > ? OR T.due = ? AND T.job > ? OR T.due = ? AND T.job = ? AND T.run_key > ?
  OR T.due = ? AND T.job = ? AND T.run_key = ? AND T.request > ?`), []any{
		r.due, r.due, r.job, r.due, r.job, r.key, r.due, r.job, r.key, r.request,
	}))
}

// jobKey is what runs exclude each other by.
type jobKey struct{ job, key string }

func (r ref) jobKey() jobKey { return jobKey{r.job, r.key} }

// slotOf is where a running run stands among those of its key: all exclusive ones in one place.
func slotOf(r ref, exclusive bool) string {
	if exclusive {
		return ""
	}
	return string(binary.BigEndian.AppendUint64(nil, uint64(r.due))) + r.request
}

func (r ref) place(exclusive bool) place { return place{r.jobKey(), slotOf(r, exclusive)} }

func (r ref) point() point {
	return point{rest: render(defaultPrefix, `due = ? AND job = ? AND request = ?`, []any{r.due, r.job, r.request}), key: r.key}
}

// runsAt are conditions for the rows of runs in belfry_run or belfry_waiting.
func runsAt(refs []ref) *rows {
	return points(len(refs), func(i int) point { return refs[i].point() })
}

// place is that of a run's row in belfry_running.
type place struct {
	jobKey
	slot string
}

func comparePlaces(a, b place) int {
	return cmp.Or(strings.Compare(a.job, b.job), strings.Compare(a.key, b.key), strings.Compare(a.slot, b.slot))
}

// runningAt are conditions for rows of belfry_running.
func runningAt(places []place) *rows {
	return points(len(places), func(i int) point {
		p := places[i]
		return point{rest: render(defaultPrefix, `job = ? AND slot = ?`, []any{p.job, p.slot}), key: p.key}
	})
}

const runColumns = `r.job, r.run_key, r.request, r.due, r.state, r.outcome, r.reason, r.text, r.payload, r.fence, r.term,
r.attempt, r.crashes, r.cancel, r.session, r.replica, r.started, r.at`

// mark is how Run.Cancel is kept: 0 is none. In a row that is not running it means nothing.
type mark int

var marks = []string{"", idempotency.Canceled, idempotency.Overtaken}

func (m mark) word() string { return marks[m] }

func markOf(cancel string) mark { return mark(slices.Index(marks, cancel)) }

const (
	byDue       = ` ORDER BY r.due, r.job, r.run_key, r.request`
	newestFirst = ` ORDER BY r.due DESC, r.job DESC, r.run_key DESC, r.request DESC`
)

// scanRun reads runColumns, and more behind them.
func scanRun(r *sql.Rows, more ...any) (x idempotency.Run, err error) {
	var reason, text []byte
	var due, started, at int64
	var cancel mark
	err = r.Scan(append([]any{&x.ID.Job, &x.ID.Key, &x.ID.Request, &due, &x.State, &x.Outcome, &reason, &text, &x.Payload, &x.Fence, &x.Term,
		&x.Attempt, &x.Crashes, &cancel, &x.Session, &x.Replica, &started, &at}, more...)...)
	x.ID.Due = time.Unix(due, 0).UTC()
	x.Reason, x.Text = string(reason), string(text)
	switch x.State {
	case idempotency.Waiting:
		x.Wake = time.UnixMicro(at).UTC()
	case idempotency.Running:
		x.Cancel = cancel.word()
	case idempotency.Ended:
		x.Finished = time.UnixMicro(at).UTC()
	}
	if x.Fence == 0 {
		x.Session, x.Replica = 0, "" // of who wrote it; nobody claimed it yet
	} else {
		x.Started = time.UnixMicro(started).UTC()
	}
	return x, err
}

// runs returns the runs that the rest of a query chooses.
func (t *tx) runs(rest string, args ...any) (runs []idempotency.Run, err error) {
	err = t.query(func(r *sql.Rows) error {
		x, err := scanRun(r)
		runs = append(runs, x)
		return err
	}, `SELECT `+runColumns+` FROM `+rest, args...)
	return runs, err
}

// columns are what a finish makes of a row's state, outcome and at.
func columns(f idempotency.Finish, now time.Time) (idempotency.State, idempotency.Outcome, int64) {
	if f.Outcome == idempotency.Wait {
		return idempotency.Waiting, 0, f.Wake.UnixMicro()
	}
	return idempotency.Ended, f.Outcome, now.UnixMicro()
}

// blob is how optional bytes are kept.
func blob(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// sorted sorts what many of which are asked for at once, and drops what is equal.
func sorted[T comparable](list []T, compare func(a, b T) int) []T {
	slices.SortFunc(list, compare)
	return slices.Compact(list)
}

// sortedDues are the dues, each once.
func sortedDues(dues []dueOf) []dueOf {
	return sorted(slices.Clone(dues), func(a, b dueOf) int { return cmp.Or(cmp.Compare(a.due, b.due), strings.Compare(a.job, b.job)) })
}

// dueRows are dues as a list.
func dueRows(dues []dueOf) *rows {
	r := &rows{}
	for _, d := range sortedDues(dues) {
		r.add(d.due, d.job)
	}
	return r
}
