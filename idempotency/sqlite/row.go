package sqlite

import (
	"database/sql"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// row is of a run's row what a claim looks at.
type row struct {
	state            idempotency.State
	fence            int64
	attempt, crashes int
	payload          []byte
	session, nonce   int64 // of the last claim, or of who wrote the run
	wake             time.Time
	cancel           string
}

// runTable has the name of the replica, which stays as long as a run names it; what people asked for names none.
const runTable = `belfry_run r LEFT JOIN belfry_session s ON s.id = r.session`

const runColumns = `r.job, r.key, r.request, r.due, r.state, r.outcome, r.reason, r.text, r.payload, r.fence, r.term,
r.attempt, r.crashes, r.cancel, r.session, s.replica, r.wake, r.started, r.finished`

const byDue = ` ORDER BY r.due, r.job, r.key, r.request`

// scanRun reads runColumns, and more behind them.
func scanRun(r *sql.Rows, more ...any) (x idempotency.Run, err error) {
	var key, request, reason, text, replica []byte
	var due int64
	var wake, started, finished sql.NullInt64
	var cancel sql.NullString
	err = r.Scan(append([]any{&x.ID.Job, &key, &request, &due, &x.State, &x.Outcome, &reason, &text, &x.Payload, &x.Fence, &x.Term,
		&x.Attempt, &x.Crashes, &cancel, &x.Session, &replica, &wake, &started, &finished}, more...)...)
	x.ID.Key, x.ID.Request, x.ID.Due = string(key), string(request), time.Unix(due, 0).UTC()
	x.Reason, x.Text, x.Replica, x.Cancel = string(reason), string(text), string(replica), cancel.String
	x.Wake, x.Started, x.Finished = at(wake), at(started), at(finished)
	if x.Fence == 0 {
		x.Session, x.Replica = 0, "" // of who wrote it; nobody claimed it yet
	}
	return x, err
}

// runs returns the runs that the rest of a query chooses.
func (t *tx) runs(rest string, args ...any) (runs []idempotency.Run, err error) {
	err = t.query(func(r *sql.Rows) error {
		x, err := scanRun(r)
		runs = append(runs, x)
		return err
	}, `SELECT `+runColumns+` FROM `+runTable+` WHERE `+rest, args...)
	return runs, err
}

// row returns the run's row, nil where there is none.
func (c *call) row(id idempotency.ID) (*row, error) {
	var x row
	var wake sql.NullInt64
	var cancel sql.NullString
	found, err := c.get([]any{&x.state, &x.fence, &x.attempt, &x.crashes, &x.payload, &x.session, &x.nonce, &wake, &cancel},
		`SELECT state, fence, attempt, crashes, payload, session, nonce, wake, cancel FROM belfry_run
WHERE space = ? AND due = ? AND job = ? AND key = ? AND request = ?`,
		c.by.space, id.Due.Unix(), id.Job, []byte(id.Key), []byte(id.Request))
	if err != nil || !found {
		return nil, err
	}
	x.wake, x.cancel = at(wake), cancel.String
	return &x, nil
}

// holder is the due of another run of the job and key that runs exclusively; zero: none.
func (c *call) holder(id idempotency.ID) (time.Time, error) {
	var due int64
	var request []byte
	held, err := c.get([]any{&due, &request},
		`SELECT due, request FROM belfry_run INDEXED BY belfry_run_exclusive WHERE space = ? AND job = ? AND key = ? AND exclusive = 1`,
		c.by.space, id.Job, []byte(id.Key))
	if !held || due == id.Due.Unix() && string(request) == id.Request {
		return time.Time{}, err
	}
	return time.Unix(due, 0).UTC(), err
}

const insertRunning = `INSERT INTO belfry_run (space, due, job, key, request, state, fence, term, session, nonce, exclusive, started)
VALUES (?, ?, ?, ?, ?, 2, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`

// insertRunning writes a running row, unless there is the row or another of the
// job and key that is exclusive too. The fence is 0 where it did not.
func (c *call) insertRunning(id idempotency.ID, nonce int64, exclusive bool, term int64) (fence int64, err error) {
	if fence, err = c.draw(); err != nil {
		return 0, err
	}
	n, err := c.exec(insertRunning, c.by.space, id.Due.Unix(), id.Job, []byte(id.Key), []byte(id.Request), fence, term, c.by.id, nonce, flag(exclusive), micro(c.now))
	if err != nil || n == 0 {
		return 0, err
	}
	c.name(c.by.id, 1)
	return fence, nil
}

// insertIdle writes the row of a run that never ran, or waits.
func (c *call) insertIdle(id idempotency.ID, f idempotency.Finish, nonce int64) error {
	state, outcome, wake, finished := columns(f, c.now)
	_, err := c.exec(`INSERT INTO belfry_run (space, due, job, key, request, state, outcome, reason, text, fence, attempt, session, nonce, wake, finished)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, 0, ?, ?, ?, ?, ?)`,
		c.by.space, id.Due.Unix(), id.Job, []byte(id.Key), []byte(id.Request), state, outcome, blob(f.Reason), blob(f.Text), f.Attempt, c.by.id, nonce, wake, finished)
	if err == nil {
		c.name(c.by.id, 1)
	}
	return err
}

// columns are what a finish makes of a row's state, outcome, wake and finished.
func columns(f idempotency.Finish, now time.Time) (state idempotency.State, outcome idempotency.Outcome, wake, finished any) {
	if f.Outcome == idempotency.Wait {
		return idempotency.Waiting, 0, micro(f.Wake), nil
	}
	return idempotency.Ended, f.Outcome, nil, micro(now)
}

// flag is how exclusive is kept: rows where it is not are in no index.
func flag(exclusive bool) any {
	if exclusive {
		return 1
	}
	return nil
}

// blob is how optional bytes are kept.
func blob(s string) any {
	if s == "" {
		return nil
	}
	return []byte(s)
}
