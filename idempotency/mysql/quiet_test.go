package mysql

import (
	"context"
	"testing"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/testservers"
)

// written is the server's count of all rows that any client changed, and the end of its redo log.
func (w *worker) written(t *testing.T) (rows, lsn int64) {
	t.Helper()
	rows = w.count(t, `SELECT sum(variable_value) FROM information_schema.global_status
WHERE variable_name IN ('HANDLER_WRITE', 'HANDLER_UPDATE', 'HANDLER_DELETE')`)
	lsn = w.count(t, `SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'INNODB_LSN_CURRENT'`)
	return rows, lsn
}

// A batch that loses writes nothing: neither rows nor the undo of any. So do the calls of a sweep that finds nothing.
func TestLosersWriteNothing(t *testing.T) {
	t.Parallel()
	server := testservers.StartMariaDB(t, testservers.Options{})
	s := openOn(t, client(t, server.Database(t), ""), nil)
	w := newWorker(t, s)
	c := w.batch(idempotency.MaxBatch)
	rows, lsn := w.written(t)
	if _, err := w.claim(context.Background(), c...); err != nil {
		t.Fatal(err)
	}
	if rowsAfter, lsnAfter := w.written(t); rowsAfter-rows < 2*idempotency.MaxBatch || lsnAfter == lsn {
		t.Fatalf("a batch that wins wrote %d rows and %d bytes of redo; the counters count something else", rowsAfter-rows, lsnAfter-lsn)
	}
	other := w.beside(t, s)
	leader := leads(t, s, w.session, 0)
	lead := func(ses idempotency.Session) func() error {
		return func() error {
			l, err := s.Lead(context.Background(), ses, 0)
			if err == nil && l != leader {
				t.Errorf("the leader is %+v, want %+v", l, leader)
			}
			return err
		}
	}
	busy := make([]idempotency.Claim, len(c))
	for i := range busy {
		busy[i] = c[i]
		busy[i].ID.Request = "by hand"
	}
	for name, lose := range map[string]func() error{
		"taken": func() error {
			a, err := other.claim(context.Background(), c...)
			if err == nil && a[0].Verdict != idempotency.Taken {
				t.Errorf("verdict %d, want taken", a[0].Verdict)
			}
			return err
		},
		"busy": func() error {
			a, err := other.claim(context.Background(), busy...)
			if err == nil && a[0].Verdict != idempotency.Busy {
				t.Errorf("verdict %d, want busy", a[0].Verdict)
			}
			return err
		},
		"lagging": func() error {
			_, err := other.Lagging(context.Background(), other.session, idempotency.LagQuery{Limit: 10})
			return err
		},
		"lead":       lead(other.session),
		"lead again": lead(w.session),
		"resign":     func() error { return other.Resign(context.Background(), other.session, leader.Term, "it never led") },
		"prune":      func() error { _, err := other.Prune(context.Background(), other.session, 100); return err },
	} {
		redo := int64(-1)
		for try := 0; redo != 0 && try < 5; try++ { // the server writes a little of its own accord
			rows, lsn := w.written(t)
			if err := lose(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			rowsAfter, lsnAfter := w.written(t)
			if redo = lsnAfter - lsn; rowsAfter != rows {
				t.Errorf("%s wrote %d rows", name, rowsAfter-rows)
			}
		}
		if redo != 0 {
			t.Errorf("%s wrote %d bytes of redo", name, redo)
		}
	}
}
