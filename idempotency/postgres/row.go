package postgres

import (
	"encoding/binary"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/belfry-go/belfry/idempotency"
)

const runColumns = `r.job, r.key, r.request, r.due, r.state, r.outcome, r.reason, r.text, r.payload, r.fence, coalesce(r.term, 0),
r.attempt, r.crashes, r.cancel, r.session, r.replica, r.wake, r.started, r.finished`

const byDue = ` ORDER BY r.due, r.job, r.key, r.request`

// scanRun reads runColumns, and more behind them.
func scanRun(r pgx.Rows, more ...any) (x idempotency.Run, err error) {
	var key, request, reason, text, replica []byte
	var cancel *int16
	var wake, started, finished *time.Time
	err = r.Scan(append([]any{&x.ID.Job, &key, &request, &x.ID.Due, &x.State, &x.Outcome, &reason, &text, &x.Payload, &x.Fence, &x.Term,
		&x.Attempt, &x.Crashes, &cancel, &x.Session, &replica, &wake, &started, &finished}, more...)...)
	x.ID.Key, x.ID.Request, x.ID.Due = string(key), string(request), x.ID.Due.UTC()
	x.Reason, x.Text, x.Replica = string(reason), string(text), string(replica)
	x.Cancel = cancelOf(cancel)
	x.Wake, x.Started, x.Finished = at(wake), at(started), at(finished)
	if x.Fence == 0 {
		x.Session = 0 // of who wrote it; nobody claimed it yet
	}
	return x, err
}

// runs returns what a query chooses.
func (t *tx) runs(text string, args ...any) (runs []idempotency.Run, err error) {
	err = t.query(func(r pgx.Rows) error {
		x, err := scanRun(r)
		runs = append(runs, x)
		return err
	}, text, args...)
	return runs, err
}

// identity is an ID as a map's key: the due may be in any zone.
type identity struct {
	job, key, request string
	due               int64
}

func identityOf(id idempotency.ID) identity {
	return identity{id.Job, id.Key, id.Request, id.Due.Unix()}
}

// slot is what belfry_running has as the slot of a run; slotOfRun is the same of a row r of belfry_run.
func slot(id idempotency.ID, exclusive bool) []byte {
	if exclusive {
		return []byte{}
	}
	return append(binary.BigEndian.AppendUint64(nil, uint64(id.Due.Unix())), id.Request...)
}

const slotOfRun = `CASE WHEN r.exclusive THEN ''::bytea ELSE int8send(extract(epoch FROM r.due)::bigint) || r.request END`

// keys are the identities of a batch, column by column.
type keys struct {
	job          []string
	due          []time.Time
	key, request [][]byte
}

func (k *keys) add(id idempotency.ID) {
	k.job, k.due = append(k.job, id.Job), append(k.due, id.Due)
	k.key, k.request = append(k.key, []byte(id.Key)), append(k.request, []byte(id.Request))
}

// newRun is a run's first row.
type newRun struct {
	id        idempotency.ID
	exclusive bool
	term      int64               // the leader's, of those that are running; 0: none
	finish    *idempotency.Finish // nil: it is running
	payload   []byte
}

// insertRuns writes runs that have no row, and returns the fences of those that are running. They hold their keys already:
// so a fence is higher than any of the key that was committed. errAgain where one has a row by now.
func (c *call) insertRuns(list []newRun, nonce int64) (map[identity]int64, error) {
	if len(list) == 0 {
		return nil, nil
	}
	var k keys
	n := len(list)
	state, outcome, attempt := make([]int16, n), make([]int16, n), make([]int32, n)
	exclusive, wake, reason, text, payload := make([]bool, n), make([]*time.Time, n), make([][]byte, n), make([][]byte, n), make([][]byte, n)
	term := make([]*int64, n)
	for i, x := range list {
		k.add(x.id)
		state[i], exclusive[i], payload[i] = int16(idempotency.Running), x.exclusive, x.payload
		if f := x.finish; f == nil {
			term[i] = termOf(x.term)
		} else {
			state[i], outcome[i], wake[i] = ending(*f)
			attempt[i], reason[i], text[i] = int32(f.Attempt), blob(f.Reason), blob(f.Text)
		}
	}
	fences := make(map[identity]int64, n)
	written := 0
	err := c.returning(func(r pgx.Rows) error {
		var id idempotency.ID
		var key, request []byte
		var fence int64
		err := r.Scan(&id.Job, &id.Due, &key, &request, &fence)
		id.Key, id.Request = string(key), string(request)
		fences[identityOf(id)] = fence
		written++
		return err
	}, `INSERT INTO belfry_run AS r (space, job, due, key, request, state, outcome, attempt, exclusive, term, wake, reason, text, payload, session, nonce, fence, replica, started, finished)
SELECT $1, u.job, u.due, u.key, u.request, u.state, u.outcome, u.attempt, u.exclusive, u.term, u.wake, u.reason, u.text, u.payload, $2, $3,
  CASE WHEN u.state = 2 THEN nextval('belfry_number') ELSE 0 END, CASE WHEN u.state = 2 THEN $4 ELSE ''::bytea END,
  CASE WHEN u.state = 2 THEN $5::timestamptz END, CASE WHEN u.state = 3 THEN $5::timestamptz END
FROM unnest($6::text[], $7::timestamptz[], $8::bytea[], $9::bytea[], $10::smallint[], $11::smallint[], $12::integer[], $13::boolean[], $14::bigint[], $15::timestamptz[], $16::bytea[], $17::bytea[], $18::bytea[])
  u(job, due, key, request, state, outcome, attempt, exclusive, term, wake, reason, text, payload)
ON CONFLICT DO NOTHING RETURNING r.job, r.due, r.key, r.request, r.fence`,
		c.space, c.id, nonce, c.replica, c.now, k.job, k.due, k.key, k.request, state, outcome, attempt, exclusive, term, wake, reason, text, payload)
	if err == nil && written < n {
		err = errAgain
	}
	return fences, err
}

// hold makes runs running under the session: exclusive ones hold their keys. errAgain where one is held by another by now.
func (c *call) hold(list []newRun) error {
	var k keys
	slots := make([][]byte, len(list))
	for i, x := range list {
		k.add(x.id)
		slots[i] = slot(x.id, x.exclusive)
	}
	n, err := c.exec(`INSERT INTO belfry_running (space, session, job, due, key, request, slot)
SELECT $1, $2, u.job, u.due, u.key, u.request, u.slot FROM unnest($3::text[], $4::timestamptz[], $5::bytea[], $6::bytea[], $7::bytea[]) u(job, due, key, request, slot)
ON CONFLICT DO NOTHING`, c.space, c.id, k.job, k.due, k.key, k.request, slots)
	if err == nil && n < int64(len(list)) {
		err = errAgain
	}
	return err
}

// termOf is how a term is kept: nil for none.
func termOf(term int64) *int64 {
	if term == 0 {
		return nil
	}
	return &term
}

// ending is what a finish makes of a row's state, outcome and wake.
func ending(f idempotency.Finish) (state, outcome int16, wake *time.Time) {
	if f.Outcome == idempotency.Wait {
		return int16(idempotency.Waiting), 0, &f.Wake
	}
	return int16(idempotency.Ended), int16(f.Outcome), nil
}

// blob is how optional bytes are kept.
func blob(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}
