//go:build unix

package sqlite

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// nobody is a user who owns nothing; who tests as root reads and writes what
// nobody else may.
const nobody = 65534

// playAs opens the store as a user who is not root.
func playAs(ctx context.Context, role, path string) error {
	if os.Geteuid() == 0 {
		if err := syscall.Setuid(nobody); err != nil {
			return err
		}
	}
	s, err := Open(ctx, path, nil)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, role, "opened it")
	return s.Close()
}

// F40: what cannot be written is refused, and the error says which it is.
func TestOpenRefusesUnwritable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name         string
		made         bool
		file, folder os.FileMode
		want         string
	}{
		{"File", true, 0o444, 0o777, "the file or its folder is read-only"},
		{"Folder", true, 0o666, 0o555, "the file or its folder is read-only"},
		{"FolderOfNoFile", false, 0, 0o555, "the folder is read-only or full"},
		{"Unreadable", true, 0o000, 0o777, "cannot be opened"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			folder := filepath.Join(t.TempDir(), "x")
			if err := os.Mkdir(folder, 0o755); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(folder, "belfry.db")
			if c.made {
				if err := os.Rename(made(t), path); err != nil {
					t.Fatal(err)
				}
				if err := os.Chmod(path, c.file); err != nil {
					t.Fatal(err)
				}
			}
			for d := filepath.Dir(folder); d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
				if err := os.Chmod(d, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			if err := os.Chmod(folder, c.folder); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { os.Chmod(folder, 0o755) })
			child := start(t, "nobody", path)
			child.release()
			if said := strings.Join(child.all(), "\n"); !strings.HasPrefix(said, "error sqlite: store ") || !strings.Contains(said, c.want) {
				t.Errorf("it said %q, want an error that says %q", said, c.want)
			}
		})
	}
}

// A store that becomes read-only while it is open says so, and works again.
func TestReadOnlyWhileOpen(t *testing.T) {
	t.Parallel()
	s := openAt(t, file(t), nil, time.Now)
	w := newWorker(t, s)
	only := func(text string) {
		c := <-s.writer
		defer func() { s.writer <- c }()
		if err := c.run(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	only(`PRAGMA query_only = 1`)
	if _, err := w.tryClaim(t.Context(), 0, 1); err == nil || !strings.Contains(err.Error(), "read-only") {
		t.Errorf("error %v, want one that says it is read-only", err)
	}
	only(`PRAGMA query_only = 0`)
	w.claim(t, 0, 1)
}
