package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/internal/testservers"
)

func run(t testing.TB, p *pgxpool.Pool, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if _, err := p.Exec(context.Background(), text); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
}

// second is a step that a later program may have: of each kind of statement one.
var second = []string{
	`ALTER TABLE belfry_entry ADD COLUMN note text COLLATE "C"`,
	`UPDATE belfry_entry SET note = job`,
	`CREATE TABLE belfry_extra (
  id bigint PRIMARY KEY
)`,
	`CREATE INDEX belfry_entry_note ON belfry_entry (note)`,
}

// upgrade is Migrate of the program that has the second step.
func upgrade(ctx context.Context, p *pgxpool.Pool, o *Options) error {
	with, err := o.filled()
	if err != nil {
		return err
	}
	s := &Store{pool: p, texts: newTexts(with.Prefix, serverClock)}
	if err := s.connect(ctx); err != nil {
		return err
	}
	return errors.Join(s.prepare(ctx, [][]string{schema, second}, with), s.Close())
}

// F63: of many that open an empty database at once one makes the store, and all have the same.
func TestManyOpenAtOnce(t *testing.T) {
	t.Parallel()
	d := testservers.Postgres(t).Database(t)
	var log strings.Builder
	o := &Options{Logger: slog.New(slog.NewTextHandler(&log, nil))}
	var all sync.WaitGroup
	ids := make([]string, 10)
	for i := range ids {
		p := pool(t, d)
		all.Go(func() {
			s, err := Open(t.Context(), p, o)
			if err != nil {
				t.Error(err)
				return
			}
			ids[i] = s.id
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if len(slices.Compact(ids)) != 1 || ids[0] == "" {
		t.Errorf("identities %q", ids)
	}
	if n := strings.Count(log.String(), "a new store was made"); n != 1 {
		t.Errorf("%d of them made it", n)
	}
}

// fuse is a connection that breaks at its nth message, and its process with it: before the server got the message, or
// after it was answered.
type fuse struct {
	net.Conn
	after bool
	blow  func()

	mu   sync.Mutex
	left int
}

func (f *fuse) spent(by int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()

	f.left -= by
	return f.left <= 0
}

func (f *fuse) die() (int, error) {
	f.Close()
	f.blow()
	return 0, net.ErrClosed
}

func (f *fuse) Write(b []byte) (int, error) {
	if f.spent(1) && !f.after {
		return f.die()
	}
	return f.Conn.Write(b)
}

func (f *fuse) Read(b []byte) (int, error) {
	n, err := f.Conn.Read(b)
	if f.spent(0) && f.after {
		return f.die()
	}
	return n, err
}

func inSchema(schema string) func(*pgxpool.Config) {
	return func(c *pgxpool.Config) { c.ConnConfig.RuntimeParams["search_path"] = schema }
}

// diesAt does it in a process that dies at its nth message.
func diesAt(t *testing.T, d testservers.Database, schema string, n int, after bool, do func(context.Context, *pgxpool.Pool, *Options) error) error {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	return do(ctx, pool(t, d, inSchema(schema), func(c *pgxpool.Config) {
		c.ConnConfig.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			var dialer net.Dialer
			inner, err := dialer.DialContext(ctx, network, addr)
			return &fuse{Conn: inner, after: after, left: n, blow: cancel}, err
		}
	}), nil)
}

// F63: wherever a process dies while it migrates, it leaves all or nothing.
func TestMigrationDies(t *testing.T) {
	t.Parallel()
	for _, after := range []bool{false, true} {
		for _, c := range []struct {
			name string
			from int // version
			step int // between the messages that it dies at
			do   func(context.Context, *pgxpool.Pool, *Options) error
		}{
			{"Making", 0, 4, Migrate},
			{"Upgrading", 1, 4, upgrade},
		} {
			t.Run(fmt.Sprint(c.name, "After", after), func(t *testing.T) {
				t.Parallel()
				d := testservers.Postgres(t).Database(t)
				deaths := 0
				for n := 1; dies(t, d, n, after, c.from, c.do); n += c.step {
					deaths++
				}
				if deaths < 6 {
					t.Errorf("it died %d times; the test has shown nothing", deaths)
				}
				t.Logf("it died %d times", deaths)
			})
		}
	}
}

// dies lets it die at its nth message and reports whether it did before it had done it.
func dies(t *testing.T, d testservers.Database, n int, after bool, from int, do func(context.Context, *pgxpool.Pool, *Options) error) bool {
	t.Helper()
	name := fmt.Sprint("n", n)
	whole := pool(t, d, inSchema(name))
	run(t, whole, "CREATE SCHEMA "+name)
	if from > 0 {
		if err := Migrate(t.Context(), whole, nil); err != nil {
			t.Fatal(err)
		}
	}
	died := diesAt(t, d, name, n, after, do)
	id, version := state(whole)
	if version != from && version != from+1 {
		t.Fatalf("message %d: version %d", n, version)
	}
	if s, err := Open(t.Context(), whole, &Options{NoMigrate: true}); err == nil {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if version != 1 {
			t.Fatalf("message %d: version %d was opened", n, version)
		}
	} else if version == 1 || !errors.Is(err, idempotency.ErrRefused) {
		t.Fatalf("message %d: left at version %d is %v", n, version, err)
	}
	if err := do(t.Context(), whole, nil); err != nil {
		t.Fatalf("message %d: the next one: %v", n, err)
	}
	if again, now := state(whole); now != from+1 || id != "" && id != again {
		t.Fatalf("message %d: version %d, the identity %q became %q", n, now, id, again)
	}
	return died != nil && version == from
}

func state(p *pgxpool.Pool) (id string, version int) {
	// Where there is no table yet both stay empty.
	_ = p.QueryRow(context.Background(), `SELECT id, version FROM belfry_store`).Scan(&id, &version)
	return id, version
}

// F63, F38: a schema that this program did not make is refused, with what to do, and left as it was.
func TestOpenRefusesSchemas(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		change  []string // of a store that was made
		empty   bool     // there is none
		options *Options
		want    string
	}{
		{"NoMigrateEmpty", nil, true, &Options{NoMigrate: true}, "there is no table belfry_store, and NoMigrate forbids to change that; check the database and the prefix, then run `belfry migrate --store …`"},
		{"NoMigrateOtherPrefix", nil, false, &Options{NoMigrate: true, Prefix: "belfry_b_"}, "there is no table belfry_b_store"},
		{"OutOfSearchPath", []string{`CREATE SCHEMA hidden`, `ALTER TABLE belfry_run SET SCHEMA hidden`}, false, nil, "belfry_run.attempt is missing"},
		{"AllOutOfSearchPath", []string{`ALTER SCHEMA public RENAME TO hidden`, `CREATE SCHEMA public`}, false, &Options{NoMigrate: true}, `schema "hidden" has a table belfry_store, but it is not in the search_path of role "postgres"`},
		{"NoSchema", []string{`DROP SCHEMA public`}, true, nil, `role "postgres" has no schema to make tables in`},
		{"Newer", []string{`UPDATE belfry_store SET version = 2`}, false, nil, "version 2 and this program knows 1; use a newer program"},
		{"NoRow", []string{`DELETE FROM belfry_store`}, false, nil, "belfry_store has no row; restore a backup"},
		{"NoTable", []string{`DROP TABLE belfry_pass`}, false, nil, "belfry_pass.due is missing"},
		{"NoColumn", []string{`ALTER TABLE belfry_run DROP COLUMN payload`}, false, nil, "belfry_run.payload is missing"},
		{"NewColumn", []string{`ALTER TABLE belfry_run ADD COLUMN mine integer`}, false, nil, "belfry_run.mine is not of this schema"},
		{"OtherType", []string{`ALTER TABLE belfry_run ALTER COLUMN reason TYPE text USING ''`}, false, nil, `belfry_run.reason is "text" instead of "bytea"`},
		{"OtherOrder", []string{`ALTER TABLE belfry_entry ALTER COLUMN job TYPE text COLLATE "default"`}, false, nil, `belfry_entry.job is "text not null" instead of "text collate c not null"`},
		{"NoSequence", []string{`DROP SEQUENCE belfry_number`}, false, nil, "belfry_number is missing"},
		{"NoIndex", []string{`DROP INDEX belfry_due_open`}, false, nil, "belfry_due/belfry_due_open is missing"},
		{"NoUniqueIndex", []string{`ALTER TABLE belfry_space DROP CONSTRAINT belfry_space_name_key`, `CREATE INDEX belfry_space_name_key ON belfry_space (name)`}, false, nil, `is "name" instead of "unique name"`},
		{"InvalidIndex", []string{`UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'belfry_due_open'::regclass`}, false, nil, `is "invalid space,job,due"`},
		{"CachedFences", []string{`ALTER SEQUENCE belfry_number CACHE 20`}, false, nil, "ALTER SEQUENCE belfry_number CACHE 1"},
		{"FencesDown", []string{`ALTER SEQUENCE belfry_number INCREMENT -1 MINVALUE -9`}, false, nil, "INCREMENT 1"},
		{"FencesAgain", []string{`ALTER SEQUENCE belfry_number CYCLE`}, false, nil, "NO CYCLE"},
		{"Unlogged", []string{`ALTER TABLE belfry_run SET UNLOGGED`}, false, nil, "belfry_run.attempt is missing"},
		{"Inherited", []string{`CREATE TABLE more () INHERITS (belfry_running)`}, false, nil, "belfry_running.due is missing"},
		{"AnothersTable", []string{`CREATE TABLE belfry_store (a integer)`}, true, nil, "half made or another's"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := pool(t, testservers.Postgres(t).Database(t))
			if !c.empty {
				if err := Migrate(t.Context(), p, nil); err != nil {
					t.Fatal(err)
				}
			}
			run(t, p, c.change...)
			before := relations(t, p)
			s, err := Open(t.Context(), p, c.options)
			if err == nil {
				s.Close()
				t.Fatal("it was opened")
			}
			if !errors.Is(err, idempotency.ErrRefused) || !strings.HasPrefix(err.Error(), "postgres: store belfry_") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q, want one that says %q", err, c.want)
			}
			if after := relations(t, p); after != before {
				t.Errorf("the tables %s became %s", before, after)
			}
		})
	}
}

