package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// steps are the schema's versions, for the default prefix; see rule.Schema. They are taken in one transaction, so
// nothing is ever half made.
var steps = [][]string{schema}

// schemaOf is the schema with a prefix.
func schemaOf(prefix string, steps [][]string) rule.Schema {
	s := rule.Schema{Store: prefix + "store"}
	for _, step := range steps {
		var texts []string
		for _, text := range step {
			texts = append(texts, strings.ReplaceAll(text, "belfry_", prefix))
		}
		s.Steps = append(s.Steps, texts)
	}
	return s
}

// Migrate makes the schema in the database of the pool where there is none, and brings an older one up to this
// program's; where neither is to be done it does nothing. Many processes may call it at once: one does it, and the
// others wait until it has. Options.NoMigrate has no effect. It refuses what Open refuses.
func Migrate(ctx context.Context, p *pgxpool.Pool, o *Options) error {
	with, err := o.filled()
	if err != nil {
		return err
	}
	with.NoMigrate = false
	s, err := Open(ctx, p, &with)
	if err != nil {
		return err
	}
	return s.Close()
}

// Script returns the SQL that makes the schema where there is none, for people who do that by hand. It makes it in the
// first schema of the search_path, and draws the store's identity when it runs.
func Script(o *Options) (string, error) {
	with, err := o.filled()
	if err != nil {
		return "", err
	}
	s := schemaOf(with.Prefix, steps)
	var b strings.Builder
	b.WriteString("BEGIN;\n")
	for _, step := range s.Steps {
		for _, text := range step {
			b.WriteString(text + ";\n")
		}
	}
	fmt.Fprintf(&b, "INSERT INTO %s (one, version, id) VALUES (1, %d, replace(gen_random_uuid()::text, '-', ''));\nCOMMIT;\n", s.Store, s.Version())
	return b.String(), nil
}

// migrate brings the schema up to date, or refuses. It reports whether it made it of nothing.
//
// The lock comes first in the transaction: one that has looked for a table before it waited may be told by its
// connection's cache that there is none still.
func (s *Store) migrate(ctx context.Context, schema rule.Schema, o Options) (made bool, err error) {
	err = s.write(ctx, s.calls, func(t *tx) error {
		made = false
		if _, err := t.exec(`SELECT pg_advisory_xact_lock(hashtextextended('belfry ' || coalesce(current_schema(), '') || ' ' || $1, 0))`, o.Prefix); err != nil {
			return err
		}
		f, err := find(t, schema)
		if err != nil {
			return err
		}
		from, err := schema.Plan(f, !o.NoMigrate)
		if err != nil {
			return errors.Join(err, elsewhere(t, f, o.Prefix))
		}
		if from == schema.Version() {
			return nil
		}
		if err := settle(t); err != nil {
			return err
		}
		for v := from; v < schema.Version(); v++ {
			if err := step(t, schema, v); err != nil {
				return err
			}
		}
		made = from == 0
		if f, err = find(t, schema); err == nil {
			_, err = schema.Plan(f, false)
		}
		return err
	})
	return made && err == nil, err
}

// settle makes the transaction work in the schema where the tables are or will be, if the role may.
func settle(t *tx) error {
	var home, user string
	var may bool
	_, err := t.get([]any{&home, &user, &may}, `SELECT home, current_user, home <> '' AND has_schema_privilege(home, 'CREATE') FROM (
  SELECT coalesce((SELECT n.nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace WHERE c.oid = to_regclass('belfry_store')), current_schema(), '') AS home
) x`)
	switch {
	case err != nil:
		return err
	case home == "":
		return refuse("role %q has no schema to make tables in; create one and GRANT USAGE, CREATE ON SCHEMA it TO %s, with search_path set to it", user, quote(user))
	case !may:
		return refuse("role %q may not make tables in schema %q; run `belfry migrate --store …` as one who may, or GRANT USAGE, CREATE ON SCHEMA %s TO %s", user, home, quote(home), quote(user))
	}
	// What changes a table waits for those who use it, and lets nobody begin meanwhile: not for long.
	_, err = t.exec(`SELECT set_config('search_path', quote_ident($1), true), set_config('lock_timeout', '10s', true)`, home)
	return err
}

