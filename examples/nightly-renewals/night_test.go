package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"syscall"
	"testing"
	"time"
)

const (
	clients = 300
	victim  = "b"
	killAt  = 20 // charges that the victim has made in the night
)

// TestNight is the README's story: three replicas and the provider as processes of their own, one replica killed in
// the middle of a night. Every customer must be charged once that night all the same, and stand in the ledger once; and the
// victim, started again, must take its share of a later night.
func TestNight(t *testing.T) {
	t.Parallel()
	night(t, filepath.Join(t.TempDir(), "renewals.db"), "")
}

// TestNightOnPostgres is the same on a server.
func TestNightOnPostgres(t *testing.T) {
	t.Parallel()
	url := os.Getenv(databaseURL)
	if url == "" {
		t.Skip("skipped: " + databaseURL + " names no database; give it an empty one, such as " + databaseURL + "=postgres://postgres@127.0.0.1:5432/postgres")
	}
	night(t, "", url)
}

// night plays it on a SQLite file or on a Postgres database.
func night(t *testing.T, file, url string) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	s := build(ctx, t, file, url)
	s.run("seed", "--store", s.store, "--customers", strconv.Itoa(clients))

	provider := s.start("provider", "provider", "--listen", "127.0.0.1:0", "--delay", "100ms")
	s.provider = provider.find(`url=(\S+)`)[1]
	b := book{t: t, ctx: ctx, lines: provider.lines, made: make(map[string]map[string]string), repeated: make(map[string]int), late: make(map[string]int)}

	a, gossip := s.replica("a", "")
	killed, _ := s.replica(victim, gossip)
	c, _ := s.replica("c", gossip)

	night := b.until(func(e entry) bool { return b.by(e.night, victim) >= killAt }).night
	if n := len(b.made[night]); n >= clients {
		t.Fatalf("the night was over before the kill: %d charges; the test needs more customers", n)
	}
	t.Logf("night %s: killing %s after %d charges", night, victim, len(b.made[night]))
	if err := killed.end(syscall.SIGKILL); err == nil {
		t.Error("a killed replica ended without an error")
	}
	// What the victim had in hand comes back once its lease has ended, when the next night has long begun: to be
	// charged, or to be told that it had been.
	b.until(func(entry) bool { return len(b.made[night]) == clients && b.late[night] > 0 })
	t.Logf("night %s: all %d customers charged once, %d late, %d of all asked for again", night, clients, b.late[night], b.repeated[night])

	again, _ := s.replica(victim, gossip)
	b.until(func(e entry) bool { return e.night != night && e.from == victim })
	provider.ignore()
	s.checkLedger(night)
	for _, p := range []*process{a, again, c} {
		if err := p.end(syscall.SIGTERM); err != nil {
			t.Errorf("replica %s did not leave cleanly: %v", p.name, err)
		}
	}
}

// entry is a line of the provider's: a charge made, or asked for again.
type entry struct{ what, customer, night, from string }

var line = regexp.MustCompile(`msg="?(charged|charged before)"? customer=(\S+) cents=\d+ night=(\S+) from=(\S+)$`)

// book is what the provider says it did.
type book struct {
	t        *testing.T
	ctx      context.Context
	lines    <-chan string
	made     map[string]map[string]string // night, customer: the replica that charged
	repeated map[string]int               // night: charges asked for again
	late     map[string]int               // night: lines after the first of a later night
	latest   string                       // night
}

// until reads the provider's lines until one satisfies done, and returns it.
func (b *book) until(done func(entry) bool) entry {
	b.t.Helper()
	for {
		select {
		case text, ok := <-b.lines:
			m := line.FindStringSubmatch(text)
			if !ok || m == nil {
				b.t.Fatalf("the provider says %q, goes on: %t", text, ok)
			}
			e := entry{m[1], m[2], m[3], m[4]}
			if b.enter(e); done(e) {
				return e
			}
		case <-b.ctx.Done():
			for night, made := range b.made {
				b.t.Logf("night %s: %d charges, %d asked for again", night, len(made), b.repeated[night])
			}
			b.t.Fatal("waited too long for the provider's next line")
		}
	}
}

