package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

const (
	// oldest is the first SQLite that writes the log safely: before it, a
	// checkpoint could race with the log's restart and lose a commit.
	oldest = "3.51.3"

	// readers is how many snapshots a store reads at once.
	readers = 3

	// The writer's page cache is 64 MB at most, and the log is copied into the
	// file before it has grown as large: at 16,000 pages of 4 KiB, each with a header. Together they are
	// worth half again as many claims a second as SQLite's defaults. Cut the log
	// back to that size after a rush.
	cacheKiB  = 64 << 10
	walPages  = 16_000
	walLimit  = 64 << 20
	readerKiB = 2 << 10

	// checkFor bounds how long Open looks for damage.
	checkFor = 2 * time.Second
)

var errClosed = errors.New("it is closed; open it again")

// Options are the ways to open a store. Nil means all of their zero values.
type Options struct {
	// AllowLossy gives up the last commits when the power fails (not when the
	// process does): synchronous=NORMAL instead of FULL. A commit then waits for
	// no disk. A replica that comes back may run what it had already run.
	AllowLossy bool

	// NoMigrate refuses a file that is missing or holds no store, instead of
	// making one: set it where an empty store can only be a wrong path.
	NoMigrate bool
}

// Store is a store in a file. All its methods are safe for concurrent use, and
// block until their context ends at the latest, or little later.
type Store struct {
	path string
	file os.FileInfo      // what path led to
	id   string           // the store's identity
	now  func() time.Time // the host's clock

	turn    chan struct{} // capacity 1: held by the one call that is not urgent and may wait for writer
	writer  chan *conn    // capacity 1: the only connection that writes
	readers chan *conn    // capacity readers: snapshots
	closed  chan struct{} // closed by Close
	once    sync.Once
	conns   int // connected: readers, then the writer
}

var (
	_ idempotency.Store   = (*Store)(nil)
	_ idempotency.History = (*Store)(nil)
	_ idempotency.Control = (*Store)(nil)
	_ idempotency.Leaders = (*Store)(nil)
)

// Open opens the store in the file at path, and makes both if they are not
// there: the file with mode 0600, which -wal and -shm beside it take over. Many
// processes may open one file at once. The caller closes the store.
//
// It refuses, with an error that says what to do, a missing folder, what is
// read-only, damaged or no database, a schema that is newer or half made, and
// a SQLite that is too old. A damaged file is never made anew. It looks for
// damage for two seconds at most. It waits for other processes' locks until the
// context ends, which so should have a deadline.
func Open(ctx context.Context, path string, o *Options) (*Store, error) {
	return open(ctx, path, o, time.Now)
}

func open(ctx context.Context, path string, o *Options, now func() time.Time) (*Store, error) {
	if o == nil {
		o = &Options{}
	}
	full, err := locate(path, o.NoMigrate)
	if err != nil {
		return nil, fmt.Errorf("sqlite: store %q: %w", path, err)
	}
	s := &Store{
		path: full, now: now,
		turn: make(chan struct{}, 1), writer: make(chan *conn, 1), readers: make(chan *conn, readers),
		closed: make(chan struct{}),
	}
	if err := s.prepare(ctx, full, o); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// prepare connects and refuses what is not fit to be a store, before it writes
// anything.
func (s *Store) prepare(ctx context.Context, full string, o *Options) error {
	var err error
	if s.file, err = os.Stat(full); err != nil {
		return s.explain(err)
	}
	for range readers {
		r, err := s.connect(ctx, full, "", "PRAGMA query_only = 1", fmt.Sprintf("PRAGMA cache_size = -%d", readerKiB))
		if err != nil {
			return err
		}
		s.readers <- r
	}
	if err := s.read(ctx, fit); err != nil {
		return err
	}
	if err := s.quickCheck(ctx); err != nil {
		return err
	}
	made := false
	err = s.read(ctx, func(t *tx) (err error) {
		made, err = inspect(t)
		return err
	})
	if err != nil {
		return err
	}
	if !made && o.NoMigrate {
		return s.explain(errors.New("it holds no store, and Options.NoMigrate forbids to make one; check the path"))
	}
	if err := s.connectWriter(ctx, full, o); err != nil {
		return err
	}
	return s.write(ctx, false, func(t *tx) error {
		made, err := inspect(t)
		if err == nil && !made {
			err = create(t)
		}
		if err == nil {
			// Whether the file can be written at all shows only where
			// something is, even if it is no row.
			_, err = t.exec(`UPDATE belfry_store SET last = last WHERE one = 0`)
		}
		if err == nil {
			_, err = t.get([]any{&s.id}, `SELECT id FROM belfry_store`)
		}
		return err
	})
}

func (s *Store) connectWriter(ctx context.Context, full string, o *Options) error {
	sync := "FULL"
	if o.AllowLossy {
		sync = "NORMAL"
	}
	// Effects begin their transaction through database/sql: as writers.
	w, err := s.connect(ctx, full, "?_txlock=immediate",
		"PRAGMA journal_mode = WAL", "PRAGMA synchronous = "+sync, fmt.Sprintf("PRAGMA cache_size = -%d", cacheKiB),
		fmt.Sprintf("PRAGMA wal_autocheckpoint = %d", walPages), fmt.Sprintf("PRAGMA journal_size_limit = %d", walLimit))
	if err != nil {
		return err
	}
	s.writer <- w
	return nil
}

// connect opens one connection and sets it up.
func (s *Store) connect(ctx context.Context, full, how string, pragmas ...string) (*conn, error) {
	db, err := sql.Open("sqlite", "file:"+(&url.URL{Path: full}).EscapedPath()+how)
	if err != nil {
		return nil, s.explain(err)
	}
	c := &conn{db: db, stmts: make(map[string]*sql.Stmt)}
	err = untilFree(ctx, func() (err error) {
		if c.c == nil {
			c.c, err = db.Conn(ctx)
		}
		for _, p := range pragmas {
			if err == nil {
				_, err = c.c.ExecContext(ctx, p)
			}
		}
		return err
	})
	if err != nil {
		return nil, errors.Join(s.explain(err), c.close())
	}
	s.conns++
	return c, nil
}

// locate returns the absolute path of the file, and makes an empty one where
// there is none.
func locate(path string, noMigrate bool) (string, error) {
	if path == "" || strings.HasPrefix(path, ":") || strings.HasPrefix(path, "file:") || strings.ContainsRune(path, 0) {
		return "", errors.New("not a path; give the path of a file on a local disk")
	}
	full, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	folder := filepath.Dir(full)
	info, err := os.Stat(folder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", fmt.Errorf("the folder %q does not exist; make it first", folder)
	case err != nil:
		return "", err
	case !info.IsDir():
		return "", fmt.Errorf("%q is not a folder; give the path of a file in one", folder)
	}
	info, err = os.Stat(full)
	switch {
	case err == nil && !info.Mode().IsRegular():
		return "", errors.New("not a regular file; give the path of a file")
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		return full, err
	case noMigrate:
		return "", errors.New("there is no such file, and Options.NoMigrate forbids to make one; check the path")
	}
	return full, create0600(full)
}

// create0600 makes an empty file that only this user can read, unless another
// process was faster. It is never open under its own name: closing any
// descriptor of a file drops all locks that SQLite holds on it in this process.
func create0600(full string) error {
	f, err := os.CreateTemp(filepath.Dir(full), ".belfry-*")
	if err != nil {
		return fmt.Errorf("the folder is read-only or full; make it writable for this user: %w", err)
	}
	err = errors.Join(f.Close(), os.Link(f.Name(), full))
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(f.Name()))
}

