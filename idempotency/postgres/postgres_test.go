package postgres

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/belfry-go/belfry/internal/testservers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(testservers.Main(m)) }

// pool connects to a database, until the test ends.
func pool(t testing.TB, db testservers.Database) *pgxpool.Pool {
	t.Helper()
	p, err := pgxpool.New(context.Background(), db.URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// openAt opens a store and closes it when the test ends.
func openAt(t testing.TB, p *pgxpool.Pool, o *Options, clock string) *Store {
	t.Helper()
	s, err := open(context.Background(), p, o, clock)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

const hostClock = "clock_timestamp()"

func TestOpenAgain(t *testing.T) {
	t.Parallel()
	p := pool(t, testservers.Postgres(t).Database(t))
	first := openAt(t, p, nil, hostClock)
	if again := openAt(t, p, nil, hostClock); again.id != first.id || first.id == "" {
		t.Fatalf("opened twice: identities %q and %q", first.id, again.id)
	}
}
