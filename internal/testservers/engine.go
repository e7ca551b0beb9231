package testservers

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/go-sql-driver/mysql"
	_ "github.com/jackc/pgx/v5/stdlib" // registers "pgx"
)

// engine is what is to be known of one kind of server.
type engine struct {
	name    string
	install string         // the line that installs it
	users   []string       // as the first of these that exists the server of a test that is root's runs
	stop    syscall.Signal // ends it cleanly

	server, creator string   // programs: the one that serves, and the one that makes a data directory
	folders         []string // patterns of where they are; PATH is asked after these
	serve           func(data string, port int) []string
	create          func(data string) []string

	open    func(dsn string) (*sql.DB, error)
	dsn     func(addr, database string) string
	url     func(addr, database string) string
	admin   string                                                   // the database to be in when there is no other
	dataDir string                                                   // the query for the data directory
	make    func(ctx context.Context, db *sql.DB, name string) error // makes an empty database
	drop    func(ctx context.Context, db *sql.DB, name string) error // drops a database, whoever uses it
}

var postgres = &engine{
	name:    "PostgreSQL",
	install: "apt-get install postgresql",
	users:   []string{"postgres", "nobody"},
	stop:    syscall.SIGINT, // "fast": does not wait for clients to leave

	server:  "postgres",
	creator: "initdb",
	folders: []string{"/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin"},
	serve: func(data string, port int) []string {
		return []string{"-D", data, "-p", strconv.Itoa(port), "-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
			"-c", "dynamic_shared_memory_type=mmap", // in the data directory, which goes with a server that was killed
		}
	},
	create: func(data string) []string {
		return []string{"--no-sync", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C", "--pgdata=" + data}
	},

	open:    func(dsn string) (*sql.DB, error) { return sql.Open("pgx", dsn) },
	dsn:     postgresURL,
	url:     postgresURL,
	admin:   "postgres",
	dataDir: "show data_directory",
	make:    makePostgres,
	drop: func(ctx context.Context, db *sql.DB, name string) error {
		_, err := db.ExecContext(ctx, "drop database "+name+" with (force)")
		return err
	},
}

func postgresURL(addr, database string) string {
	return fmt.Sprintf("postgres://postgres@%s/%s?sslmode=disable", addr, database)
}

var mariaDB = &engine{
	name:    "MariaDB",
	install: "apt-get install mariadb-server",
	users:   []string{"mysql", "nobody"},
	stop:    syscall.SIGTERM,

	server:  "mariadbd",
	creator: "mariadb-install-db",
	folders: []string{"/usr/sbin", "/usr/libexec"},
	serve: func(data string, port int) []string {
		return []string{"--no-defaults", "--datadir=" + data, "--port=" + strconv.Itoa(port), "--bind-address=127.0.0.1", "--skip-name-resolve",
			"--socket=socket",                // in the data directory: any longer path might be too long for a socket
			"--character-set-server=utf8mb4", // Debian's configuration says so too
		}
	},
	create: func(data string) []string {
		return []string{"--no-defaults", "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve", "--datadir=" + data}
	},

	open:    openMariaDB,
	dsn:     func(addr, database string) string { return fmt.Sprintf("root@tcp(%s)/%s", addr, database) },
	url:     func(addr, database string) string { return fmt.Sprintf("mysql://root@%s/%s", addr, database) },
	dataDir: "select @@datadir",
	make: func(ctx context.Context, db *sql.DB, name string) error {
		_, err := db.ExecContext(ctx, "create database "+name)
		return err
	},
	drop: dropMariaDB,
}

// makePostgres has the server copy files, where it can be told so: that takes a third of the processor's time that
// writing each page to the log takes, and makes no difference to clients.
func makePostgres(ctx context.Context, db *sql.DB, name string) error {
	var version int
	if err := db.QueryRowContext(ctx, "select current_setting('server_version_num')::int").Scan(&version); err != nil {
		return err
	}
	statement := "create database " + name
	if version >= 150_000 {
		statement += " strategy file_copy"
	}
	_, err := db.ExecContext(ctx, statement)
	return err
}

func openMariaDB(dsn string) (*sql.DB, error) {
	c, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	c.Logger = &mysql.NopLogger{} // by default it writes to standard error what a server that just starts answers
	connector, err := mysql.NewConnector(c)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// dropMariaDB ends the connections to a database first: it would wait for their transactions.
func dropMariaDB(ctx context.Context, db *sql.DB, name string) error {
	var ids []int64
	rows, err := db.QueryContext(ctx, "select id from information_schema.processlist where db = '"+name+"'")
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return err
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	for _, id := range ids {
		const gone = 1094 // the connection ended meanwhile
		_, err := db.ExecContext(ctx, fmt.Sprintf("kill %d", id))
		if refused, ok := errors.AsType[*mysql.MySQLError](err); err != nil && !(ok && refused.Number == gone) {
			return err
		}
	}
	_, err = db.ExecContext(ctx, "drop database "+name)
	return err
}

// programs returns the paths of the engine's two programs, or an error that says which is missing.
func (e *engine) programs() (server, creator string, err error) {
	if server, err = e.find(e.server); err == nil {
		creator, err = e.find(e.creator)
	}
	return server, creator, err
}

// find looks in the folders of the newest version first: names with numbers of equal length sort that way.
func (e *engine) find(program string) (string, error) {
	for _, pattern := range e.folders {
		found, _ := filepath.Glob(filepath.Join(pattern, program)) // errs only for a bad pattern
		slices.Sort(found)
		if len(found) > 0 {
			return found[len(found)-1], nil
		}
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return "", fmt.Errorf("%s is not installed: no program %s", e.name, program)
	}
	return path, nil
}
