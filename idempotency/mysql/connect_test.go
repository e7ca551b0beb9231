package mysql

import (
	"bytes"
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/faultproxy"
	"github.com/belfry-go/belfry/internal/testservers"
)

// A connection on which a handler went to another database, or stopped the clock, leads the store nowhere else.
func TestPoolGivesAConnectionThatWasUsed(t *testing.T) {
	t.Parallel()
	server := testservers.MariaDB(t)
	d, other := server.Database(t), server.Database(t)
	for _, text := range []string{"USE " + other.Name, "SET SESSION timestamp = 1000000000"} {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			db := client(t, d, "")
			s := openOn(t, db, nil)
			run(t, db, text)
			var name string
			var year int
			err := s.write(t.Context(), func(t *tx) error {
				_, err := t.get([]any{&name, &year}, `SELECT DATABASE(), YEAR(UTC_TIMESTAMP())`)
				return err
			})
			if err != nil || name != d.Name || year < 2020 {
				t.Errorf("the store is in database %q and year %d, %v; want %q and this year", name, year, err, d.Name)
			}
		})
	}
}

// Idle connections of the pool that are dead cost a renewal a part of its time, and not all.
func TestRenewalPassesDeadConnections(t *testing.T) {
	t.Parallel()
	p, db := through(t, testservers.MariaDB(t).Database(t))
	w := newWorker(t, openOn(t, db, nil))
	s := openOn(t, db, nil) // which has no connection yet
	var dead atomic.Int64
	p.ToServer.Lose(func(chunk []byte) bool { return bytes.Contains(chunk, []byte("sql_mode")) && dead.Add(1) <= 2 }, faultproxy.Hang)
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
	defer cancel()
	if _, err := s.RenewSession(ctx, w.session); err != nil || dead.Load() != 3 {
		t.Errorf("renewal by connection %d: %v; want it by the third", dead.Load(), err)
	}
}
