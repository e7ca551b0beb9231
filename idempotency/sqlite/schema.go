package sqlite

import (
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// version is the schema's. It stands in belfry_store and not in the file's
// user_version, which belongs to the application whose tables may be here too.
const version = 1

// schema makes the tables, one statement each. SQLite keeps their text, and a
// file whose text differs is refused.
//
// Instants are microseconds since 1970, dues seconds, durations nanoseconds, and
// NULL is none. A run's key is led by the due, so that the runs of a night
// lie side by side whatever the order of their keys, and so that retention is a
// stretch of it.
var schema = []string{
	// last is the counter that all numbers are drawn from.
	`CREATE TABLE belfry_store (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  version INTEGER NOT NULL,
  id TEXT NOT NULL,
  last INTEGER NOT NULL
) STRICT`,

	// A space is a namespace. horizon is that of the session that was opened last, controls counts what people changed and
	// who was told to end, counted is when Retire did last, pruned the latest due whose record was removed.
	`CREATE TABLE belfry_space (
  id INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE,
  partitions INTEGER NOT NULL,
  horizon INTEGER NOT NULL DEFAULT 0,
  controls INTEGER NOT NULL DEFAULT 0,
  counted INTEGER,
  pruned INTEGER
) STRICT`,

	// named counts the runs that name the session, and the leader's row: while any does it stays.
	`CREATE TABLE belfry_session (
  id INTEGER PRIMARY KEY,
  space INTEGER NOT NULL,
  replica BLOB NOT NULL,
  boot BLOB NOT NULL,
  lease INTEGER NOT NULL,
  horizon INTEGER NOT NULL,
  retention INTEGER NOT NULL,
  tolerance INTEGER NOT NULL,
  expires INTEGER NOT NULL,
  marked INTEGER,
  named INTEGER NOT NULL,
  declared INTEGER NOT NULL DEFAULT 0
) STRICT`,
	`CREATE INDEX belfry_session_live ON belfry_session (space, expires) WHERE marked IS NULL`,

	`CREATE TABLE belfry_definition (
  session INTEGER NOT NULL,
  job TEXT NOT NULL,
  schedule BLOB NOT NULL,
  hash BLOB NOT NULL,
  revision INTEGER NOT NULL,
  keyed INTEGER NOT NULL,
  leader INTEGER NOT NULL,
  PRIMARY KEY (session, job)
) STRICT, WITHOUT ROWID`,

	`CREATE TABLE belfry_seen (
  space INTEGER NOT NULL,
  job TEXT NOT NULL,
  hash BLOB NOT NULL,
  first INTEGER NOT NULL,
  PRIMARY KEY (space, job, hash)
) STRICT, WITHOUT ROWID`,

	// opened is NULL for an efficiency job; unannounced is how long Retire has counted that nobody announced the job.
	`CREATE TABLE belfry_entry (
  space INTEGER NOT NULL,
  job TEXT NOT NULL,
  key BLOB NOT NULL,
  schedule BLOB NOT NULL,
  hash BLOB NOT NULL,
  revision INTEGER NOT NULL,
  keyed INTEGER NOT NULL,
  leader INTEGER NOT NULL,
  opened INTEGER,
  next INTEGER,
  paused_from INTEGER,
  paused_until INTEGER,
  retired INTEGER,
  unannounced INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (space, job, key)
) STRICT, WITHOUT ROWID`,

	// The nonce under which a session last won a decision of an entry.
	`CREATE TABLE belfry_decision (
  session INTEGER NOT NULL,
  job TEXT NOT NULL,
  key BLOB NOT NULL,
  nonce INTEGER NOT NULL,
  PRIMARY KEY (session, job, key)
) STRICT, WITHOUT ROWID`,

	// state: 1 waiting, 2 running, 3 ended. session and nonce are of the last
	// claim, or of who wrote a run that nobody claimed yet, 0 for what a person
	// asked for. exclusive is 1 while a run is running exclusively, else NULL.
	// cancel is why a run that is running is told to end. term is the leader's that made the last claim, 0 where none did.
	`CREATE TABLE belfry_run (
  space INTEGER NOT NULL,
  due INTEGER NOT NULL,
  job TEXT NOT NULL,
  key BLOB NOT NULL,
  request BLOB NOT NULL,
  state INTEGER NOT NULL,
  outcome INTEGER NOT NULL DEFAULT 0,
  reason BLOB,
  text BLOB,
  payload BLOB,
  fence INTEGER NOT NULL,
  term INTEGER NOT NULL DEFAULT 0,
  attempt INTEGER NOT NULL DEFAULT 0,
  crashes INTEGER NOT NULL DEFAULT 0,
  session INTEGER NOT NULL,
  nonce INTEGER NOT NULL,
  exclusive INTEGER,
  cancel TEXT,
  wake INTEGER,
  started INTEGER,
  finished INTEGER,
  PRIMARY KEY (space, due, job, key, request)
) STRICT, WITHOUT ROWID`,
	`CREATE UNIQUE INDEX belfry_run_exclusive ON belfry_run (space, job, key) WHERE exclusive = 1`,
	`CREATE INDEX belfry_run_running ON belfry_run (session) WHERE state = 2`,
	// Who is busy asks whether another run of its key waits: thousands of others may. Only waiting runs pay for it.
	`CREATE INDEX belfry_run_queued ON belfry_run (space, job, key) WHERE state = 1`,
	`CREATE INDEX belfry_run_waiting ON belfry_run (space, due, job, key, request, wake) WHERE state = 1`,

	// A due of a job with keys; catch_up: as its decision said; by_hand: a person opened it; opened is NULL where one skipped it before;
	// closed is when it was; keys is how many its passes settled, where it is closed.
	`CREATE TABLE belfry_due (
  space INTEGER NOT NULL,
  due INTEGER NOT NULL,
  job TEXT NOT NULL,
  opened INTEGER,
  catch_up INTEGER NOT NULL,
  by_hand INTEGER NOT NULL DEFAULT 0,
  closed INTEGER,
  keys INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (space, due, job)
) STRICT, WITHOUT ROWID`,
	`CREATE INDEX belfry_due_open ON belfry_due (space, job, due) WHERE closed IS NULL`,

	`CREATE TABLE belfry_pass (
  space INTEGER NOT NULL,
  due INTEGER NOT NULL,
  job TEXT NOT NULL,
  session INTEGER NOT NULL,
  mine BLOB NOT NULL,
  finished BLOB NOT NULL,
  keys INTEGER NOT NULL,
  moved INTEGER NOT NULL,
  PRIMARY KEY (space, due, job, session)
) STRICT, WITHOUT ROWID`,

	`CREATE TABLE belfry_range (
  space INTEGER NOT NULL,
  low INTEGER NOT NULL,
  high INTEGER NOT NULL,
  job TEXT NOT NULL,
  id INTEGER NOT NULL,
  count INTEGER NOT NULL,
  outcome INTEGER NOT NULL,
  reason BLOB NOT NULL,
  PRIMARY KEY (space, low, high, job, id)
) STRICT, WITHOUT ROWID`,

	// What people asked for. The request of a command is not that of the run that it may name. due and last are the range of a backfill.
	`CREATE TABLE belfry_command (
  space INTEGER NOT NULL,
  request TEXT NOT NULL,
  kind INTEGER NOT NULL,
  job TEXT NOT NULL,
  key BLOB NOT NULL,
  due INTEGER,
  last INTEGER,
  run_request BLOB NOT NULL,
  actor BLOB NOT NULL,
  reason BLOB NOT NULL,
  at INTEGER NOT NULL,
  changed INTEGER NOT NULL,
  PRIMARY KEY (space, request)
) STRICT, WITHOUT ROWID`,
	`CREATE INDEX belfry_command_at ON belfry_command (space, at, request)`,

	// Who leads, or led last. until is when it resigned; why is why it began to lead or, where it resigned, why it did.
	`CREATE TABLE belfry_leader (
  space INTEGER PRIMARY KEY,
  term INTEGER NOT NULL,
  session INTEGER NOT NULL,
  since INTEGER NOT NULL,
  until INTEGER,
  why BLOB NOT NULL
) STRICT`,
}

// inspect reports whether the schema is there, and refuses any that is only
// half there or of another version.
func inspect(t *tx) (made bool, err error) {
	found := make(map[string]string) // text by name
	err = t.query(func(r *sql.Rows) error {
		var name, text string
		err := r.Scan(&name, &text)
		found[name] = text
		return err
	}, `SELECT name, sql FROM sqlite_schema WHERE name LIKE 'belfry\_%' ESCAPE '\' AND sql IS NOT NULL`)
	if err != nil || len(found) == 0 {
		return false, err
	}
	var v int
	if _, ok := found["belfry_store"]; ok {
		if _, err := t.get([]any{&v}, `SELECT version FROM belfry_store`); err != nil {
			return false, fmt.Errorf("its table belfry_store is not ours; use another file: %w", err)
		}
	}
	if v > version {
		return false, fmt.Errorf("its schema has version %d and this program knows %d; use a newer program", v, version)
	}
	for _, want := range schema {
		if name := object(want); found[name] != want {
			return false, fmt.Errorf("its schema is half made or was changed: %s is missing or not as it should be; restore a backup, or use another file", name)
		}
	}
	if v < version {
		return false, errors.New("its schema is half made: belfry_store has no row; restore a backup, or use another file")
	}
	return true, nil
}

// object is the name of what a statement of the schema makes.
func object(text string) string {
	i := strings.Index(text, "belfry_")
	return text[i : i+strings.IndexByte(text[i:], ' ')]
}

// firstRow is the statement that makes a schema a store, with an identity from a SQL expression.
func firstRow(id string) string {
	return fmt.Sprintf(`INSERT INTO belfry_store (one, version, id, last) VALUES (1, %d, %s, 0)`, version, id)
}

// create makes the schema, in the caller's transaction: of many processes that
// come at once the first makes it, whole, and the others find it.
func create(t *tx) error {
	for _, text := range append(slices.Clip(schema), firstRow("'"+rand.Text()+"'")) {
		if _, err := t.exec(text); err != nil {
			return err
		}
	}
	return nil
}
