package testservers

import (
	"os"
	"path/filepath"
	"syscall"
)

const (
	memory  = "/dev/shm"
	enough  = 2 << 30      // bytes that must be free in memory for data to go there; some containers have 64 MiB
	tmpfs   = 0x01021994   // statfs's word for it
	dirName = "belfry-db-" // what the directories of servers begin with
)

// dir is a directory of one server. While its lock is held no sweep removes it; the kernel lets go of it when the
// process ends.
type dir struct {
	path string
	lock *os.File
}

// parents returns the folders for directories of servers: the quick one, which may be the same, and the disk's.
func parents() (quick, disk string) {
	disk = os.TempDir()
	var fs syscall.Statfs_t
	if err := syscall.Statfs(memory, &fs); err != nil || fs.Type != tmpfs || fs.Bavail*uint64(fs.Bsize) < enough {
		return disk, disk
	}
	return memory, disk
}

func makeDir(parent string) (*dir, error) {
	for {
		path, err := os.MkdirTemp(parent, dirName)
		if err != nil {
			return nil, err
		}
		d, err := lock(path)
		if d != nil || err != nil {
			return d, err
		}
		// A sweep was quicker, and took it for abandoned.
	}
}

// lock returns nil where the directory is locked or gone.
func lock(path string) (*dir, error) {
	f, err := os.Open(path)
	if os.IsNotExist(err) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if err == syscall.EWOULDBLOCK {
			err = nil
		}
		return nil, err
	}
	locked, err := f.Stat()
	if err == nil {
		var now os.FileInfo
		if now, err = os.Stat(path); err == nil && os.SameFile(locked, now) {
			return &dir{path, f}, nil
		}
	}
	f.Close()
	if os.IsNotExist(err) {
		err = nil
	}
	return nil, err
}

// remove deletes the directory with all in it.
func (d *dir) remove() error {
	defer d.lock.Close()
	return os.RemoveAll(d.path)
}

// sweep removes the directories of processes that have ended without doing so. What it cannot remove, such as another
// user's, it leaves.
func sweep(parents ...string) {
	for _, parent := range parents {
		left, _ := filepath.Glob(filepath.Join(parent, dirName+"*")) // errs only for a bad pattern
		for _, path := range left {
			if d, err := lock(path); d != nil && err == nil {
				_ = d.remove()
			}
		}
	}
}
