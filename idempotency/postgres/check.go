package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/belfry-go/belfry/idempotency"
)

// oldest is the first PostgreSQL that is taken, as server_version_num: the oldest that was still maintained in 2026.
const oldest = 140000

// finding is something about a server that is not as a store needs it.
type finding struct {
	what, mend string
	loses      bool // acknowledged commits may be lost by it: what AllowLossy allows
	warns      bool // a store works nevertheless
}

// refuse is an error that only an operator can mend.
func refuse(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{idempotency.ErrRefused}, args...)...)
}

// server is what a server says about itself, to a connection as the store's are.
type server struct {
	version                  int
	syncCommit, standbys     string
	fsync, fullPages         string
	recovering               bool
	readOnly, readOnlyFrom   string
	encoding, clientEncoding string
	database, user, schema   string
}

// ask reads them. What another engine does not know stays empty, and is not judged.
func (s *server) ask(t *tx) error {
	_, err := t.get([]any{&s.version,
		&s.syncCommit, &s.standbys, &s.fsync, &s.fullPages, &s.recovering, &s.readOnly, &s.readOnlyFrom,
		&s.encoding, &s.clientEncoding, &s.database, &s.user, &s.schema}, `SELECT current_setting('server_version_num')::int,
coalesce(current_setting('synchronous_commit', true), ''), coalesce(current_setting('synchronous_standby_names', true), ''),
coalesce(current_setting('fsync', true), ''), coalesce(current_setting('full_page_writes', true), ''),
pg_is_in_recovery(),
coalesce(current_setting('default_transaction_read_only', true), ''),
coalesce((select source from pg_settings where name = 'default_transaction_read_only'), ''),
coalesce(current_setting('server_encoding', true), ''), coalesce(current_setting('client_encoding', true), ''),
current_database(), current_user, coalesce(current_schema(), '')`)
	return err
}

// findings are about what a server is told to do, whatever is in it.
func (s *server) findings() (all []finding) {
	add := func(when bool, f finding) {
		if when {
			all = append(all, f)
		}
	}
	add(s.version < oldest, finding{
		what: fmt.Sprintf("the server is PostgreSQL %d.%d", s.version/10000, s.version%10000),
		mend: fmt.Sprintf("upgrade it to %d or later", oldest/10000)})
	add(s.recovering, finding{
		what: "the server is a standby, which nobody can write to",
		mend: "connect to the primary: give all hosts, and target_session_attrs=read-write"})
	// A role or a client that is read-only by its own setting is so for others' sake: a store's transactions say
	// what they are. But whoever makes a server or a database read-only means everybody.
	personal := []string{"user", "database user", "client", "session"}
	add(s.readOnly == "on" && !slices.Contains(personal, s.readOnlyFrom), finding{
		what: fmt.Sprintf("database %q is read-only: default_transaction_read_only is on, by the %s", s.database, s.readOnlyFrom),
		mend: "find out why before you set it off"})
	add(s.encoding != "" && s.encoding != "UTF8", finding{
		what: fmt.Sprintf("database %q has the encoding %s, which cannot hold all text", s.database, s.encoding),
		mend: "use one with ENCODING 'UTF8'"})
	add(s.clientEncoding != "" && s.clientEncoding != "UTF8" && s.clientEncoding != "UNICODE", finding{
		what: fmt.Sprintf("client_encoding is %s", s.clientEncoding),
		mend: "ALTER ROLE " + quote(s.user) + " SET client_encoding = 'UTF8', or leave it out of the connection string"})
	return append(all, s.losses()...)
}

// losses are findings about what is on the disk when the power fails.
func (s *server) losses() (all []finding) {
	switch {
	case s.syncCommit == "off":
		all = append(all, finding{loses: true,
			what: "synchronous_commit is off: a crash of the server loses commits that it has acknowledged, and what was done would be done again",
			mend: "ALTER ROLE " + quote(s.user) + " SET synchronous_commit = on, or open with AllowLossy"})
	case s.syncCommit == "local" && s.standbys != "":
		all = append(all, finding{warns: true,
			what: "synchronous_commit is local although there are synchronous standbys: a failover may lose the last commits",
			mend: "ALTER ROLE " + quote(s.user) + " SET synchronous_commit = on"})
	}
	if s.fsync == "off" {
		all = append(all, finding{loses: true,
			what: "fsync is off: a loss of power may destroy the database",
			mend: "ALTER SYSTEM SET fsync = on, then SELECT pg_reload_conf(), or open with AllowLossy"})
	}
	if s.fullPages == "off" {
		all = append(all, finding{warns: true,
			what: "full_page_writes is off: a loss of power may leave torn pages, unless the file system writes whole ones",
			mend: "ALTER SYSTEM SET full_page_writes = on, then SELECT pg_reload_conf()"})
	}
	return all
}

// refusals joins what the findings forbid.
func refusals(all []finding, lossy bool) error {
	var errs []error
	for _, f := range all {
		if !f.warns && !(f.loses && lossy) {
			errs = append(errs, refuse("%s; %s", f.what, f.mend))
		}
	}
	return errors.Join(errs...)
}

// warn logs the findings, none of which forbids a store.
func warn(ctx context.Context, log *slog.Logger, all []finding) {
	for _, f := range all {
		log.WarnContext(ctx, "postgres: the server is not set up as a store should have it", "problem", f.what, "mend", f.mend)
	}
}

func quote(name string) string { return pgx.Identifier{name}.Sanitize() }
