package mysql

import (
	"errors"
	"log/slog"
	"maps"
	"strings"
	"testing"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/testservers"
)

// F71, F40: each setting that a store cannot live with is refused with what mends it, and no other.
func TestFindings(t *testing.T) {
	t.Parallel()
	good := server{
		"database": "shop", "version": "8.0.36", "innodb_flush_log_at_trx_commit": "1", "innodb_doublewrite": "ON", "log_bin": "ON", "sync_binlog": "1",
		"read_only": "OFF", "super_read_only": "OFF", "max_allowed_packet": "67108864", "auto_increment_increment": "1",
	}
	for _, c := range []struct {
		name   string
		change server
		want   string // of the error; empty: none
		lossy  string // of the error with AllowLossy
		warned string
	}{
		{"Good", nil, "", "", ""},
		{"MariaDB", server{"version": "10.11.6-MariaDB-0+deb12u1", "log_bin": "OFF", "sync_binlog": "0", "super_read_only": "", "wsrep_on": "OFF"}, "", "", ""},
		{"MariaDBBehindMySQLsNumber", server{"version": "5.5.5-10.11.6-MariaDB"}, "", "", ""},
		{"ThreeFlushes", server{"innodb_flush_log_at_trx_commit": "3"}, "", "", ""},
		{"OldMySQL", server{"version": "5.7.44-log"}, "MySQL 5.7; upgrade it to 8.0", "upgrade", ""},
		{"OldMariaDB", server{"version": "10.5.23-MariaDB"}, "MariaDB 10.5; upgrade it to 10.6", "upgrade", ""},
		{"NoVersion", server{"version": "TiDB"}, `the version "TiDB"`, "use MySQL or MariaDB", ""},
		{"NoDatabase", server{"database": ""}, "no database; put its name", "no database", ""},
		{"ReadOnly", server{"read_only": "ON"}, "read_only is on: the server is a replica", "read_only", ""},
		{"SuperReadOnly", server{"read_only": "ON", "super_read_only": "ON"}, "connect to the primary", "read_only", ""},
		{"SmallPackets", server{"max_allowed_packet": "65536"}, "SET GLOBAL max_allowed_packet = 1048576", "max_allowed_packet", ""},
		{"FlushesEachSecond", server{"innodb_flush_log_at_trx_commit": "0"}, "SET GLOBAL innodb_flush_log_at_trx_commit = 1", "", "innodb_flush_log_at_trx_commit is 0"},
		{"WritesOnly", server{"innodb_flush_log_at_trx_commit": "2"}, "or open with AllowLossy", "", "innodb_flush_log_at_trx_commit is 2"},
		{"NoSync", server{"innodb_flush_method": "nosync"}, "innodb_flush_method = O_DIRECT", "", "innodb_flush_method is nosync"},
		{"LittleSync", server{"innodb_flush_method": "LITTLESYNC"}, "or open with AllowLossy", "", "innodb_flush_method is littlesync"},
		{"Direct", server{"innodb_flush_method": "O_DIRECT"}, "", "", ""},
		{"LaggingBinlog", server{"sync_binlog": "100"}, "SET GLOBAL sync_binlog = 1", "", "sync_binlog is 100"},
		{"TornPages", server{"innodb_doublewrite": "OFF"}, "", "", "innodb_doublewrite is OFF"},
		{"SeveralPrimaries", server{"auto_increment_increment": "3", "wsrep_on": "ON"}, "", "", "let all replicas write to the same one"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			s := maps.Clone(good)
			maps.Copy(s, c.change)
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

// F71, F40: what a server says is understood.
func TestOpenChecksTheServer(t *testing.T) {
	t.Parallel()
	s := testservers.StartMariaDB(t, testservers.Options{Args: []string{
		"--innodb-flush-log-at-trx-commit=2", "--log-bin=log", "--sync-binlog=0", "--innodb-doublewrite=0", "--max-allowed-packet=65536",
	}})
	db := client(t, s.Database(t), "")
	_, err := Open(t.Context(), db, nil)
	for _, want := range []string{"innodb_flush_log_at_trx_commit is 2", "sync_binlog is 0", "max_allowed_packet is 65536"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one that says %q", err, want)
		}
	}
	for _, text := range []string{"SET GLOBAL max_allowed_packet = 16777216", "SET GLOBAL read_only = 1"} {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	var log strings.Builder
	o := &Options{AllowLossy: true, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	db = client(t, s.Database(t), "") // the packet's size is a connection's from its beginning
	if _, err := Open(t.Context(), db, o); err == nil || !strings.Contains(err.Error(), "read_only is on") {
		t.Errorf("error %v, want one that says that the server is read-only", err)
	}
	if _, err := db.ExecContext(t.Context(), "SET GLOBAL read_only = 0"); err != nil {
		t.Fatal(err)
	}
	openOn(t, db, o)
	for _, want := range []string{"innodb_flush_log_at_trx_commit is 2", "sync_binlog is 0", "innodb_doublewrite is", "a new store was made"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log\n%slacks %q", log.String(), want)
		}
	}
}
