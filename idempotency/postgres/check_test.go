package postgres

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/testservers"
)

// F71, F40: each setting that a store cannot live with is refused with what mends it, and no other.
func TestFindings(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		change func(*server)
		want   string // of the error; empty: none
		lossy  string // of the error with AllowLossy
		warned string
	}{
		{"Good", func(*server) {}, "", "", ""},
		{"Synchronous", func(s *server) { s.syncCommit, s.standbys = "remote_apply", "*" }, "", "", ""},
		{"RemoteWrite", func(s *server) { s.syncCommit, s.standbys = "remote_write", "*" }, "", "", ""},
		{"LocalAlone", func(s *server) { s.syncCommit = "local" }, "", "", ""},
		{"LocalBesideStandbys", func(s *server) { s.syncCommit, s.standbys = "local", "*" }, "", "", "a failover may lose the last commits"},
		{"Asynchronous", func(s *server) { s.syncCommit = "off" }, `ALTER ROLE "app" SET synchronous_commit = on, or open with AllowLossy`, "", "synchronous_commit is off"},
		{"NoSync", func(s *server) { s.fsync = "off" }, "ALTER SYSTEM SET fsync = on", "", "fsync is off"},
		{"TornPages", func(s *server) { s.fullPages = "off" }, "", "", "full_page_writes is off"},
		{"Old", func(s *server) { s.version = 130022 }, "PostgreSQL 13.22; upgrade it to 14 or later", "upgrade", ""},
		{"Oldest", func(s *server) { s.version = 140000 }, "", "", ""},
		{"Standby", func(s *server) { s.recovering = true }, "connect to the primary", "standby", ""},
		{"ReadOnlyServer", func(s *server) { s.readOnly, s.readOnlyFrom = "on", "configuration file" }, `"shop" is read-only: default_transaction_read_only is on, by the configuration file`, "read-only", ""},
		{"ReadOnlyDatabase", func(s *server) { s.readOnly, s.readOnlyFrom = "on", "database" }, "by the database; find out why", "read-only", ""},
		{"ReadOnlyRole", func(s *server) { s.readOnly, s.readOnlyFrom = "on", "user" }, "", "", ""},
		{"ReadOnlyClient", func(s *server) { s.readOnly, s.readOnlyFrom = "on", "client" }, "", "", ""},
		{"Latin", func(s *server) { s.encoding = "LATIN1" }, "encoding LATIN1, which cannot hold all text; use one with ENCODING 'UTF8'", "LATIN1", ""},
		{"LatinClient", func(s *server) { s.clientEncoding = "LATIN1" }, `ALTER ROLE "app" SET client_encoding = 'UTF8'`, "client_encoding", ""},
		{"OtherEngine", func(s *server) { *s = server{version: 150000} }, "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := server{
				version: 150004, syncCommit: "on", fsync: "on", fullPages: "on", readOnly: "off", readOnlyFrom: "default",
				encoding: "UTF8", clientEncoding: "UTF8", database: "shop", user: "app", schema: "public",
			}
			c.change(&s)
			all := s.findings()
			for lossy, want := range map[bool]string{false: c.want, true: c.lossy} {
				err := refusals(all, lossy)
				if (err != nil) != (want != "") || err != nil && (!errors.Is(err, idempotency.ErrRefused) || !strings.Contains(err.Error(), want)) {
					t.Errorf("allow lossy %v: %v, want %q", lossy, err, want)
				}
			}
			if refusals(all, true) != nil {
				return
			}
			var log strings.Builder
			warn(t.Context(), slog.New(slog.NewTextHandler(&log, nil)), all)
			if (log.String() == "") != (c.warned == "") || !strings.Contains(log.String(), c.warned) {
				t.Errorf("logged is %q, want %q", log.String(), c.warned)
			}
		})
	}
}

// F71: what a server says is understood, whoever says it: the server, the database or the role.
func TestOpenChecksTheServer(t *testing.T) {
	t.Parallel()
	s := testservers.StartPostgres(t, testservers.Options{Args: []string{"-c", "fsync=off", "-c", "full_page_writes=off"}})
	d := s.Database(t)
	admin := pool(t, d)
	run(t, admin, `CREATE ROLE lax LOGIN SUPERUSER`, `ALTER ROLE lax SET synchronous_commit = off`)
	p := pool(t, d, func(c *pgxpool.Config) { c.ConnConfig.User = "lax" })
	_, err := Open(t.Context(), p, nil)
	for _, want := range []string{"fsync is off", "synchronous_commit is off", `ALTER ROLE "lax" SET synchronous_commit = on`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
	var log strings.Builder
	o := &Options{AllowLossy: true, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	openAt(t, p, o, serverClock)
	for _, want := range []string{"fsync is off", "synchronous_commit is off", "full_page_writes is off", "a new store was made"} {
		if strings.Count(log.String(), want) != 1 {
			t.Errorf("the log\n%slacks %q, or has it more than once", log.String(), want)
		}
	}
	// F40
	run(t, admin, fmt.Sprintf(`ALTER DATABASE %s SET default_transaction_read_only = on`, d.Name))
	p = pool(t, d)
	if _, err := Open(t.Context(), p, o); err == nil || !strings.Contains(err.Error(), "is read-only: default_transaction_read_only is on, by the database") {
		t.Errorf("a read-only database: %v", err)
	}
	run(t, p, `SET default_transaction_read_only = off`, fmt.Sprintf(`ALTER DATABASE %s RESET default_transaction_read_only`, d.Name), `ALTER ROLE postgres SET default_transaction_read_only = on`)
	openAt(t, pool(t, d), o, serverClock)
}
