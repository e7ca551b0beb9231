package mysql

import (
	"context"
	"crypto/rand"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"time"

	driver "github.com/go-sql-driver/mysql"

	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// Each statement that changes a table commits by itself here, so that a process may die half way. Hence the mark: what
// the schema is being brought to stands in belfry_store before the first statement, and the version after the last. Who
// finds a mark goes on where the other stopped. One does it at a time, under a lock of the server's that ends with the
// connection; if there is none, as between the nodes of a cluster, it is still only done twice.

// steps are the schema's versions, for the default prefix; see rule.Schema.
var steps = [][]string{schema}

// schemaOf is the schema with a prefix.
func schemaOf(prefix string, steps [][]string) rule.Schema {
	s := rule.Schema{Store: prefix + "store", Resumes: true}
	for _, step := range steps {
		var texts []string
		for _, text := range step {
			texts = append(texts, render(prefix, text, nil))
		}
		s.Steps = append(s.Steps, texts)
	}
	return s
}

// Migrate makes the schema in the database that db connects to where there is none, and brings an older one up to this
// program's; where neither is to be done it does nothing. Many processes may call it at once: one does it, and the
// others wait until it has. What a process that died has left half done, the next call completes. Options.NoMigrate has no
// effect. It refuses what Open refuses.
func Migrate(ctx context.Context, db *sql.DB, o *Options) error {
	with, err := o.filled()
	if err != nil {
		return err
	}
	with.NoMigrate = false
	return singly(ctx, db, with.Prefix, func(t *tx) error {
		_, err := examine(t, steps, with)
		return err
	})
}

// Script returns the SQL that makes the schema in a database that has none, for people who do that by hand. It draws the
// store's identity when it runs.
func Script(o *Options) (string, error) {
	with, err := o.filled()
	if err != nil {
		return "", err
	}
	s := schemaOf(with.Prefix, steps)
	var b strings.Builder
	for _, step := range s.Steps {
		for _, text := range step {
			b.WriteString(text + ";\n")
		}
	}
	fmt.Fprintf(&b, "INSERT INTO %s (one, version, id) VALUES (1, %d, REPLACE(UUID(), '-', ''));\n", s.Store, s.Version())
	return b.String(), nil
}

// migrate brings the schema up to date, or refuses. It reports whether it made it of nothing.
func migrate(t *tx, s rule.Schema, may bool) (made bool, err error) {
	if _, from, err := plan(t, s, may); err == nil && from == s.Version() {
		return false, nil
	}
	// Another may be about it: only under its lock is what was found the truth.
	if err := lock(t); err != nil {
		return false, err
	}
	there, from, err := plan(t, s, may)
	if err != nil {
		return false, err
	}
	for v := from; v < s.Version(); v++ {
		if err := step(t, s, v, there); err != nil {
			return false, mayNot(err)
		}
	}
	// What was asked for is not always what is there: an engine may have been replaced.
	_, _, err = plan(t, s, false)
	return from == 0 && err == nil, err
}

// plan looks at what is there, and answers from which version on the steps have to be taken. Rights come before the
// tables, because nobody is told of tables that they have no right to.
func plan(t *tx, s rule.Schema, may bool) (there rule.Shape, from int, err error) {
	f, err := find(t, s)
	if err == nil && f.Row && f.Version == s.Version() {
		err = checkRights(t, s)
	}
	if err != nil {
		return nil, 0, err
	}
	from, err = s.Plan(f, may)
	return f.Shape, from, err
}

// step takes one step from version v, of which some may have been done.
func step(t *tx, s rule.Schema, v int, there rule.Shape) error {
	if v == 0 {
		if err := ddl(t, s.Steps[0][0]); err != nil { // belfry_store
			return err
		}
		_, err := t.exec(`INSERT INTO belfry_store (one, version, migrating, id) VALUES (1, 0, 1, ?) ON DUPLICATE KEY UPDATE one = one`, rand.Text())
		if err != nil {
			return err
		}
	}
	if _, err := t.exec(`UPDATE belfry_store SET migrating = ?`, v+1); err != nil {
		return err
	}
	texts, err := s.Left(s.Steps[v], there)
	if err != nil {
		return err
	}
	for _, text := range texts {
		if err := ddl(t, text); err != nil {
			return err
		}
	}
	_, err = t.exec(`UPDATE belfry_store SET version = ?, migrating = 0`, v+1)
	return err
}

// ddl runs a statement of a step, which has its prefix already.
func ddl(t *tx, text string) error {
	if _, err := t.ExecContext(t.ctx, strings.Replace(text, "CREATE TABLE ", "CREATE TABLE IF NOT EXISTS ", 1)); err != nil {
		return t.failed(err)
	}
	return nil
}

// find reads what is there: first the row, since the tables follow the mark.
func find(t *tx, s rule.Schema) (f rule.Found, err error) {
	f.Row, err = t.get([]any{&f.Version, &f.Migrating}, `SELECT version, migrating FROM belfry_store`)
	switch code(err) {
	case noTable, noColumn: // the tables will tell
	case 0:
		if err != nil {
			return f, err
		}
	case noTableRight, noDatabase:
		return f, refuse("table %s is not there, or the user may not read it (%w); check the database and the prefix, and the rights in docs/stores.md", s.Store, err)
	default:
		return f, err
	}
	f.Shape = make(rule.Shape)
	take := func(query string, add func(table, name, what string, is bool)) error {
		return t.query(func(r *sql.Rows) error {
			var table, name, what string
			var is bool
			err := r.Scan(&table, &name, &what, &is)
			add(strings.ToLower(table), strings.ToLower(name), strings.ToLower(what), is)
			return err
		}, query+` WHERE table_schema = DATABASE() AND LEFT(table_name, ?) = ?`, len(t.prefix), t.prefix)
	}
	err = errors.Join(
		take(`SELECT table_name, '', engine, engine IS NULL FROM information_schema.tables`, func(table, _, engine string, _ bool) {
			f.Shape[table] = "engine " + engine
		}),
		take(`SELECT table_name, column_name, column_type, is_nullable = 'YES' FROM information_schema.columns`, func(table, name, what string, null bool) {
			f.Shape[table+"."+name] = width.ReplaceAllString(what, "$1") + when(!null, " not null")
		}),
		take(`SELECT table_name, index_name, columns, free FROM (SELECT table_schema, table_name, index_name, non_unique AS free,
GROUP_CONCAT(column_name ORDER BY seq_in_index) AS columns FROM information_schema.statistics GROUP BY table_schema, table_name, index_name, non_unique) x`, func(table, name, columns string, free bool) {
			f.Shape[table+"/"+name] = when(!free, "unique ") + columns
		}))
	return f, err
}

// width is what MySQL has ceased to say of whole numbers: how many digits to pad them to.
var width = regexp.MustCompile(`^((?:tiny|small|medium|big)?int)\(\d+\)`)

func when(is bool, s string) string {
	if is {
		return s
	}
	return ""
}

// lock waits until no other process migrates the schema, and keeps all others from it for as long as the connection lives.
func lock(t *tx) error {
	deadline, _ := t.ctx.Deadline()
	var got sql.NullInt64
	_, err := t.get([]any{&got}, `SELECT GET_LOCK(CONCAT('belfry ', SHA1(CONCAT(DATABASE(), ' ', ?))), ?)`, t.prefix, int(time.Until(deadline).Seconds()))
	if err == nil && got.Int64 != 1 {
		err = errors.New("another process migrates the schema, and has not ended within the deadline; wait for it, and repeat")
	}
	return err
}

// mayNot says which right lacks whoever may not change tables.
func mayNot(err error) error {
	if c := code(err); c == noTableRight || c == noDatabase {
		return refuse("the user may not change the schema (%w); run `belfry migrate --store …` as one who may, or GRANT CREATE, ALTER, INDEX, SELECT, INSERT, UPDATE, DELETE on the database to this one", err)
	}
	return err
}

// noColumn is the server's error about a column that is not there.
const noColumn = 1054

// code is the server's number of an error, 0 where the error is not the server's.
func code(err error) uint16 {
	var e *driver.MySQLError
	if errors.As(err, &e) {
		return e.Number
	}
	return 0
}
