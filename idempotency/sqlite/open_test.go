package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// raw opens the file as any other program would, for one connection.
func raw(t testing.TB, path string) *sql.Conn {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	c, err := db.Conn(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(c.Close(), db.Close()); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return c
}

func run(t testing.TB, c *sql.Conn, text string) {
	t.Helper()
	if _, err := c.ExecContext(context.Background(), text); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// made is the path of a store with some rows that is closed.
func made(t testing.TB) string {
	t.Helper()
	path := file(t)
	s, err := Open(context.Background(), path, nil)
	if err != nil {
		t.Fatal(err)
	}
	w := newWorker(t, s)
	w.claim(t, 0, 1000)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

func write(t testing.TB, path string, at int64, b []byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt(b, at); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}

// F47, F38: what is not fit to be a store is refused, with a word on what to do,
// and left as it was.
func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	altered := func(text ...string) func(*testing.T) string {
		return func(t *testing.T) string {
			path := made(t)
			c := raw(t, path)
			for _, x := range text {
				run(t, c, x)
			}
			return path
		}
	}
	for _, c := range []struct {
		name    string
		path    func(t *testing.T) string
		options *Options
		want    string
	}{
		{"NoPath", func(*testing.T) string { return "" }, nil, "give the path of a file"},
		{"InMemory", func(*testing.T) string { return ":memory:" }, nil, "give the path of a file"},
		{"URI", func(t *testing.T) string { return "file:" + file(t) }, nil, "give the path of a file"},
		{"MissingFolder", func(t *testing.T) string { return filepath.Join(t.TempDir(), "none", "x.db") }, nil, "make it first"},
		{"FolderIsFile", func(t *testing.T) string { return filepath.Join(made(t), "x.db") }, nil, "is not a folder"},
		{"IsFolder", func(t *testing.T) string { return t.TempDir() }, nil, "not a regular file"},
		{"NoMigrateMissing", func(t *testing.T) string { return file(t) }, &Options{NoMigrate: true}, "no such file"},
		{"NoMigrateEmpty", func(t *testing.T) string {
			path := file(t)
			write(t, path, 0, nil)
			return path
		}, &Options{NoMigrate: true}, "holds no store"},
		{"NoDatabase", func(t *testing.T) string {
			path := file(t)
			write(t, path, 0, []byte(strings.Repeat("customer,amount\n", 1000)))
			return path
		}, nil, "no database; stop all replicas and restore a backup"},
		{"NewerSchema", altered(`UPDATE belfry_store SET version = 2`), nil, "version 2 and this program knows 1; use a newer program"},
		{"HalfMadeNoTable", altered(`DROP TABLE belfry_pass`), nil, "belfry_pass is missing"},
		{"HalfMadeNoIndex", altered(`DROP INDEX belfry_run_exclusive`), nil, "belfry_run_exclusive is missing"},
		{"HalfMadeNoRow", altered(`DELETE FROM belfry_store`), nil, "belfry_store has no row"},
		{"HalfMadeNoStore", altered(`DROP TABLE belfry_store`), nil, "belfry_store is missing"},
		{"Altered", altered(`ALTER TABLE belfry_run ADD COLUMN mine TEXT`), nil, "belfry_run is missing or not as it should be"},
		{"AnothersTable", func(t *testing.T) string {
			path := file(t)
			run(t, raw(t, path), `CREATE TABLE belfry_store (a)`)
			return path
		}, nil, "belfry_store is not ours"},
		{"DamagedHeader", func(t *testing.T) string {
			path := made(t)
			write(t, path, 0, make([]byte, 100))
			return path
		}, nil, "restore a backup"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			path := c.path(t)
			before, _ := os.ReadFile(path)
			s, err := Open(t.Context(), path, c.options)
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if s != nil || !strings.HasPrefix(err.Error(), "sqlite: store ") || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("error %q, want one that says %q", err, c.want)
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Fatal("the file was changed")
			}
		})
	}
}

// F47: damage in any page of ours is found, or does no harm; the file is never
// made anew.
func TestOpenRefusesDamagedPages(t *testing.T) {
	t.Parallel()
	path := made(t)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const size = 4096
	refused := 0
	for p := size; p < len(whole); p += size {
		damaged := append([]byte(nil), whole...)
		for i := range size / 2 {
			damaged[p+i] ^= 0xa5
		}
		copied := filepath.Join(t.TempDir(), "x.db")
		write(t, copied, 0, damaged)
		s, err := Open(t.Context(), copied, nil)
		if err == nil {
			s.Close()
			continue
		}
		refused++
		if !strings.Contains(err.Error(), "restore a backup") {
			t.Fatalf("page %d: %v", p/size, err)
		}
	}
	if pages := len(whole)/size - 1; refused < pages*9/10 {
		t.Fatalf("of %d damaged pages %d were refused", pages, refused)
	}
}

