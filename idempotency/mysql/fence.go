package mysql

import (
	"database/sql"
	"fmt"

	"github.com/belfry-go/belfry/jobs"
)

// Fenced is the result of a write that demands its fence, on a table of the
// application's own: nil where it changed a row, an error that wraps
// jobs.ErrOvertaken where it changed none, else err.
//
// InTx is for effects in the store's own database. Where the effect is in
// another one, the resource itself refuses a holder that was overtaken while it
// was paused, by remembering the highest fence that has written to it:
//
//	alter table accounts add column fence bigint not null default 0
//
//	err := mysql.Fenced(db.ExecContext(ctx,
//		`update accounts set plan = ?, fence = ? where id = ? and fence < ?`,
//		plan, o.Fence, o.Key, o.Fence))
//
// The update sets fence itself, and to a higher value than it had. So a row
// that it matches is a row that it changes, and the count is the same with
// clientFoundRows and without. Do not write it as an insert … on duplicate
// key update, of which the count says nothing; and not with "fence <= ?".
//
// The row exists before, and a run writes to it once: a second write with the
// same fence changes nothing, and so looks overtaken. Where a write was not
// answered, read the row: it was done if its fence is o.Fence. Fences rise per
// job and key, so a row belongs to the key of one job; a row that several jobs
// write to has a fence column for each. A run that crashed after the write is
// repeated with a higher fence, and so writes again: the effect sets a value
// and does not add to one.
func Fenced(r sql.Result, err error) error {
	if err != nil {
		return err
	}
	n, err := r.RowsAffected()
	if err == nil && n == 0 {
		err = fmt.Errorf("mysql: the write changed no row: a higher fence has written to it, or this one has before, or there is no such row: %w", jobs.ErrOvertaken)
	}
	return err
}