// elsewhere tells of a store that the role does not see, where it sees none.
func elsewhere(t *tx, f rule.Found, prefix string) error {
	if len(f.Shape) > 0 {
		return nil
	}
	var where, user string
	found, err := t.get([]any{&where, &user}, `SELECT n.nspname, current_user FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relname = $1 AND c.relkind = 'r' ORDER BY 1 LIMIT 1`, prefix+"store")
	if err != nil || !found {
		return err
	}
	return refuse("schema %q has a table %sstore, but it is not in the search_path of role %q, or the role may not use it; GRANT USAGE ON SCHEMA %s TO %s, and ALTER ROLE %s SET search_path = %s",
		where, prefix, user, quote(where), quote(user), quote(user), quote(where))
}

// step takes the step from version v.
func step(t *tx, s rule.Schema, v int) error {
	for _, text := range s.Steps[v] {
		if _, err := t.c.Exec(t.ctx, text); err != nil { // it has its prefix already
			return err
		}
	}
	if v == 0 {
		_, err := t.exec(`INSERT INTO belfry_store (one, version, id) VALUES (1, 1, $1)`, rand.Text())
		return err
	}
	_, err := t.exec(`UPDATE belfry_store SET version = $1`, v+1)
	return err
}

// find reads what is there. A table that is partitioned or unlogged is none of ours: in the one a row's place is not unique, and
// a crash empties the other. The row comes last: where a step was taken in between it does not fit, and is read again
// under the lock.
func find(t *tx, s rule.Schema) (f rule.Found, err error) {
	want, err := s.Shape(s.Version())
	if err != nil {
		return f, err
	}
	names := want.Tables()
	for name, what := range want {
		if what == "sequence" {
			names = append(names, name)
		}
	}
	f.Shape = make(rule.Shape)
	err = t.query(func(r pgx.Rows) error {
		var name, what string
		err := r.Scan(&name, &what)
		f.Shape[name] = what
		return err
	}, `WITH ours AS (SELECT name, to_regclass(quote_ident(name)) AS oid FROM unnest($1::text[]) u(name))
SELECT o.name || '.' || a.attname, replace(format_type(a.atttypid, a.atttypmod), 'timestamp with time zone', 'timestamptz') ||
  CASE WHEN c.collname <> 'default' THEN ' collate ' || lower(c.collname) ELSE '' END || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
FROM ours o JOIN pg_class t ON t.oid = o.oid AND t.relkind = 'r' AND NOT t.relhassubclass AND t.relpersistence = 'p'
JOIN pg_attribute a ON a.attrelid = o.oid AND a.attnum > 0 AND NOT a.attisdropped LEFT JOIN pg_collation c ON c.oid = a.attcollation
UNION ALL
SELECT o.name || '/' || CASE WHEN i.indisprimary THEN 'primary' ELSE t.relname END,
  CASE WHEN i.indisvalid THEN '' ELSE 'invalid ' END || CASE WHEN i.indisunique THEN 'unique ' ELSE '' END ||
  (SELECT string_agg(a.attname, ',' ORDER BY k.n) FROM unnest(i.indkey) WITH ORDINALITY k(attnum, n)
    JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = k.attnum WHERE k.n <= i.indnkeyatts)
FROM ours o JOIN pg_index i ON i.indrelid = o.oid JOIN pg_class t ON t.oid = i.indexrelid WHERE i.indkey[0] <> 0
UNION ALL
SELECT o.name, 'sequence' FROM ours o JOIN pg_class t ON t.oid = o.oid AND t.relkind = 'S' AND t.relpersistence = 'p'`, names)
	if err != nil {
		return f, err
	}
	if f.Shape[s.Store+".version"] != want[s.Store+".version"] {
		return f, nil // there is none, or another's
	}
	var readable bool
	var user string
	if _, err := t.get([]any{&readable, &user}, `SELECT has_table_privilege('belfry_store', 'SELECT'), current_user`); err != nil {
		return f, err
	}
	if !readable {
		return f, refuse("role %q lacks privileges; GRANT SELECT ON %s TO %s, and the others of docs/stores.md", user, s.Store, quote(user))
	}
	f.Row, err = t.get([]any{&f.Version}, `SELECT version FROM belfry_store`)
	return f, err
}