// A log cut short, and a missing index of it, cost at most the last commits;
// the rest is whole.
func TestOpenAfterCrashFiles(t *testing.T) {
	t.Parallel()
	for name, crash := range map[string]func(t *testing.T, path string){
		"LogCutShort": func(t *testing.T, path string) {
			info, err := os.Stat(path + "-wal")
			if err != nil {
				t.Fatal(err)
			}
			if err := os.Truncate(path+"-wal", info.Size()-100); err != nil {
				t.Fatal(err)
			}
		},
		"NoIndex": func(t *testing.T, path string) { os.Remove(path + "-shm") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from := file(t)
			s := openAt(t, from, nil, time.Now)
			w := newWorker(t, s)
			w.claim(t, 0, 10)
			w.claim(t, 10, 10)
			to := file(t)
			for _, x := range []string{"", "-wal", "-shm"} {
				b, err := os.ReadFile(from + x)
				if err != nil {
					t.Fatal(err)
				}
				write(t, to+x, 0, b)
			}
			crash(t, to)
			again := openAt(t, to, &Options{NoMigrate: true}, time.Now)
			if n := count(t, again); n < 10 {
				t.Fatalf("%d rows are left of 20", n)
			}
		})
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	for v, ok := range map[string]bool{
		"3.51.3": true, "3.51.4": true, "3.52.0": true, "4.0.0": true,
		"3.51.2": false, "3.50.9": false, "3.9.99": false, "2.99.99": false, "": false, "x": false,
	} {
		err := checkVersion(v)
		if (err == nil) != ok {
			t.Errorf("version %q: %v", v, err)
		}
	}
	if err := checkVersion("3.51.2"); !strings.Contains(err.Error(), "update modernc.org/sqlite") {
		t.Errorf("%v says not what to do", err)
	}
}

// Only this user may read the file and what SQLite keeps beside it.
func TestFileModes(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "odd name?#%41 é.db")
	s := openAt(t, path, nil, time.Now)
	newWorker(t, s).claim(t, 0, 1)
	names, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*"))
	if err != nil || len(names) != 3 {
		t.Fatalf("files %q, want three: %v", names, err)
	}
	hidden, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
	if err != nil || len(hidden) != 0 {
		t.Fatalf("left behind: %q %v", hidden, err)
	}
	for _, x := range []string{path, path + "-wal", path + "-shm"} {
		info, err := os.Stat(x)
		if err != nil {
			t.Fatal(err)
		}
		if m := info.Mode().Perm(); m != 0o600 {
			t.Errorf("%s has mode %v, want 0600", filepath.Base(x), m)
		}
	}
}

// The application's own tables may be in the file.
func TestOpenBesideOtherTables(t *testing.T) {
	t.Parallel()
	path := file(t)
	c := raw(t, path)
	run(t, c, `CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT)`)
	run(t, c, `PRAGMA user_version = 17`)
	s := openAt(t, path, nil, time.Now)
	newWorker(t, s).claim(t, 0, 1)
	var v int
	if err := c.QueryRowContext(t.Context(), `PRAGMA user_version`).Scan(&v); err != nil || v != 17 {
		t.Fatalf("user_version is %d %v", v, err)
	}
}

func TestPragmas(t *testing.T) {
	t.Parallel()
	for _, o := range []*Options{nil, {AllowLossy: true}} {
		s := openAt(t, file(t), o, time.Now)
		want := map[string]string{"journal_mode": "wal", "synchronous": "2", "cache_size": "-65536", "wal_autocheckpoint": "16000"}
		if o != nil {
			want["synchronous"] = "1"
		}
		for name, value := range want {
			err := s.write(t.Context(), false, func(t2 *tx) error {
				var got string
				_, err := t2.get([]any{&got}, "PRAGMA "+name)
				if got != value {
					t.Errorf("%s is %q, want %q", name, got, value)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	}
}

func TestClosedStore(t *testing.T) {
	t.Parallel()
	s := openAt(t, file(t), nil, time.Now)
	w := newWorker(t, s)
	for range 2 {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := s.Mine(t.Context(), w.session)
	if !errors.Is(err, errClosed) {
		t.Errorf("a read: %v", err)
	}
	if _, err := s.RenewSession(t.Context(), w.session); !errors.Is(err, errClosed) {
		t.Errorf("a write: %v", err)
	}
	for _, err := range s.List(t.Context(), idempotency.Filter{Namespace: "ns"}) {
		if !errors.Is(err, errClosed) {
			t.Errorf("a listing: %v", err)
		}
	}
}