// fit refuses a SQLite that is too old. Its version is the linked library's, so
// a program that pins an older driver finds out here.
func fit(t *tx) error {
	var v string
	if _, err := t.get([]any{&v}, `SELECT sqlite_version()`); err != nil {
		return err
	}
	return checkVersion(v)
}

func checkVersion(v string) error {
	var have, want [3]int
	_, err := fmt.Sscanf(v, "%d.%d.%d", &have[0], &have[1], &have[2])
	if err != nil {
		return fmt.Errorf("SQLite has the version %q, which is none: %w", v, err)
	}
	fmt.Sscanf(oldest, "%d.%d.%d", &want[0], &want[1], &want[2])
	for i := range want {
		if have[i] != want[i] {
			if have[i] < want[i] {
				return fmt.Errorf("SQLite %s can lose commits; update modernc.org/sqlite to one with SQLite %s or later", v, oldest)
			}
			break
		}
	}
	return nil
}

// quickCheck refuses a damaged file, as far as it finds out in checkFor. Small
// tables come first: damage there would hurt every call.
func (s *Store) quickCheck(ctx context.Context) error {
	brief, cancel := context.WithTimeout(ctx, checkFor)
	defer cancel()
	err := s.read(brief, func(t *tx) error {
		var tables []string
		err := t.query(func(r *sql.Rows) error {
			var name string
			err := r.Scan(&name)
			tables = append(tables, name)
			return err
		}, `SELECT name FROM sqlite_schema WHERE type = 'table' AND name LIKE 'belfry\_%' ESCAPE '\' ORDER BY name = 'belfry_run'`)
		for _, name := range tables {
			if err == nil {
				err = checkTable(t, name)
			}
		}
		return err
	})
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		return nil // so far there is no damage
	}
	return err
}

func checkTable(t *tx, name string) error {
	var found string
	if _, err := t.get([]any{&found}, fmt.Sprintf(`PRAGMA quick_check("%s")`, name)); err != nil {
		return err
	}
	if found != "ok" {
		return fmt.Errorf("table %s is damaged (%s); stop all replicas and restore a backup, or save what is left with `sqlite3 FILE .recover`", name, found)
	}
	return nil
}

// Close waits for the calls in flight, lets all later ones fail and closes the
// file. Closing again does nothing.
func (s *Store) Close() (err error) {
	s.once.Do(func() {
		close(s.closed)
		for range min(s.conns, readers) {
			err = errors.Join(err, (<-s.readers).close())
		}
		// The writer last, for whoever is the last to close tidies up the log.
		if s.conns > readers {
			err = errors.Join(err, (<-s.writer).close())
		}
	})
	return err
}
