package postgres

// schema makes the tables in an empty database, one statement each. Of every name the prefix belfry_ is replaced by
// Options.Prefix.
//
// Due instants are whole seconds, durations are microseconds, and NULL is none. What may be any bytes is bytea; names,
// which the contract bounds, are text in the order of their bytes.
//
// A run's key is led by the due, so that the runs of a night lie side by side whatever the order of their keys (a key
// led by the job made claims eight times slower at 10 million rows), and so that retention is a stretch of it.
//
// Rows that many calls at once look at are locked, in this order: space, session, leader, entry, due, run, running. Claims,
// decisions and passes lock what they rely on FOR KEY SHARE, which a renewal does not wait for; who ends something locks
// it FOR UPDATE first: a mark, a close and a Declare the session, a decision and a retirement the entry, a close the due, whoever
// drops or changes a namespace the space. A command locks its entry FOR NO KEY UPDATE, so that claims go on beside it. What tells
// a run to end locks its run before what holds the key. The row of belfry_control comes last of all.
var schema = []string{
	// All numbers are drawn from it: sessions, fences, ranges, first-seen counts. A cached block for each connection would
	// break the order of fences.
	`CREATE SEQUENCE belfry_number CACHE 1`,

	`CREATE TABLE belfry_store (
  one smallint PRIMARY KEY CHECK (one = 1),
  version integer NOT NULL,
  id text NOT NULL
)`,

	// A space is a namespace. pruned is the youngest instant of which Prune removed something.
	`CREATE TABLE belfry_space (
  id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  name text COLLATE "C" NOT NULL UNIQUE,
  partitions integer NOT NULL,
  pruned timestamptz
)`,

	// What changes of a space while claims rely on it. controls: see idempotency.Lag; counted is when Retire counted last;
	// horizon is that of the session that was opened last. A claim that tells a run to end changes it, so whoever does
	// makes that the last statement of its transaction.
	`CREATE TABLE belfry_control (
  controls bigint NOT NULL,
  counted timestamptz,
  horizon bigint NOT NULL,
  space integer PRIMARY KEY
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500)`,

	// declared is the nonce of the Declare that the definitions are of; changes counts how often they changed.
	`CREATE TABLE belfry_session (
  id bigint PRIMARY KEY,
  expires timestamptz NOT NULL,
  marked timestamptz,
  declared bigint NOT NULL DEFAULT 0,
  changes bigint NOT NULL DEFAULT 0,
  lease bigint NOT NULL,
  horizon bigint NOT NULL,
  retention bigint NOT NULL,
  tolerance bigint NOT NULL,
  space integer NOT NULL,
  replica bytea NOT NULL,
  boot bytea NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500)`,
	// Without expires, which each renewal changes.
	`CREATE INDEX belfry_session_unmarked ON belfry_session (space) WHERE marked IS NULL`,

	// Who leads, or led last; until is when that one resigned. Whether it leads still, its session's row says.
	`CREATE TABLE belfry_leader (
  term bigint NOT NULL,
  session bigint NOT NULL,
  since timestamptz NOT NULL,
  until timestamptz,
  space integer PRIMARY KEY,
  why bytea NOT NULL
)`,

	// first says when the job's hash was first seen, as in belfry_seen.
	`CREATE TABLE belfry_definition (
  session bigint NOT NULL,
  revision bigint NOT NULL,
  first bigint NOT NULL,
  keyed boolean NOT NULL,
  leader boolean NOT NULL,
  job text COLLATE "C" NOT NULL,
  schedule bytea NOT NULL,
  hash bytea NOT NULL,
  PRIMARY KEY (session, job)
)`,

	`CREATE TABLE belfry_seen (
  first bigint NOT NULL,
  space integer NOT NULL,
  job text COLLATE "C" NOT NULL,
  hash bytea NOT NULL,
  PRIMARY KEY (space, job, hash)
)`,

	// absent is for how long nobody has announced the job, as Retire counts it; retired is when that was too long.
	`CREATE TABLE belfry_entry (
  opened timestamptz,
  next timestamptz,
  paused_from timestamptz,
  paused_until timestamptz,
  retired timestamptz,
  absent bigint NOT NULL DEFAULT 0,
  revision bigint NOT NULL,
  space integer NOT NULL,
  keyed boolean NOT NULL,
  leader boolean NOT NULL,
  job text COLLATE "C" NOT NULL,
  key bytea NOT NULL,
  schedule bytea NOT NULL,
  hash bytea NOT NULL,
  PRIMARY KEY (space, job, key)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 500)`,

	// The nonce under which a session last won a decision of an entry.
	`CREATE TABLE belfry_decision (
  session bigint NOT NULL,
  nonce bigint NOT NULL,
  job text COLLATE "C" NOT NULL,
  key bytea NOT NULL,
  PRIMARY KEY (session, job, key)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.1, autovacuum_vacuum_threshold = 500)`,

	// A due of a job with keys; catch_up: as its decision said; by_hand: a command has opened it; closed is when it was, and keys what its passes had settled then.
	// opened is NULL where it was never: then a command has skipped it.
	`CREATE TABLE belfry_due (
  due timestamptz NOT NULL,
  opened timestamptz,
  closed timestamptz,
  keys bigint NOT NULL DEFAULT 0,
  space integer NOT NULL,
  catch_up boolean NOT NULL,
  by_hand boolean NOT NULL DEFAULT false,
  job text COLLATE "C" NOT NULL,
  PRIMARY KEY (space, due, job)
)`,
	`CREATE INDEX belfry_due_open ON belfry_due (space, job, due) WHERE closed IS NULL`,

	`CREATE TABLE belfry_pass (
  due timestamptz NOT NULL,
  session bigint NOT NULL,
  keys bigint NOT NULL,
  moved timestamptz NOT NULL,
  space integer NOT NULL,
  job text COLLATE "C" NOT NULL,
  mine bytea NOT NULL,
  finished bytea NOT NULL,
  PRIMARY KEY (space, due, job, session)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 500)`,

	`CREATE TABLE belfry_range (
  low timestamptz NOT NULL,
  high timestamptz NOT NULL,
  id bigint NOT NULL,
  count bigint NOT NULL,
  space integer NOT NULL,
  outcome smallint NOT NULL,
  job text COLLATE "C" NOT NULL,
  reason bytea NOT NULL,
  PRIMARY KEY (space, low, high, job, id)
)`,

	// state: 1 waiting, 2 running, 3 ended. session and nonce are of the last claim, or of who wrote a run that nobody
	// claimed yet, 0 of a command; replica is the name of that session's. term is the leader's who made the last claim, NULL where that
	// was none: so it takes no space in most rows. wake is set only where the run waits, cancel only where it
	// is running and told to end: 1 canceled, 2 overtaken. It stands here and not beside what holds the key, so that whoever ends
	// or takes up the run, who locks this row, sees it.
	//
	// Half of each page stays free for the new version that the end of a run makes of its row: so long as nothing that an
	// index has changes, it needs no new index entry. That is why there is no index on state.
	`CREATE TABLE belfry_run (
  due timestamptz NOT NULL,
  fence bigint NOT NULL,
  session bigint NOT NULL,
  nonce bigint NOT NULL,
  term bigint,
  wake timestamptz,
  started timestamptz,
  finished timestamptz,
  space integer NOT NULL,
  attempt integer NOT NULL DEFAULT 0,
  crashes integer NOT NULL DEFAULT 0,
  state smallint NOT NULL,
  outcome smallint NOT NULL DEFAULT 0,
  cancel smallint,
  exclusive boolean NOT NULL,
  job text COLLATE "C" NOT NULL,
  key bytea NOT NULL,
  request bytea NOT NULL,
  replica bytea NOT NULL,
  reason bytea,
  text bytea,
  payload bytea,
  PRIMARY KEY (space, due, job, key, request)
) WITH (fillfactor = 50, autovacuum_vacuum_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05)`,
	`CREATE INDEX belfry_run_waiting ON belfry_run (space, due, job, key, request, wake) WHERE wake IS NOT NULL`,

	// One small row for each run that is running: so the sweep finds those of sessions that are not live, and so a run
	// holds its key. slot is empty where the run is exclusive, else due and request: the primary key lets one exclusive
	// run of a key run at a time, and any number of others. All of its rows are deleted soon.
	`CREATE TABLE belfry_running (
  due timestamptz NOT NULL,
  session bigint NOT NULL,
  space integer NOT NULL,
  job text COLLATE "C" NOT NULL,
  key bytea NOT NULL,
  slot bytea NOT NULL,
  request bytea NOT NULL,
  PRIMARY KEY (space, job, key, slot)
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_cost_delay = 0)`,

	// The records of commands; name is the command's request, request that of the run that it is about. due and last are the
	// range of a backfill.
	`CREATE TABLE belfry_command (
  at timestamptz NOT NULL,
  due timestamptz,
  last timestamptz,
  space integer NOT NULL,
  changed integer NOT NULL,
  kind smallint NOT NULL,
  name text COLLATE "C" NOT NULL,
  job text COLLATE "C" NOT NULL,
  key bytea NOT NULL,
  request bytea NOT NULL,
  actor bytea NOT NULL,
  reason bytea NOT NULL,
  PRIMARY KEY (space, name)
)`,
	`CREATE INDEX belfry_command_at ON belfry_command (space, at, name)`,
}
