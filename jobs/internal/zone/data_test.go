package zone

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

var (
	refresh = flag.Bool("zone.refresh", false, "replace the embedded zone data by that of the Go that is in use")
	update  = flag.Bool("zone.update", false, "write testdata/2023b")
)

// The embedded data is what release.txt says, is whole, and every zone of it can be used.
func TestEmbedded(t *testing.T) {
	t.Parallel()
	if *refresh {
		takeData(t)
		t.Fatal("zoneinfo.zip and release.txt are new; test again without -zone.refresh")
	}
	own := ours()
	if want := fmt.Sprintf("%s %x\n", own.version, sha256.Sum256([]byte(embedded))); release != want {
		t.Errorf("release.txt is %q; by the data it would be %q", release, want)
	}
	if !regexp.MustCompile(`^20\d\d[a-z]$`).MatchString(own.version) {
		t.Errorf("version %q is none of the IANA", own.version)
	}
	archive, err := zip.NewReader(strings.NewReader(embedded), int64(len(embedded)))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range archive.File { // against its checksums
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if found, ok := own.find(f.Name); err != nil || !ok || found != string(content) {
			t.Errorf("%s: %v, %d bytes, found %v with %d", f.Name, err, len(content), ok, len(found))
		}
	}
	if len(own.entries) < 590 || len(own.entries) != len(archive.File) {
		t.Errorf("%d zones of %d files, want about 600", len(own.entries), len(archive.File))
	}
	for _, e := range own.entries {
		for w := range strings.SplitSeq(e.name, "/") {
			if !word(w) {
				t.Errorf("%q could not be given anew by %s", e.name, environ)
			}
		}
		if z, err := own.load(e.name); err != nil || z.At(0).Offset != offsetAt(z.loc, 0) {
			t.Errorf("%s: %v", e.name, err)
		}
	}
	for _, name := range []string{"Africa/Casablanca", "America/Argentina/Buenos_Aires", "America/New_York", "Asia/Kolkata", "Etc/UTC", "Europe/Kyiv", "Pacific/Auckland"} {
		if _, ok := own.find(name); !ok {
			t.Errorf("no %s", name)
		}
	}
}

// takeData copies the zone data of the Go distribution, with the release that its update script names.
func takeData(t *testing.T) {
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	from := filepath.Join(strings.TrimSpace(string(root)), "lib", "time")
	script, err := os.ReadFile(filepath.Join(from, "update.bash"))
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`(?m)^DATA=(\w+)$`).FindSubmatch(script)
	content, err := os.ReadFile(filepath.Join(from, "zoneinfo.zip"))
	if err != nil || named == nil {
		t.Fatalf("%v; release %q", err, named)
	}
	write(t, "zoneinfo.zip", content)
	write(t, "release.txt", fmt.Appendf(nil, "%s %x\n", named[1], sha256.Sum256(content)))
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o644); err != nil {
		t.Fatal(err)
	}
}

// beirut2023b is Asia/Beirut as the IANA had it in its release 2023b, for six days: clocks go forward on 21 April 2023, four
// weeks late. Before 2022 it knows of no change.
func beirut2023b() []byte {
	const eet, eest = "\x00\x00\x1c\x20\x00\x00", "\x00\x00\x2a\x30\x01\x04" // offset, daylight saving, place of the name
	changes := []struct {
		at string
		to byte
	}{{"2022-10-29T21:00:00Z", 0}, {"2023-04-20T22:00:00Z", 1}, {"2023-10-28T21:00:00Z", 0}}
	header := func(changes, kinds, names uint32) []byte {
		b := append([]byte("TZif2"), make([]byte, 15+12)...)
		return append(b, binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, changes), kinds), names)...)
	}
	b := append(header(0, 1, 4), eet+"EET\x00"...) // for readers of 32 bits
	b = append(b, header(uint32(len(changes)), 2, 9)...)
	for _, c := range changes {
		at, _ := time.Parse(time.RFC3339, c.at)
		b = binary.BigEndian.AppendUint64(b, uint64(at.Unix()))
	}
	for _, c := range changes {
		b = append(b, c.to)
	}
	return append(b, eet+eest+"EET\x00EEST\x00\nEET-2EEST,M3.5.0/0,M10.5.0/0\n"...)
}

