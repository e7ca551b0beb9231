package zone

import (
	"archive/zip"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// The zone data of the program: the time zone database of the IANA, which is in
// the public domain, as the Go project compiles it (lib/time/zoneinfo.zip of its
// distribution, made by lib/time/update.bash). To take the data of the Go that is
// in use, on any machine:
//
//	go test ./jobs/internal/zone -run TestEmbedded -zone.refresh
//
//go:embed zoneinfo.zip
var embedded string

// release is the IANA's name of that data and, for the test that it is that data, its hash.
//
//go:embed release.txt
var release string

const (
	// environ is Go's own name for a directory or zip file of zones. For Belfry, it is how an operator gets the
	// new clock of a country before there is a release with it.
	environ = "ZONEINFO"

	// What ZONEINFO names is read at once and kept, so that the version tells of what is in use. The IANA's own
	// is 600 zones and 400 KB.
	maxZones = 2048
	maxBytes = 4 << 20
	maxDepth = 3 // America/Argentina/Salta
)

// data is all zones that can be loaded. It is immutable.
type data struct {
	entries []entry // sorted by name
	version string
	err     error // why it is not what environ names
}

// entry is one zone as compiled: a TZif file.
type entry struct{ name, tzif string }

// current is read once, when it is first needed: all schedules of a process follow the same data.
var current = sync.OnceValue(func() *data { return open(os.Getenv(environ)) })

// open is the zones at path laid over our own. Where path is "", or names nothing that can be read, they are our own.
func open(path string) *data {
	own := ours()
	if path == "" {
		return own
	}
	others, err := read(path, own)
	if err != nil {
		own.err = fmt.Errorf("%s=%.200q cannot be read, and zones are the program's own: %w; name a directory or a zip file of zones", environ, path, err)
		return own
	}
	all := &data{entries: slices.Concat(others, own.entries)}
	slices.SortStableFunc(all.entries, byName)
	all.entries = slices.CompactFunc(all.entries, func(a, b entry) bool { return a.name == b.name })
	all.version = own.version
	if h := all.hash(); h != own.hash() {
		all.version = "zoneinfo-" + h[:12]
	}
	return all
}

func byName(a, b entry) int { return strings.Compare(a.name, b.name) }

// ours is the embedded data. Its files are stored as they are, and so take no further memory.
func ours() *data {
	archive, err := zip.NewReader(strings.NewReader(embedded), int64(len(embedded)))
	if err != nil {
		panic("zone: the embedded zone data cannot be read: " + err.Error())
	}
	own := &data{entries: make([]entry, 0, len(archive.File))}
	own.version, _, _ = strings.Cut(release, " ")
	for _, f := range archive.File {
		at, err := f.DataOffset()
		if err != nil || f.Method != zip.Store {
			panic("zone: the embedded zone data cannot be read: " + f.Name)
		}
		own.entries = append(own.entries, entry{f.Name, embedded[at : at+int64(f.UncompressedSize64)]})
	}
	slices.SortFunc(own.entries, byName)
	return own
}

// find is the compiled zone of a name.
func (d *data) find(name string) (string, bool) {
	i, ok := slices.BinarySearchFunc(d.entries, name, func(e entry, name string) int { return strings.Compare(e.name, name) })
	if !ok {
		return "", false
	}
	return d.entries[i].tzif, true
}

func (d *data) load(name string) (*Zone, error) {
	tzif, ok := d.find(name)
	if !ok {
		for _, e := range d.entries {
			if strings.EqualFold(e.name, name) {
				return nil, fmt.Errorf("unknown zone %q; write %s", name, e.name)
			}
		}
		return nil, fmt.Errorf("unknown zone %.80q; use an IANA name such as UTC or Europe/Berlin", name)
	}
	loc, err := time.LoadLocationFromTZData(name, []byte(tzif))
	if err != nil {
		return nil, fmt.Errorf("zone %q is damaged where %s points (%w); put a whole file there, or take it out", name, environ, err)
	}
	return &Zone{loc, newTable(loc)}, nil
}

// hash is that of all names and contents.
func (d *data) hash() string {
	h := sha256.New()
	for _, e := range d.entries {
		fmt.Fprintf(h, "%s %d\n%s", e.name, len(e.tzif), e.tzif)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// reader collects the zones of a directory or a zip file.
type reader struct {
	own   *data
	found []entry
	bytes int
}

func read(path string, own *data) ([]entry, error) {
	r := reader{own: own}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		err = r.directory(path, "", 1)
	} else {
		err = r.archive(path)
	}
	if err == nil && len(r.found) == 0 {
		err = errors.New("no zone is in it")
	}
	return r.found, err
}

// directory follows symbolic links, of which images and mounts make such directories; depth bounds those in a circle.
func (r *reader) directory(path, prefix string, depth int) error {
	files, err := os.ReadDir(path)
	if err != nil {
		return err
	}
	for _, f := range files {
		if !word(f.Name()) {
			continue
		}
		name, file := prefix+f.Name(), filepath.Join(path, f.Name())
		info, err := os.Stat(file)
		switch {
		case err != nil:
		case info.IsDir() && depth < maxDepth:
			err = r.directory(file, name+"/", depth+1)
		case info.Mode().IsRegular():
			err = r.file(name, func() (io.ReadCloser, error) { return os.Open(file) })
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) archive(path string) error {
	archive, err := zip.OpenReader(path)
	if err != nil {
		return err
	}
	defer archive.Close()
	for _, f := range archive.File {
		words := strings.Split(f.Name, "/")
		if len(words) > maxDepth || slices.ContainsFunc(words, func(w string) bool { return !word(w) }) {
			continue
		}
		if err := r.file(f.Name, f.Open); err != nil {
			return err
		}
	}
	return nil
}

// word says whether a part of a name is one that the IANA would give: a capital letter first, which leaves out the
// twins and tables that systems keep beside the zones (posix/, right/, localtime, zone.tab).
func word(s string) bool {
	const more = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-"
	return s != "" && s[0] >= 'A' && s[0] <= 'Z' && strings.Trim(s, more) == ""
}

// file takes a zone. What is no zone by its first bytes is passed over, unless it should be one by its name: then
// it is kept as damaged.
func (r *reader) file(name string, open func() (io.ReadCloser, error)) error {
	f, err := open()
	if err != nil {
		return err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, int64(maxBytes-r.bytes+1)))
	if err != nil {
		return err
	}
	if r.bytes += len(content); r.bytes > maxBytes { // also of what is no zone: a bomb must not cost more
		return errTooMuch
	}
	if _, known := r.own.find(name); !known && !strings.HasPrefix(string(content), "TZif") {
		return nil
	}
	r.found = append(r.found, entry{name, string(content)})
	if len(r.found) > maxZones {
		return errTooMuch
	}
	return nil
}

var errTooMuch = errors.New("too much to be zone data")
