package testservers

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
)

// Database is one database, seen by its administrator: all may be done in it.
type Database struct {
	// Name is what the server calls it: lower-case letters and digits.
	Name string
	// Addr is the host:port where it is reached: the server's, or that of a proxy before it.
	Addr string

	engine *engine
}

// Database makes an empty database for the test. At the end of the test it is dropped, whoever still uses it.
func (s *Server) Database(t testing.TB) Database {
	t.Helper()
	name := fmt.Sprintf("t%d", s.made.Add(1))
	err := s.administer(context.Background(), func(ctx context.Context, db *sql.DB) error {
		return s.engine.make(ctx, db, name)
	})
	if err != nil {
		t.Fatalf("testservers: make a database of %s: %v", s.engine.name, err)
	}
	if s.shared { // a private server is discarded whole, and may be down by then
		t.Cleanup(func() { s.drop(t, name) })
	}
	return Database{Name: name, Addr: s.Addr(), engine: s.engine}
}

func (s *Server) drop(t testing.TB, name string) {
	err := s.administer(context.Background(), func(ctx context.Context, db *sql.DB) error {
		return s.engine.drop(ctx, db, name)
	})
	if err != nil {
		t.Errorf("testservers: drop database %s of %s: %v", name, s.engine.name, err)
	}
}

// At returns the same database, to be reached at another host:port.
func (d Database) At(addr string) Database {
	d.Addr = addr
	return d
}

// DSN is what the engine's Go client opens: for PostgreSQL it is the URL; for MariaDB user@tcp(addr)/name, without
// parameters.
func (d Database) DSN() string { return d.engine.dsn(d.Addr, d.Name) }

// URL is the database's postgres:// or mysql:// URL.
func (d Database) URL() string { return d.engine.url(d.Addr, d.Name) }
