package sqlite

import (
	"database/sql"
	"fmt"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// published are the statements of docs/stores.md that are for SQLite: two that read and one that writes.
func published(t *testing.T) (runs, ranges, mend string) {
	t.Helper()
	page, err := os.ReadFile("../../docs/stores.md")
	if err != nil {
		t.Fatal(err)
	}
	read := regexp.MustCompile("(?s)\nOn SQLite,[^`]*\n```sql\n([^`;]+);\n([^`;]+);\n```").FindSubmatch(page)
	write := regexp.MustCompile("\n```sql\n(UPDATE [^`;]* -- SQLite\n[^`;]*);\n").FindSubmatch(page)
	if read == nil || write == nil {
		t.Fatal("docs/stores.md lacks statements for SQLite, or has others")
	}
	return string(read[1]), string(read[2]), string(write[1])
}

// only is the only row of a statement, by its columns' names.
func only(t *testing.T, db *sql.DB, text string) map[string]string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), text)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	names, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	if !rows.Next() {
		t.Fatalf("no row (%v):\n%s", rows.Err(), text)
	}
	values, into := make([]any, len(names)), make([]any, len(names))
	for i := range values {
		into[i] = &values[i]
	}
	if err := rows.Scan(into...); err != nil {
		t.Fatal(err)
	}
	found := make(map[string]string, len(names))
	for i, name := range names {
		found[name] = fmt.Sprint(values[i])
	}
	if rows.Next() {
		t.Fatalf("more than one row:\n%s", text)
	}
	return found
}

func wantRow(t *testing.T, db *sql.DB, text string, want map[string]string) {
	t.Helper()
	if got := only(t, db, text); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%s\ngot  %v\nwant %v", text, got, want)
	}
}

// The statements that the page has for SQLite do on a file what the page says.
func TestStatementsOfThePage(t *testing.T) {
	t.Parallel()
	runs, ranges, mend := published(t)
	path := file(t)
	s := openAt(t, path, nil, time.Now) // they compare with SQLite's own clock
	ses, r, err := s.OpenSession(t.Context(), idempotency.Opening{
		Namespace: "billing", Replica: "a", Boot: "a", Partitions: 8, Lease: time.Hour, Horizon: 48 * time.Hour, Retention: 96 * time.Hour,
	})
	if err != nil {
		t.Fatal(err)
	}
	due, ahead := r.Now.Truncate(time.Second).Add(-time.Hour), r.Now.Truncate(time.Second).Add(24*time.Hour)
	def := idempotency.Definition{Job: "renewals", Schedule: "@every 1h", Hash: "h1", Keyed: true}
	local := idempotency.Definition{Job: "cache", Schedule: "@every 1h", Hash: "h1"}
	entries, err := s.Declare(t.Context(), ses, 1, []idempotency.Declaration{{Definition: def, Opened: due.Add(-3 * time.Hour)}, {Definition: local}})
	if err != nil {
		t.Fatal(err)
	}
	missed := idempotency.Range{Job: "renewals", From: due.Add(-2 * time.Hour), To: due.Add(-time.Hour), Count: 2, Outcome: idempotency.Missed, Reason: "late"}
	decided, err := s.Decide(t.Context(), ses, 2, []idempotency.Decision{{
		Seen: entries[0], Definition: def, Opened: due, Keyed: true, Run: []time.Time{due}, Ranges: []idempotency.Range{missed},
	}})
	if err != nil || !decided[0].Won {
		t.Fatal(decided, err)
	}
	id := idempotency.ID{Job: "renewals", Key: "42", Due: due}
	won, err := s.Claim(t.Context(), ses, 3, []idempotency.Claim{{ID: id, Hash: "h1", Exclusive: true}})
	if err != nil || won[0].Verdict != idempotency.Won {
		t.Fatal(won, err)
	}
	f := idempotency.Finish{ID: id, Fence: won[0].Fence, Outcome: idempotency.Failed, Attempt: 3, Reason: "exhausted", Text: "no answer"}
	if _, err := s.Finish(t.Context(), "billing", []idempotency.Finish{f}); err != nil {
		t.Fatal(err)
	}
	var started time.Time
	for x, err := range s.List(t.Context(), idempotency.Filter{Namespace: "billing"}) {
		if err != nil {
			t.Fatal(err)
		}
		started = x.Started
	}
	db := application(t, path)
	wantRow(t, db, runs, map[string]string{
		"due": due.Format(time.DateTime), "state": "3", "outcome": "2", "attempt": "3", "started": started.Format(time.DateTime), "reason": "exhausted", "text": "no answer",
	})
	wantRow(t, db, ranges, map[string]string{
		"job": "renewals", "low": missed.From.Format(time.DateTime), "high": missed.To.Format(time.DateTime), "count": "2", "outcome": "4", "reason": "late",
	})
	if _, err := db.ExecContext(t.Context(), `UPDATE belfry_entry SET opened = ?1, next = ?1 WHERE job = 'renewals'`, ahead.UnixMicro()); err != nil {
		t.Fatal(err)
	}
	res, err := db.ExecContext(t.Context(), mend)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); err != nil || n != 1 {
		t.Errorf("%d entries were mended, want that of renewals alone: %v", n, err)
	}
	o, err := s.Overview(t.Context(), "billing")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range o.Entries {
		now := e.Job == "renewals"
		if mended := !e.Opened.Before(r.Now.Truncate(time.Second)) && !e.Opened.After(o.Now) && e.Next.Equal(e.Opened); mended != now || e.Opened.IsZero() == now {
			t.Errorf("at %v: %+v", o.Now, e)
		}
	}
}