// enter fails the test where a customer is charged a second time in one night, under whatever key.
func (b *book) enter(e entry) {
	if b.made[e.night] == nil {
		b.made[e.night] = make(map[string]string)
	}
	if b.latest = max(b.latest, e.night); e.night < b.latest {
		b.late[e.night]++
	}
	first, seen := b.made[e.night][e.customer]
	switch {
	case e.what == "charged before":
		b.repeated[e.night]++
	case seen:
		b.t.Errorf("night %s: %s charged by %s and by %s", e.night, e.customer, first, e.from)
	default:
		b.made[e.night][e.customer] = e.from
	}
}

// by counts the charges a replica made in a night.
func (b *book) by(night, replica string) (n int) {
	for _, from := range b.made[night] {
		if from == replica {
			n++
		}
	}
	return n
}

// stage is where the processes of a test live.
type stage struct {
	t                         *testing.T
	ctx                       context.Context
	dir, store, url, provider string
}

// build compiles both programs into a folder of the test.
func build(ctx context.Context, t *testing.T, file, url string) *stage {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", dir+string(filepath.Separator), ".", "./provider")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // also where the race detector wants C: else all is compiled once more
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return &stage{t: t, ctx: ctx, dir: dir, store: file, url: url}
}

// command is one of the programs, with the database that the test runs on.
func (s *stage) command(program string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(s.ctx, filepath.Join(s.dir, program), args...)
	cmd.Env = append(os.Environ(), databaseURL+"="+s.url)
	return cmd
}

// open opens the database in the test's own process.
func (s *stage) open() database {
	s.t.Helper()
	var db database
	var err error
	if s.url != "" {
		db, err = openPostgres(s.ctx, s.url)
	} else {
		db, err = openSQLite(s.ctx, s.store)
	}
	if err != nil {
		s.t.Fatal(err)
	}
	return db
}

// checkLedger waits until the night has an entry for each customer, and wants none twice, in whatever night.
func (s *stage) checkLedger(night string) {
	s.t.Helper()
	at, err := time.Parse(time.RFC3339Nano, night)
	if err != nil {
		s.t.Fatal(err)
	}
	db := s.open()
	defer db.close()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		entries, twice, err := count(s.ctx, db, at)
		if err != nil || twice > 0 || entries > clients {
			s.t.Fatalf("the ledger has %d entries for the night, and %d charges twice (%v)", entries, twice, err)
		}
		if entries == clients {
			s.t.Logf("night %s: %d entries in the ledger, none twice", night, entries)
			return
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			s.t.Fatalf("the ledger has %d entries for the night, want %d", entries, clients)
		}
	}
}

// count counts a night's entries, and the charges of all nights that were entered more than once.
func count(ctx context.Context, db database, night time.Time) (entries, twice int, err error) {
	const again = `select count(*) from (select 1 from ledger group by customer, night having count(*) > 1) d`
	switch db := db.(type) {
	case *postgresDatabase:
		err = db.pool.QueryRow(ctx, `select (select count(*) from ledger where night = $1), (`+again+`)`, night).Scan(&entries, &twice)
	case *sqliteDatabase:
		err = db.db.QueryRowContext(ctx, `select (select count(*) from ledger where night = ?), (`+again+`)`, night.UTC().Format(time.RFC3339)).Scan(&entries, &twice)
	}
	return entries, twice, err
}

// run runs the service to its end.
func (s *stage) run(args ...string) {
	s.t.Helper()
	if out, err := s.command("nightly-renewals", args...).CombinedOutput(); err != nil {
		s.t.Fatalf("nightly-renewals %q: %v\n%s", args, err, out)
	}
}

// replica starts one, waits until it says it is ready, and returns its gossip address too.
func (s *stage) replica(name, seed string) (*process, string) {
	s.t.Helper()
	args := []string{"--name", name, "--store", s.store, "--provider", s.provider, "--every", "5s", "--bind", "127.0.0.1:0", "--http", "127.0.0.1:0"}
	if seed != "" {
		args = append(args, "--seed", seed)
	}
	p := s.start(name, "nightly-renewals", args...)
	started := p.find(`gossip=(\S+) ready=(\S+)`)
	p.ignore()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := s.ready(started[2])
		if err == nil {
			return p, started[1]
		}
		select {
		case <-tick.C:
		case <-s.ctx.Done():
			s.t.Fatalf("replica %s is not ready: %v", name, err)
		}
	}
}

func (s *stage) ready(page string) error {
	req, err := http.NewRequestWithContext(s.ctx, http.MethodGet, page, nil)
	if err != nil {
		return err
	}
	req.Close = true
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %s", resp.Status)
	}
	return nil
}
