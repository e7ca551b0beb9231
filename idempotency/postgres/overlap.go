package postgres

import (
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/belfry-go/belfry/idempotency"
)

// jobKey is a key of a job.
type jobKey struct{ job, key string }

func keyOf(id idempotency.ID) jobKey { return jobKey{id.Job, id.Key} }

// rivals are the run that holds a key, and those of the key that wait.
type rivals struct {
	holder  *idempotency.ID // nil: none
	told    bool            // the holder is told to end
	waiting []idempotency.ID
}

// What belfry_run has as a run's cancel.
const (
	toldCanceled  int16 = 1
	toldOvertaken int16 = 2
)

// cancelOf is what Run.Cancel says of it.
func cancelOf(told *int16) string {
	switch {
	case told == nil:
		return ""
	case *told == toldOvertaken:
		return idempotency.Overtaken
	}
	return idempotency.Canceled
}

// findRivals returns the rivals of keys that have any, as they are now. What waits is not many, and has one small index: that is
// read once, whatever the number of keys.
func (c *call) findRivals(of []jobKey) (map[jobKey]rivals, error) {
	m := make(map[jobKey]rivals)
	if len(of) == 0 {
		return m, nil
	}
	var job []string
	var key [][]byte
	for _, x := range of {
		job, key = append(job, x.job), append(key, []byte(x.key))
	}
	err := c.query(func(r pgx.Rows) error {
		var id idempotency.ID
		var key, request []byte
		var holds bool
		var told *int16
		err := r.Scan(&id.Job, &id.Due, &key, &request, &holds, &told)
		id.Key, id.Request, id.Due = string(key), string(request), id.Due.UTC()
		x := m[keyOf(id)]
		if holds {
			x.holder, x.told = &id, told != nil
		} else {
			x.waiting = append(x.waiting, id)
		}
		m[keyOf(id)] = x
		return err
	}, `WITH u AS MATERIALIZED (SELECT * FROM unnest($2::text[], $3::bytea[]) u(job, key))
SELECT o.job, o.due, o.key, o.request, true, r.cancel FROM u
CROSS JOIN LATERAL (SELECT * FROM belfry_running o WHERE o.space = $1 AND o.job = u.job AND o.key = u.key AND o.slot = '' LIMIT 1) o
LEFT JOIN LATERAL (SELECT r.cancel FROM belfry_run r WHERE r.space = $1 AND r.due = o.due AND r.job = o.job AND r.key = o.key AND r.request = o.request LIMIT 1) r ON true
UNION ALL
SELECT r.job, r.due, r.key, r.request, false, NULL FROM belfry_run r
WHERE r.space = $1 AND r.wake IS NOT NULL AND ((r.job, r.key) IN (SELECT u.job, u.key FROM u)) IS TRUE`, c.space, job, key)
	return m, err
}

// runsOf lists all runs among the rivals.
func runsOf(m map[jobKey]rivals) (list []idempotency.ID) {
	for _, x := range m {
		if x.holder != nil {
			list = append(list, *x.holder)
		}
		list = append(list, x.waiting...)
	}
	return list
}

// stay demands that all rivals are among those whose rows are locked: then they neither end nor are taken up until the call
// has committed, and two calls that look at one key are one after the other. Else errAgain.
func stay(m, locked map[jobKey]rivals) error {
	known := make(map[identity]bool)
	for _, id := range runsOf(locked) {
		known[identityOf(id)] = true
	}
	for _, id := range runsOf(m) {
		if !known[identityOf(id)] {
			return errAgain
		}
	}
	return nil
}

// lockRuns locks rows of runs, in the order in which all do.
func (c *call) lockRuns(list []idempotency.ID) error {
	if len(list) == 0 {
		return nil
	}
	k := keysOf(list)
	_, err := c.exec(`SELECT r.state FROM unnest($2::text[], $3::timestamptz[], $4::bytea[], $5::bytea[]) u(job, due, key, request)
CROSS JOIN LATERAL (SELECT r.state FROM belfry_run r WHERE r.space = $1 AND r.due = u.due AND r.job = u.job AND r.key = u.key AND r.request = u.request
  FOR NO KEY UPDATE) r`, c.space, k.job, k.due, k.key, k.request)
	return err
}

// keysOf are identities in the order in which all lock them, each once.
func keysOf(list []idempotency.ID) (k keys) {
	list = slices.SortedFunc(slices.Values(list), func(a, b idempotency.ID) int { return compare(&a, &b) })
	for i, id := range list {
		if i == 0 || compare(&list[i-1], &id) != 0 {
			k.add(id)
		}
	}
	return k
}

// overtaking is what runs that found their keys held make of those that are older.
type overtaking struct{ tell, end []idempotency.ID }

// add lets a run overtake its rivals.
func (o *overtaking) add(id idempotency.ID, r rivals) {
	if r.holder != nil && !r.told && !r.holder.Due.After(id.Due) {
		o.tell = append(o.tell, *r.holder)
	}
	for _, w := range r.waiting {
		if w.Due.Before(id.Due) {
			o.end = append(o.end, w)
		}
	}
}

// overtake writes it. The rows are locked.
func (c *call) overtake(o overtaking) error {
	if err := c.tell(o.tell, toldOvertaken); err != nil {
		return err
	}
	return c.end(o.end, idempotency.Waiting, idempotency.Skipped, idempotency.Overtaken)
}

// tell tells running runs to end. Their rows are locked.
func (c *call) tell(list []idempotency.ID, told int16) error {
	if len(list) == 0 {
		return nil
	}
	c.raises = true // the holder of the run asks what is news
	k := keysOf(list)
	return c.each(len(k.job), `UPDATE belfry_run r SET cancel = $6 FROM `+theseRuns+` WHERE r.ctid = x.id AND r.state = 2`,
		c.space, k.job, k.due, k.key, k.request, told)
}

// end ends runs in a state, without a word of who held them: attempts and text stay. Their rows are locked.
func (c *call) end(list []idempotency.ID, from idempotency.State, outcome idempotency.Outcome, reason string) error {
	if len(list) == 0 {
		return nil
	}
	k := keysOf(list)
	return c.each(len(k.job), `UPDATE belfry_run r SET state = 3, outcome = $7, reason = $8, finished = $9, wake = NULL, cancel = NULL
FROM `+theseRuns+` WHERE r.ctid = x.id AND r.state = $6`,
		c.space, k.job, k.due, k.key, k.request, int16(from), int16(outcome), blob(reason), c.now)
}

// theseRuns are the rows of the runs $2 to $5.
const theseRuns = `(SELECT r.id FROM unnest($2::text[], $3::timestamptz[], $4::bytea[], $5::bytea[]) u(job, due, key, request)
  CROSS JOIN LATERAL (SELECT r.ctid AS id FROM belfry_run r
    WHERE r.space = $1 AND r.due = u.due AND r.job = u.job AND r.key = u.key AND r.request = u.request LIMIT 1) r) x`

// each changes so many rows. errAgain where they are fewer by now.
func (c *call) each(n int, text string, args ...any) error {
	changed, err := c.exec(text, args...)
	if err == nil && changed < int64(n) {
		err = errAgain
	}
	return err
}