var beirut = filepath.Join("testdata", "2023b")

// clock is what Asia/Beirut shows at midnight UTC on 27 March 2023.
func clock(t *testing.T, d *data) string {
	t.Helper()
	z, err := d.load("Asia/Beirut")
	if err != nil {
		t.Fatal(err)
	}
	return time.Date(2023, 3, 27, 0, 0, 0, 0, time.UTC).In(z.loc).Format("15:04 MST")
}

// DP-10, F56: other zones are used, and the version tells so; the same contents have the same version, wherever they are.
func TestOtherData(t *testing.T) {
	t.Parallel()
	own, dir := ours(), t.TempDir()
	if *update {
		write(t, filepath.Join(beirut, "Asia", "Beirut"), beirut2023b())
	}
	if kept, err := os.ReadFile(filepath.Join(beirut, "Asia", "Beirut")); err != nil || !bytes.Equal(kept, beirut2023b()) {
		t.Fatalf("testdata is another zone than the test's, or %v; write it with -zone.update", err)
	}
	other := open(beirut)
	if got := clock(t, own); got != "03:00 EEST" {
		t.Errorf("our own: %s", got)
	}
	if got := clock(t, other); got != "02:00 EET" {
		t.Errorf("2023b: %s", got)
	}
	if !regexp.MustCompile(`^zoneinfo-[0-9a-f]{12}$`).MatchString(other.version) {
		t.Errorf("version %q", other.version)
	}
	if own.err != nil || other.err != nil {
		t.Errorf("our own: %v; 2023b: %v", own.err, other.err)
	}
	if a, b := loaded(t, own, "Europe/Berlin"), loaded(t, other, "Europe/Berlin"); a != b {
		t.Error("a zone that the other data lacks is not our own")
	}
	packed := filepath.Join(dir, "zones.zip")
	pack(t, packed, zip.Deflate, map[string]string{"Asia/Beirut": string(beirut2023b()), "Asia/": "", "right/Asia/Beirut": "TZif", "zone.tab": "LB"})
	if v := open(packed).version; v != other.version {
		t.Errorf("packed: %q, in a directory: %q", v, other.version)
	}
	changed := bytes.Replace(beirut2023b(), []byte("M10.5.0/0"), []byte("M10.4.0/0"), 1)
	write(t, filepath.Join(dir, "changed", "Asia", "Beirut"), changed)
	if v := open(filepath.Join(dir, "changed")).version; v == other.version || v == own.version {
		t.Errorf("changed data has the same version: %q", v)
	}
	write(t, filepath.Join(dir, "same.zip"), []byte(embedded))
	if same := open(filepath.Join(dir, "same.zip")); same.version != own.version || same.err != nil {
		t.Errorf("our own data, packed: %q, %v, want %q", same.version, same.err, own.version)
	}
}

func loaded(t *testing.T, d *data, name string) string {
	t.Helper()
	tzif, ok := d.find(name)
	if !ok {
		t.Fatalf("no %s", name)
	}
	return tzif
}

