package rule

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/belfry-go/belfry/idempotency"
)

var schema = Schema{Store: "x_store", Steps: [][]string{
	{"CREATE TABLE x_store (\n  version int not null primary key\n)", "CREATE TABLE x_run (\n  a int not null primary key,\n  b text\n)"},
	{"ALTER TABLE x_run ADD COLUMN c text", "UPDATE x_run SET c = b", "CREATE INDEX x_c on x_run (c)"},
}}

func TestPlan(t *testing.T) {
	t.Parallel()
	one, err1 := schema.Shape(1)
	two, err2 := schema.Shape(2)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	change := func(s Shape, x, what string) Shape {
		s = maps.Clone(s)
		s[x] = what
		if what == "" {
			delete(s, x)
		}
		return s
	}
	store := Shape{"x_store.version": "int not null", "x_store/primary": "unique version"}
	resumes := schema
	resumes.Resumes = true
	for name, c := range map[string]struct {
		schema Schema
		found  Found
		from   int
		want   string // of the error, also where nobody may migrate
		frozen string // of the error where nobody may migrate
	}{
		"empty":                 {schema, Found{}, 0, "", "holds no store: there is no table x_store, and NoMigrate"},
		"beside others":         {schema, Found{Shape: Shape{"x_runs.a": "text", "x": "sequence"}}, 0, "", "holds no store"},
		"up to date":            {schema, Found{Row: true, Version: 2, Shape: two}, 2, "", ""},
		"older":                 {schema, Found{Row: true, Version: 1, Shape: one}, 1, "", "version 1 and this program needs 2, and NoMigrate forbids to change that; check the database and the prefix, then run `belfry migrate --store …`"},
		"newer":                 {schema, Found{Row: true, Version: 3, Shape: two}, 0, "version 3 and this program knows 2; use a newer program", ""},
		"becoming newer":        {resumes, Found{Row: true, Version: 2, Migrating: 3, Shape: two}, 0, "version 3 and this program knows 2", ""},
		"no row":                {schema, Found{Shape: two}, 0, "x_store has no row; restore a backup", ""},
		"a table is missing":    {schema, Found{Row: true, Version: 2, Shape: store}, 0, "x_run.a is missing, x_run.b is missing, x_run.c is missing, x_run/primary is missing, x_run/x_c is missing; change it back", ""},
		"a column is missing":   {schema, Found{Row: true, Version: 2, Shape: change(two, "x_run.c", "")}, 0, "x_run.c is missing", ""},
		"a column is new":       {schema, Found{Row: true, Version: 2, Shape: change(two, "x_run.d", "text")}, 0, "x_run.d is not of this schema", ""},
		"an index is missing":   {schema, Found{Row: true, Version: 2, Shape: change(two, "x_run/x_c", "")}, 0, "x_run/x_c is missing", ""},
		"a type is another":     {schema, Found{Row: true, Version: 2, Shape: change(two, "x_run.b", "int")}, 0, `x_run.b is "int" instead of "text"`, ""},
		"older and changed":     {schema, Found{Row: true, Version: 1, Shape: change(one, "x_run.b", "")}, 0, "x_run.b is missing", ""},
		"older with newer":      {schema, Found{Row: true, Version: 1, Shape: two}, 0, "x_run.c is not of this schema", ""},
		"first table only":      {resumes, Found{Shape: store}, 0, "", "half way from version 0 to 1"},
		"half made":             {resumes, Found{Row: true, Migrating: 1, Shape: change(one, "x_run.b", "")}, 0, "", "half way from version 0 to 1"},
		"half made, wrong":      {resumes, Found{Row: true, Migrating: 1, Shape: change(one, "x_run.b", "int")}, 0, `x_run.b is "int"`, ""},
		"half way":              {resumes, Found{Row: true, Version: 1, Migrating: 2, Shape: change(two, "x_run/x_c", "")}, 1, "", "half way from version 1 to 2"},
		"whole, yet not marked": {resumes, Found{Row: true, Version: 1, Migrating: 2, Shape: two}, 1, "", "half way"},
		"resumes, no mark":      {resumes, Found{Row: true, Version: 1, Shape: two}, 0, "x_run.c is not of this schema", ""},
		"resumes, up to date":   {resumes, Found{Row: true, Version: 2, Shape: two}, 2, "", ""},
		"another's":             {resumes, Found{Shape: Shape{"x_store.a": "text"}}, 0, "x_store.a is not of this schema", ""},
	} {
		for _, may := range []bool{true, false} {
			want := c.want
			if want == "" && !may {
				want = c.frozen
			}
			from, err := c.schema.Plan(c.found, may)
			switch {
			case want == "" && (err != nil || from != c.from):
				t.Errorf("%s: from version %d, %v; want %d", name, from, err, c.from)
			case want != "" && (err == nil || !errors.Is(err, idempotency.ErrRefused) || !strings.Contains(err.Error(), want)):
				t.Errorf("%s, may migrate: %v: error %v, want one that says %q", name, may, err, want)
			}
		}
	}
}

func TestLeft(t *testing.T) {
	t.Parallel()
	there := Shape{"x_run.c": "text"}
	left, err := schema.Left(schema.Steps[1], there)
	if err != nil || strings.Join(left, "; ") != strings.Join(schema.Steps[1][1:], "; ") {
		t.Errorf("left are %q, %v", left, err)
	}
	there["x_run/x_c"] = "c"
	if left, err := schema.Left(schema.Steps[1], there); err != nil || len(left) != 1 {
		t.Errorf("left are %q, %v; want the one that makes nothing", left, err)
	}
}
