package testservers

import (
	"context"
	"database/sql"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(Main(m)) }

var engines = []struct {
	*engine
	shared func(testing.TB) *Server
	start  func(testing.TB, Options) Private
}{
	{postgres, Postgres, StartPostgres},
	{mariaDB, MariaDB, StartMariaDB},
}

// forEach runs a test for each engine.
func forEach(t *testing.T, test func(t *testing.T, shared func(testing.TB) *Server, start func(testing.TB, Options) Private)) {
	for _, e := range engines {
		t.Run(e.name, func(t *testing.T) {
			t.Parallel()
			test(t, e.shared, e.start)
		})
	}
}

// connect opens a database until the end of the test.
func connect(t *testing.T, d Database) *sql.DB {
	t.Helper()
	db, err := d.engine.open(d.DSN())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func do(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func ask(ctx context.Context, db *sql.DB, query string) (answer string, err error) {
	err = db.QueryRowContext(ctx, query).Scan(&answer)
	return answer, err
}

// TestRestart stops, kills and pauses a server: what was acknowledged is there afterwards, at the same address.
func TestRestart(t *testing.T) {
	t.Parallel()
	forEach(t, func(t *testing.T, _ func(testing.TB) *Server, start func(testing.TB, Options) Private) {
		s := start(t, Options{})
		db := connect(t, s.Database(t))
		do(t, db, "create table words (word varchar(10))")
		for _, end := range []struct {
			word string
			by   func() error
		}{
			{"stopped", s.Stop},
			{"killed", func() error { s.Kill(); return nil }},
			{"paused", s.Pause},
		} {
			do(t, db, "insert into words values ('"+end.word+"')")
			if err := end.by(); err != nil {
				t.Fatal(err)
			}
			if err := s.Restart(); err != nil {
				t.Fatal(err)
			}
			word, err := ask(t.Context(), db, "select word from words where word = '"+end.word+"'")
			for err != nil { // connections of the pool that died are used up
				if t.Context().Err() != nil {
					t.Fatal(err)
				}
				word, err = ask(t.Context(), db, "select word from words where word = '"+end.word+"'")
			}
			if word != end.word {
				t.Errorf("after it was %s: %q", end.word, word)
			}
		}
	})
}
