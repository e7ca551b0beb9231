package sqlite

import (
	"database/sql"
	"strings"
	"testing"
	"time"
)

// No table keeps a row of a namespace that was dropped, seen or unseen.
func TestDropNamespaceLeavesNoRow(t *testing.T) {
	t.Parallel()
	s := openAt(t, file(t), nil, time.Now)
	w := newWorker(t, s)
	w.claim(t, 0, 10)
	if _, err := s.Lead(t.Context(), w.session, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.CloseSession(t.Context(), w.session); err != nil {
		t.Fatal(err)
	}
	if full := filled(t, s); len(full) < 10 { // all but passes, ranges and commands
		t.Fatalf("rows are only in %q; the test has nothing to look at", full)
	}
	if err := s.DropNamespace(t.Context(), "ns"); err != nil {
		t.Fatal(err)
	}
	if full := filled(t, s); strings.Join(full, " ") != "belfry_store" {
		t.Errorf("rows are left in %q", full)
	}
}

// filled are the tables with rows.
func filled(t *testing.T, s *Store) (full []string) {
	t.Helper()
	err := s.read(t.Context(), func(t *tx) error {
		for _, text := range schema {
			name := object(text)
			if !strings.HasPrefix(text, "CREATE TABLE") {
				continue
			}
			err := t.query(func(*sql.Rows) error {
				full = append(full, name)
				return nil
			}, `SELECT 1 FROM `+name+` LIMIT 1`)
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return full
}
