package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"strings"

	"github.com/belfry-go/belfry/idempotency"
)

// The first versions that are taken: of MySQL the first that makes or drops a table whole or not at all, of MariaDB
// the first that also has JSON_TABLE.
var (
	oldestMySQL   = [2]int{8, 0}
	oldestMariaDB = [2]int{10, 6}
)

// leastPacket is the least max_allowed_packet: twice as much as the largest row needs.
const leastPacket = 1 << 20

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

// server is what a server says about itself: its global variables by name, and "database". What it does not have is
// empty, and not judged.
type server map[string]string

// asked are the variables that findings judges.
var asked = []string{
	"version", "innodb_flush_log_at_trx_commit", "innodb_flush_method", "innodb_doublewrite", "log_bin", "sync_binlog", "read_only", "super_read_only",
	"max_allowed_packet", "auto_increment_increment", "wsrep_on",
}

func (s server) ask(t *tx) error {
	var database sql.NullString
	if _, err := t.get([]any{&database}, `SELECT DATABASE()`); err != nil {
		return err
	}
	s["database"] = database.String
	return t.query(func(r *sql.Rows) error {
		var name, value string
		err := r.Scan(&name, &value)
		s[strings.ToLower(name)] = value
		return err
	}, `SHOW GLOBAL VARIABLES WHERE Variable_name IN ('`+strings.Join(asked, `', '`)+`')`)
}

func (s server) on(name string) bool { return s[name] == "ON" || s[name] == "1" }

func (s server) number(name string) (n int) {
	fmt.Sscan(s[name], &n)
	return n
}

// findings are about what a server is told to do, whatever is in it.
func (s server) findings() (all []finding) {
	if f, old := s.old(); old {
		all = append(all, f)
	}
	if s["database"] == "" {
		all = append(all, finding{what: "the connection has no database", mend: "put its name behind the / of the DSN"})
	}
	for _, name := range []string{"read_only", "super_read_only"} {
		if s.on(name) {
			all = append(all, finding{
				what: name + " is on: the server is a replica, or closed for writing",
				mend: "connect to the primary, or find out why before you set it off"})
			break
		}
	}
	if n := s.number("max_allowed_packet"); n > 0 && n < leastPacket {
		all = append(all, finding{
			what: fmt.Sprintf("max_allowed_packet is %d, and one row may be larger", n),
			mend: fmt.Sprintf("SET GLOBAL max_allowed_packet = %d, and set it in the server's configuration", leastPacket)})
	}
	if s.on("wsrep_on") || s.number("auto_increment_increment") > 1 {
		all = append(all, finding{warns: true,
			what: "the server is set up as one of several that are written to (wsrep_on, auto_increment_increment); fences rise on each alone, and not across them",
			mend: "let all replicas write to the same one"})
	}
	return append(all, s.losses()...)
}

// losses are findings about what is on the disk when the power fails.
func (s server) losses() (all []finding) {
	// 3 is MariaDB's: 1 with one more flush.
	if v := s["innodb_flush_log_at_trx_commit"]; v == "0" || v == "2" {
		all = append(all, finding{loses: true,
			what: "innodb_flush_log_at_trx_commit is " + v + ": a crash loses commits that the server has acknowledged, and what was done would be done again",
			mend: "SET GLOBAL innodb_flush_log_at_trx_commit = 1 and set it in the server's configuration, or open with AllowLossy"})
	}
	if v := strings.ToLower(s["innodb_flush_method"]); v == "nosync" || v == "littlesync" {
		all = append(all, finding{loses: true,
			what: "innodb_flush_method is " + v + ": a loss of power loses commits that the server has acknowledged, and what was done would be done again",
			mend: "set innodb_flush_method = O_DIRECT or fsync in the server's configuration and restart it, or open with AllowLossy"})
	}
	// With a binary log, recovery rolls back what has not reached it, whatever InnoDB's log says.
	if v := s["sync_binlog"]; s.on("log_bin") && v != "1" {
		all = append(all, finding{loses: true,
			what: "log_bin is on and sync_binlog is " + v + ": after a loss of power, recovery rolls back commits that the server has acknowledged but not yet synced to its binary log",
			mend: "SET GLOBAL sync_binlog = 1 and set it in the server's configuration, or open with AllowLossy"})
	}
	if v := s["innodb_doublewrite"]; v == "OFF" || v == "0" || v == "DETECT_ONLY" {
		all = append(all, finding{warns: true,
			what: "innodb_doublewrite is " + v + ": a loss of power may leave torn pages, unless the file system writes whole ones",
			mend: "set innodb_doublewrite = ON in the server's configuration, and restart it"})
	}
	return all
}

// old finds a server that is too old. Wire-compatible proxies put MySQL's number before MariaDB's: 5.5.5-10.11.6-MariaDB.
func (s server) old() (f finding, old bool) {
	engine, least := "MySQL", oldestMySQL
	v := s["version"]
	if strings.Contains(v, "MariaDB") {
		engine, least = "MariaDB", oldestMariaDB
		v = strings.TrimPrefix(v, "5.5.5-")
	}
	var have [2]int
	if _, err := fmt.Sscanf(v, "%d.%d", &have[0], &have[1]); err != nil {
		return finding{what: fmt.Sprintf("the server has the version %q, which is none", s["version"]), mend: "use MySQL or MariaDB"}, true
	}
	f = finding{
		what: fmt.Sprintf("the server is %s %d.%d", engine, have[0], have[1]),
		mend: fmt.Sprintf("upgrade it to %d.%d or later", least[0], least[1])}
	return f, have[0] < least[0] || have[0] == least[0] && have[1] < least[1]
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
		log.WarnContext(ctx, "mysql: the server is not set up as a store should have it", "problem", f.what, "mend", f.mend)
	}
}