func pack(t *testing.T, path string, method uint16, files map[string]string) {
	t.Helper()
	var b bytes.Buffer
	w := zip.NewWriter(&b)
	for name, content := range files {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err == nil {
			_, err = io.WriteString(f, content)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	write(t, path, b.Bytes())
}

// DP-11: what cannot be used leaves us with our own data, or with an error of the zone alone.
func TestOddData(t *testing.T) {
	t.Parallel()
	own, dir := ours(), t.TempDir()
	write(t, filepath.Join(dir, "text"), []byte("no zip"))
	write(t, filepath.Join(dir, "cut.zip"), []byte(embedded[:len(embedded)/2]))
	write(t, filepath.Join(dir, "huge", "Asia", "Beirut"), append([]byte("TZif"), make([]byte, maxBytes)...))
	pack(t, filepath.Join(dir, "bomb.zip"), zip.Deflate, map[string]string{"Asia/Beirut": "TZif" + strings.Repeat("\x00", maxBytes)})
	many := map[string]string{}
	for i := range maxZones + 1 {
		many[fmt.Sprintf("Z/A%d", i)] = "TZif"
	}
	pack(t, filepath.Join(dir, "many.zip"), zip.Store, many)
	write(t, filepath.Join(dir, "junk", "README"), []byte("not a zone"))
	write(t, filepath.Join(dir, "junk", "posix", "Asia", "Beirut"), beirut2023b())
	write(t, filepath.Join(dir, "junk", "localtime"), beirut2023b())
	write(t, filepath.Join(dir, "junk", "A", "B", "C", "D"), beirut2023b())
	for _, path := range []string{"", "nowhere", "text", "text/below", "cut.zip", "huge", "bomb.zip", "many.zip", "junk"} {
		if path != "" {
			path = filepath.Join(dir, filepath.FromSlash(path))
		}
		if d := open(path); d.version != own.version || len(d.entries) != len(own.entries) || clock(t, d) != "03:00 EEST" {
			t.Errorf("%s: version %q, %d zones", path, d.version, len(d.entries))
		} else if (d.err != nil) != (path != "") || path != "" && !strings.HasPrefix(d.err.Error(), fmt.Sprintf("ZONEINFO=%q cannot be read", path)) {
			t.Errorf("%s: %v", path, d.err)
		}
	}

	write(t, filepath.Join(dir, "damaged", "Asia", "Beirut"), beirut2023b()[:60])
	write(t, filepath.Join(dir, "damaged", "Asia", "Tokyo"), nil)
	write(t, filepath.Join(dir, "damaged", "Asia", "Neuland"), beirut2023b())
	_ = os.Symlink(".", filepath.Join(dir, "damaged", "Asia", "Circle")) // where there are such links
	d := open(filepath.Join(dir, "damaged"))
	for _, name := range []string{"Asia/Beirut", "Asia/Tokyo"} {
		if _, err := d.load(name); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("zone %q is damaged where ZONEINFO points", name)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"Asia/Neuland", "Europe/Berlin"} {
		if _, err := d.load(name); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if d.version == own.version {
		t.Error("damaged zones have our own version")
	}
}

// F56, DP-11: the variable decides, once for a process; and nothing is read but what it names.
func TestEnvironment(t *testing.T) {
	t.Parallel()
	other := open(beirut).version
	for value, want := range map[string]string{
		"":                      ours().version + " 2023-03-27T03:00:00+03:00",
		"/nowhere/zoneinfo.zip": ours().version + " 2023-03-27T03:00:00+03:00",
		beirut:                  other + " 2023-03-27T02:00:00+02:00",
	} {
		cmd := exec.Command(os.Args[0], childArg, "Asia/Beirut")
		cmd.Env = append(os.Environ(), environ+"="+value)
		out, err := cmd.CombinedOutput()
		if err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%s=%s: %q, %v; want %q", environ, value, out, err, want)
		}
	}
}

// Rules that no country has, and ZONEINFO could: clocks that change near New Year, to the same offset, by days, by
// two of them. (Package time itself is at odds with a change that belongs to one year in UTC and to another by the clock.)
func TestOddRules(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 1))
	for _, rule := range []string{
		"EET-2", "AAA0BBB0,M3.2.0,M11.1.0", "AAA-14BBB-15,J2/0,J60/0", "AAA3BBB2,M10.1.0,M3.1.0",
		"AAA-2BBB-3,J59/24,J60/2", "AAA5BBB4,360/20,363/23", "AAA-24BBB24,M2.5.1,M2.5.2", "AAA", "nonsense",
	} {
		tzif := bytes.Replace(beirut2023b(), []byte("EET-2EEST,M3.5.0/0,M10.5.0/0"), []byte(rule), 1)
		z, err := (&data{entries: []entry{{"Odd", string(tzif)}}}).load("Odd")
		if err != nil {
			t.Errorf("%s: %v", rule, err)
			continue
		}
		for range 300 {
			agree(t, z, 1_600_000_000+rng.Int64N(300*366*day))
			agree(t, z, firstUnix+rng.Int64N(lastUnix-firstUnix-366*day))
		}
		if t.Failed() {
			t.Fatalf("by the rule %s", rule)
		}
	}
}
