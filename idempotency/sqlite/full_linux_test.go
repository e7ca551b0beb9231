package sqlite

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// F39 on a real file system of 4 MB.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	disk := t.TempDir()
	if err := syscall.Mount("tmpfs", disk, "tmpfs", 0, "size=4m"); err != nil {
		t.Skipf("needs the right to mount a small file system; TestFull shows the same without: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(disk, 0); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	ballast := filepath.Join(disk, "ballast")
	if err := os.WriteFile(ballast, make([]byte, 2<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	w := newWorker(t, openAt(t, filepath.Join(disk, "belfry.db"), nil, time.Now))
	fillUp(t, w)
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	resumes(t, w)
}