func relations(t *testing.T, p *pgxpool.Pool) (names string) {
	t.Helper()
	const all = `SELECT coalesce(string_agg(oid::regclass || ' ' || relfilenode, ' ' ORDER BY oid), '') FROM pg_class WHERE relnamespace::regnamespace::text !~ '^(pg_|information)'`
	if err := p.QueryRow(context.Background(), all).Scan(&names); err != nil {
		t.Fatal(err)
	}
	return names
}

// A later program upgrades where the tables are, which need not be where new ones would be made; the older ones are
// refused from then on.
func TestUpgrade(t *testing.T) {
	t.Parallel()
	d := testservers.Postgres(t).Database(t)
	p := pool(t, d)
	if err := Migrate(t.Context(), p, nil); err != nil {
		t.Fatal(err)
	}
	run(t, p, `INSERT INTO belfry_entry (space, job, key, schedule, hash, revision, keyed, leader, opened) VALUES (1, 'renewals', '', '', '', 0, false, false, now())`,
		`CREATE SCHEMA first`, fmt.Sprintf(`ALTER DATABASE %s SET search_path = first, public`, d.Name))
	p = pool(t, d)
	id, _ := state(p)
	if err := upgrade(t.Context(), p, &Options{NoMigrate: true}); err == nil || !strings.Contains(err.Error(), "version 1 and this program needs 2, and NoMigrate") {
		t.Errorf("without leave to migrate: %v", err)
	}
	for range 2 {
		if err := upgrade(t.Context(), p, nil); err != nil {
			t.Fatal(err)
		}
	}
	var note, where string
	if err := p.QueryRow(t.Context(), `SELECT note, 'belfry_extra'::regclass::oid::text FROM public.belfry_entry, public.belfry_extra RIGHT JOIN (SELECT) x ON true`).Scan(&note, &where); err != nil || note != "renewals" {
		t.Errorf("the step's data is %q %v", note, err)
	}
	if again, version := state(p); again != id || version != 2 {
		t.Errorf("version %d of %q, which was %q", version, again, id)
	}
	if err := Migrate(t.Context(), p, nil); err == nil || !strings.Contains(err.Error(), "use a newer program") {
		t.Errorf("the older program: %v", err)
	}
}

