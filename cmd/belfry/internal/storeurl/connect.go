package storeurl

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"database/sql"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "modernc.org/sqlite" // the driver "sqlite"
)

const (
	// connectWithin bounds the first answer of a server, and each later connecting to it.
	connectWithin = 10 * time.Second
	// busy is how long a statement waits for another process's lock on a SQLite file.
	busy = 10 * time.Second
	// conns is how many connections a client keeps, beside those that a store opened on it keeps for itself.
	conns = 4
	// storeConns is more than a MySQL store takes from the client's limit. A Postgres store has pools of its own.
	storeConns = 8
)

// Client is a database, with the tables of a store in it or without. It is safe for concurrent use.
type Client struct {
	url  URL
	pool *pgxpool.Pool // Postgres
	db   *sql.DB       // all others
}

// Connect opens the database that u names, and waits up to ten seconds for a server's first answer. A SQLite file is
// neither made nor looked at. The client keeps at most four connections (pool_max_conns sets another number for
// Postgres); a store that is opened on it adds a few of its own. The caller closes first the stores, then the client.
func Connect(ctx context.Context, u URL) (*Client, error) {
	c := &Client{url: u}
	ctx, cancel := context.WithTimeout(ctx, connectWithin)
	defer cancel()
	var err error
	switch u.kind {
	case SQLite:
		c.db, err = u.openSQLite()
	case Postgres:
		err = c.connectPostgres(ctx)
	case MySQL:
		err = c.connectMySQL(ctx)
	default:
		return nil, ErrNone
	}
	if err != nil {
		c.Close()
		return nil, fmt.Errorf("store %s: %w", u, err)
	}
	return c, nil
}

func (u URL) openSQLite() (*sql.DB, error) {
	name := (&url.URL{Path: u.path}).EscapedPath()
	return sql.Open("sqlite", fmt.Sprintf("file:%s?mode=rw&_txlock=immediate&_pragma=busy_timeout(%d)", name, busy.Milliseconds()))
}

// Check returns an error where no server could be reached by the URL as it is written, or the tables' prefix is none of
// that kind of store. It connects to nothing. Parameters may name files, which it reads.
func (u URL) Check(prefix string) error {
	if _, err := u.Script(prefix); err != nil {
		return err
	}
	var err error
	switch u.kind {
	case Postgres:
		_, err = u.postgresConfig()
	case MySQL:
		_, err = u.mysqlConfig()
	}
	if err != nil {
		return fmt.Errorf("store %s: %w", u, err)
	}
	return nil
}

// postgresConfig gives pgx the URL without its password, since its errors may quote what they cannot read.
func (u URL) postgresConfig() (*pgxpool.Config, error) {
	u.password = secret{}
	return pgxpool.ParseConfig(u.Secret())
}

func (c *Client) connectPostgres(ctx context.Context) error {
	config, err := c.url.postgresConfig()
	if err != nil {
		return err
	}
	if password := c.url.password.reveal(); password != "" {
		config.ConnConfig.Password = password
	}
	if !c.url.params.Has("pool_max_conns") {
		config.MaxConns = conns
	}
	if config.ConnConfig.RuntimeParams["application_name"] == "" {
		config.ConnConfig.RuntimeParams["application_name"] = "belfry"
	}
	if c.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return err
	}
	return c.pool.Ping(ctx)
}

func (c *Client) connectMySQL(ctx context.Context) error {
	config, err := c.url.mysqlConfig()
	if err != nil {
		return err
	}
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return err
	}
	c.db = sql.OpenDB(connector)
	c.db.SetMaxOpenConns(conns + storeConns)
	c.db.SetMaxIdleConns(conns)
	return c.db.PingContext(ctx)
}

// mysqlConfig makes the driver's settings of a URL. TLS is used where the server has it, as its own clients do, and
// demanded and checked with tls=true, which also needs tls-ca where the server's certificate is not a public one.
func (u URL) mysqlConfig() (*mysql.Config, error) {
	c := mysql.NewConfig()
	c.Logger = &mysql.NopLogger{} // what goes wrong is returned as well
	c.User, c.Passwd, c.DBName = u.user, u.password.reveal(), u.database
	if c.Passwd == "" {
		c.Passwd = os.Getenv("MYSQL_PWD")
	}
	if u.database == "" {
		return nil, errors.New("it names no database; write it behind the last /, and make it with create database where it is missing")
	}
	c.Net, c.Addr = "tcp", withPort(u.hosts, "3306")
	if socket := u.params.Get("socket"); socket != "" {
		c.Net, c.Addr = "unix", socket
	}
	c.Timeout = connectWithin
	if text := u.params.Get("timeout"); text != "" {
		d, err := time.ParseDuration(text)
		if err != nil || d <= 0 {
			return nil, errors.New("parameter timeout: write a time such as 5s")
		}
		c.Timeout = d
	}
	c.TLSConfig = "preferred"
	if mode := u.params.Get("tls"); mode != "" {
		c.TLSConfig = mode
	}
	switch ca := u.params.Get("tls-ca"); {
	case c.TLSConfig != "true" && c.TLSConfig != "false" && c.TLSConfig != "preferred" && c.TLSConfig != "skip-verify":
		return nil, errors.New("parameter tls: give true, false, preferred (the default) or skip-verify")
	case ca != "":
		return c, trust(c, ca, u.hosts)
	}
	return c, nil
}

// trust demands a certificate that one of the file's vouches for.
func trust(c *mysql.Config, file, hosts string) error {
	pem, err := os.ReadFile(file)
	if err != nil {
		return fmt.Errorf("parameter tls-ca: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return fmt.Errorf("parameter tls-ca: %q holds no certificate in PEM form", file)
	}
	host, _, _ := net.SplitHostPort(withPort(hosts, "0"))
	c.TLS = &tls.Config{RootCAs: pool, ServerName: host, MinVersion: tls.VersionTLS12}
	return nil
}

// withPort adds a port where there is none, and the loopback address where there is no host.
func withPort(host, port string) string {
	if name, p, err := net.SplitHostPort(host); err == nil {
		host, port = name, p
	}
	if host = strings.Trim(host, "[]"); host == "" {
		host = "127.0.0.1"
	}
	return net.JoinHostPort(host, port)
}

// URL is what the client was connected by.
func (c *Client) URL() URL { return c.url }

// Pool is a Postgres database's pool, else nil. It is the client's to close.
func (c *Client) Pool() *pgxpool.Pool { return c.pool }

// DB is a MySQL database or a SQLite file, else nil. It is the client's to close.
func (c *Client) DB() *sql.DB { return c.db }

// Close closes all connections. It waits for those that are in use.
func (c *Client) Close() error {
	if c.pool != nil {
		c.pool.Close()
	}
	if c.db != nil {
		return c.db.Close()
	}
	return nil
}
