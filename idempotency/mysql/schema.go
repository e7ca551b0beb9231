package mysql

// schema makes the tables, one statement each; belfry_ stands for the prefix.
//
// Instants are microseconds since 1970, dues seconds, durations nanoseconds, and NULL is none. All strings are bytes.
// A run's key is led by the due, so that the runs of a night lie side by side whatever the order of their keys, and so
// that retention is a stretch of it; and it is the only index of belfry_run: InnoDB has no partial ones, and a full one
// over the keys of all nights would be torn at random. What is looked for in other ways, runs that have not ended, has
// small tables of its own.
var schema = []string{
	// migrating is the version that the schema is on its way to, 0 if none.
	`CREATE TABLE belfry_store (
  one TINYINT NOT NULL PRIMARY KEY,
  version INT NOT NULL,
  migrating INT NOT NULL DEFAULT 0,
  id VARBINARY(64) NOT NULL
)` + engine,

	// Numbers are drawn here: one for each batch of claims. A row is one that was drawn. The counter is no row, so
	// nobody waits for the commit of another who draws.
	`CREATE TABLE belfry_sequence (
  n BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY
)` + engine,

	// A space is a namespace.
	`CREATE TABLE belfry_space (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  name VARBINARY(64) NOT NULL,
  partitions INT NOT NULL,
  UNIQUE KEY name (name)
)` + engine,

	// What changes of a namespace as a whole: a row beside the space's, so that whoever only looks the space up waits for
	// nobody. controls counts what people asked for and runs that were told to end; counted is when jobs without a replica
	// were last counted; pruned is the highest instant of all that retention has removed.
	`CREATE TABLE belfry_control (
  space BIGINT NOT NULL PRIMARY KEY,
  controls BIGINT NOT NULL DEFAULT 0,
  counted BIGINT,
  pruned BIGINT
)` + engine,

	// What people asked for. due is NULL where the command names none; due and last are the range of a backfill.
	`CREATE TABLE belfry_command (
  space BIGINT NOT NULL,
  name VARBINARY(64) NOT NULL,
  at BIGINT NOT NULL,
  kind TINYINT NOT NULL,
  job VARBINARY(64) NOT NULL,
  run_key VARBINARY(255) NOT NULL,
  due BIGINT,
  last BIGINT,
  request VARBINARY(255) NOT NULL,
  actor VARBINARY(255) NOT NULL,
  reason MEDIUMBLOB NOT NULL,
  changed INT NOT NULL,
  PRIMARY KEY (space, name),
  KEY at (space, at, name)
)` + engine,

	// What claims lock, shared, for as long as they last.
	`CREATE TABLE belfry_session (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  space BIGINT NOT NULL,
  replica VARBINARY(255) NOT NULL,
  boot VARBINARY(255) NOT NULL,
  lease BIGINT NOT NULL,
  horizon BIGINT NOT NULL,
  retention BIGINT NOT NULL,
  tolerance BIGINT NOT NULL,
  marked BIGINT,
  declared BIGINT NOT NULL DEFAULT 0,
  KEY space (space)
)` + engine,

	// What renewals write: a row beside the session's, so that they and claims never wait for each other. marked is
	// the session's.
	`CREATE TABLE belfry_lease (
  session BIGINT NOT NULL PRIMARY KEY,
  expires BIGINT NOT NULL,
  marked BIGINT
)` + engine,

	// Who leads a namespace, or led it last; there is none where nobody has. until is NULL where it leads, or led until its
	// session ended: that is not written here. The replica's name is its session's, which Prune keeps for this.
	`CREATE TABLE belfry_leader (
  space BIGINT NOT NULL PRIMARY KEY,
  term BIGINT NOT NULL,
  session BIGINT NOT NULL,
  since BIGINT NOT NULL,
  until BIGINT,
  why VARBINARY(522) NOT NULL
)` + engine,

	`CREATE TABLE belfry_definition (
  session BIGINT NOT NULL,
  job VARBINARY(64) NOT NULL,
  schedule MEDIUMBLOB NOT NULL,
  hash VARBINARY(255) NOT NULL,
  revision BIGINT NOT NULL,
  keyed TINYINT NOT NULL,
  leader TINYINT NOT NULL,
  PRIMARY KEY (session, job)
)` + engine,

	// drawn is when the definition was first seen.
	`CREATE TABLE belfry_seen (
  space BIGINT NOT NULL,
  job VARBINARY(64) NOT NULL,
  hash VARBINARY(255) NOT NULL,
  drawn BIGINT NOT NULL,
  PRIMARY KEY (space, job, hash)
)` + engine,

	// opened is NULL where the store decides no dues. absent is for how long nobody has announced the job.
	`CREATE TABLE belfry_entry (
  space BIGINT NOT NULL,
  job VARBINARY(64) NOT NULL,
  run_key VARBINARY(255) NOT NULL,
  schedule MEDIUMBLOB NOT NULL,
  hash VARBINARY(255) NOT NULL,
  revision BIGINT NOT NULL,
  keyed TINYINT NOT NULL,
  leader TINYINT NOT NULL,
  opened BIGINT,
  next BIGINT,
  paused_from BIGINT,
  paused_until BIGINT,
  absent BIGINT NOT NULL DEFAULT 0,
  retired BIGINT,
  PRIMARY KEY (space, job, run_key)
)` + engine,

	// The nonce under which a session last won a decision of an entry.
	`CREATE TABLE belfry_decision (
  session BIGINT NOT NULL,
  job VARBINARY(64) NOT NULL,
  run_key VARBINARY(255) NOT NULL,
  nonce BIGINT NOT NULL,
  PRIMARY KEY (session, job, run_key)
)` + engine,

	// state: 1 waiting, 2 running, 3 ended; at is when it is to wake, 0, or when it ended. session, replica, nonce and term are
	// of the last claim, or of who wrote a run that nobody claimed yet: then fence and started are 0. The replica's name
	// stands here, so that a run outlives the session's row. cancel, where running, is why the run is told to end (see
	// cancels): it stands here and not in belfry_running, so that a finish sees it where it looks anyway. A plain finish changes no column's length: a row that grows
	// in a full page costs three times as much.
	`CREATE TABLE belfry_run (
  space BIGINT NOT NULL,
  due BIGINT NOT NULL,
  job VARBINARY(64) NOT NULL,
  run_key VARBINARY(255) NOT NULL,
  request VARBINARY(255) NOT NULL,
  state TINYINT NOT NULL DEFAULT 0,
  outcome TINYINT NOT NULL DEFAULT 0,
  fence BIGINT NOT NULL DEFAULT 0,
  term BIGINT NOT NULL DEFAULT 0,
  attempt INT NOT NULL DEFAULT 0,
  crashes INT NOT NULL DEFAULT 0,
  cancel TINYINT NOT NULL DEFAULT 0,
  session BIGINT NOT NULL DEFAULT 0,
  nonce BIGINT NOT NULL DEFAULT 0,
  started BIGINT NOT NULL DEFAULT 0,
  at BIGINT NOT NULL DEFAULT 0,
  replica VARBINARY(255) NOT NULL DEFAULT '',
  reason VARBINARY(255),
  text MEDIUMBLOB,
  payload MEDIUMBLOB,
  PRIMARY KEY (space, due, job, run_key, request)
)` + engine,

	// A row for each run that is running. slot is empty where it runs exclusively, which makes a second such row of the
	// key impossible; else it is the rest of the run's name (see slotOf).
	`CREATE TABLE belfry_running (
  space BIGINT NOT NULL,
  job VARBINARY(64) NOT NULL,
  run_key VARBINARY(255) NOT NULL,
  slot VARBINARY(263) NOT NULL,
  due BIGINT NOT NULL,
  request VARBINARY(255) NOT NULL,
  session BIGINT NOT NULL,
  PRIMARY KEY (space, job, run_key, slot),
  KEY session (space, session)
)` + engine,

	// A row for each run that is waiting. By its key one asks whether another run of it waits.
	`CREATE TABLE belfry_waiting (
  space BIGINT NOT NULL,
  due BIGINT NOT NULL,
  job VARBINARY(64) NOT NULL,
  run_key VARBINARY(255) NOT NULL,
  request VARBINARY(255) NOT NULL,
  wake BIGINT NOT NULL,
  PRIMARY KEY (space, due, job, run_key, request),
  KEY run_key (space, job, run_key, due)
)` + engine,

	// A due of a job with keys; catch_up: as its decision said; by_hand: a person opened it; opened is 0 where one skipped it before; closed is when it
	// was, 0 while it is open; settled is how many keys
	// its passes then had.
	`CREATE TABLE belfry_due (
  space BIGINT NOT NULL,
  due BIGINT NOT NULL,
  job VARBINARY(64) NOT NULL,
  opened BIGINT NOT NULL,
  catch_up TINYINT NOT NULL,
  by_hand TINYINT NOT NULL DEFAULT 0,
  closed BIGINT NOT NULL DEFAULT 0,
  settled BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (space, due, job),
  KEY closed (space, closed, job, due)
)` + engine,

	`CREATE TABLE belfry_pass (
  space BIGINT NOT NULL,
  due BIGINT NOT NULL,
  job VARBINARY(64) NOT NULL,
  session BIGINT NOT NULL,
  mine BLOB NOT NULL,
  finished BLOB NOT NULL,
  settled BIGINT NOT NULL,
  moved BIGINT NOT NULL,
  PRIMARY KEY (space, due, job, session)
)` + engine,

	`CREATE TABLE belfry_range (
  space BIGINT NOT NULL,
  low BIGINT NOT NULL,
  high BIGINT NOT NULL,
  job VARBINARY(64) NOT NULL,
  id BIGINT NOT NULL,
  dues BIGINT NOT NULL,
  outcome TINYINT NOT NULL,
  reason VARBINARY(255) NOT NULL,
  PRIMARY KEY (space, low, high, job, id)
)` + engine,
}

// Only InnoDB has transactions, and DYNAMIC rows take keys of over 767 bytes. No column has a charset; this one is of
// the table's own words.
const engine = ` ENGINE=InnoDB ROW_FORMAT=DYNAMIC DEFAULT CHARACTER SET ascii COLLATE ascii_bin`