// What people run by hand makes a store as Open makes one, and each time another.
func TestScript(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, prefix := range []string{"", "a_", "a_belfry_"} {
		o := &Options{Prefix: prefix, NoMigrate: true}
		text, err := Script(o)
		if err != nil {
			t.Fatal(err)
		}
		p := pool(t, testservers.Postgres(t).Database(t))
		run(t, p, text)
		seen[openAt(t, p, o, serverClock).id] = true
	}
	if len(seen) != 3 {
		t.Errorf("three stores have the identities %v", seen)
	}
}

// S11: a prefix is a plain name, or nothing is done at all.
func TestPrefix(t *testing.T) {
	t.Parallel()
	p := pool(t, testservers.Postgres(t).Database(t))
	for _, prefix := range []string{
		"a;", "a'", "a`", `a"`, "a b", "A", "1a", "é", "a--", "a/*", "a\x00", "a\n", "x; DROP TABLE belfry_store", strings.Repeat("a", 32), strings.Repeat("a", 300),
	} {
		o := &Options{Prefix: prefix}
		_, script := Script(o)
		_, opened := Open(t.Context(), p, o)
		for name, err := range map[string]error{
			"open": opened, "script": script, "migrate": Migrate(t.Context(), p, o), "repartition": Repartition(t.Context(), p, "ns", 1, o),
		} {
			if err == nil || !strings.Contains(err.Error(), "use a letter or _") {
				t.Errorf("%s with the prefix %q: %v", name, prefix, err)
			}
		}
	}
	if left := relations(t, p); left != "" {
		t.Errorf("tables %s", left)
	}
	var ids []string
	for _, prefix := range []string{"a_", "a_b_", "a_belfry_", "_", strings.Repeat("a", 31)} { // the first begins others' names
		ids = append(ids, openAt(t, p, &Options{Prefix: prefix}, serverClock).id)
	}
	if slices.Sort(ids); len(slices.Compact(ids)) != 5 {
		t.Errorf("identities %q", ids)
	}
	openAt(t, p, &Options{Prefix: "a_", NoMigrate: true}, serverClock)
}
