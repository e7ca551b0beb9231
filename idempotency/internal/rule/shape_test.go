package rule

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

func TestShape(t *testing.T) {
	t.Parallel()
	s := make(Shape)
	for _, text := range []string{
		"CREATE TABLE x_run (\n  space BIGINT NOT NULL,\n  job text COLLATE \"C\" not null,\n  note text,\n  PRIMARY KEY (space, job),\n  UNIQUE KEY one (job),\n  KEY two (space, note)\n) ENGINE=InnoDB ROW_FORMAT=DYNAMIC",
		"create table if not exists x_store (\n  key bytea,\n  one integer primary key check (one = 1),\n  id text not null unique\n)",
		"create unique index x_run_one on x_run (job, space) where note is not null",
		"create index x_run_two on x_run (note)",
		"create sequence x_fence cache 1",
		"alter table x_run add column wake timestamptz",
		"insert into x_store (one) values (1)",
	} {
		if err := s.Make(text); err != nil {
			t.Fatal(err)
		}
	}
	want := Shape{
		"x_run": "engine innodb", "x_run.space": "bigint not null", "x_run.job": "text collate c not null", "x_run.note": "text", "x_run.wake": "timestamptz",
		"x_run/primary": "unique space,job", "x_run/one": "unique job", "x_run/two": "space,note",
		"x_store.key": "bytea", "x_store.one": "integer not null", "x_store.id": "text not null", "x_store/primary": "unique one", "x_store/x_store_id_key": "unique id",
		"x_run/x_run_one": "unique job,space", "x_run/x_run_two": "note", "x_fence": "sequence",
	}
	if !maps.Equal(s, want) {
		t.Errorf("the shape is %v,\nwant %v", s, want)
	}
	if got := s.Tables(); !slices.Equal(got, []string{"x_run", "x_store"}) {
		t.Errorf("tables %q", got)
	}
}

func TestShapeRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"create table a (b text)", "create table a (\n  b text\n)", "create table a (\n  b\n)", "create index a (b)"} {
		if err := make(Shape).Make(text); err == nil {
			t.Errorf("%q has a shape", text)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	want := Shape{"a.x": "text", "a.y": "text not null", "a/primary": "unique x", "a/i": "y", "f": "sequence"}
	there := maps.Clone(want)
	if missing, wrong := want.Compare(there); len(missing)+len(wrong) > 0 {
		t.Errorf("equal ones differ: %q %q", missing, wrong)
	}
	delete(there, "a/i")
	there["a.y"] = "text"
	there["a.z"], there["a/j"], there["b.x"] = "text", "x", "text" // of b and the new index nobody here has a say
	missing, wrong := want.Compare(there)
	if got := strings.Join(missing, "; "); got != "a/i is missing" {
		t.Errorf("missing: %s", got)
	}
	if got := strings.Join(wrong, "; "); got != `a.y is "text" instead of "text not null"; a.z is not of this schema` {
		t.Errorf("wrong: %s", got)
	}
}
