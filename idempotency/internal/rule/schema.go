package rule

import (
	"fmt"
	"strings"

	"github.com/belfry-go/belfry/idempotency"
)

// Schema is a driver's schema in all its versions. Its table Store has one row, with the version.
type Schema struct {
	Store string

	// Steps[v-1] are the statements that bring version v-1 to v; the first step makes version 1 of nothing. A step that was
	// released never changes.
	Steps [][]string

	// Resumes is for servers that commit each statement of a step alone: what a process left half done, the next one
	// completes. It skips what is there. A statement that makes nothing (see Shape.Make) has to be repeatable.
	Resumes bool
}

// Found is what a server has of a schema.
type Found struct {
	Row       bool // there is a row in the table Store
	Version   int  // as it says
	Migrating int  // the version that it is being brought to, 0 if none
	Shape     Shape
}

// Version is the schema's newest.
func (s Schema) Version() int { return len(s.Steps) }

// Shape is the schema's at a version.
func (s Schema) Shape(version int) (Shape, error) {
	all := make(Shape)
	for _, step := range s.Steps[:version] {
		for _, text := range step {
			if err := all.Make(text); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// Plan answers from which version on the steps have to be taken; from the newest: there is nothing to do. It refuses, with
// what to do, what these steps would not mend, and all that is not up to date where nobody may migrate.
func (s Schema) Plan(f Found, mayMigrate bool) (from int, err error) {
	newest := s.Version()
	all, err := s.Shape(newest)
	if err != nil {
		return 0, err
	}
	if v := max(f.Version, f.Migrating); v > newest {
		return 0, refused("its schema has version %d and this program knows %d; use a newer program", v, newest)
	}
	empty := true
	for _, name := range all.Tables() {
		for x := range f.Shape {
			empty = empty && !strings.HasPrefix(x, name+".")
		}
	}
	if !empty {
		if err := s.sound(f); err != nil {
			return 0, err
		}
	}
	if f.Version < newest && !mayMigrate {
		return 0, s.notUpToDate(f, empty)
	}
	return f.Version, nil
}

// sound refuses what is there otherwise than the version in force made it.
func (s Schema) sound(f Found) error {
	half := s.Resumes && f.Version < s.Version() && (f.Migrating == f.Version+1 || !f.Row)
	version := f.Version
	if half {
		version++
	}
	if version == 0 {
		return refused("its schema is half made or another's: %s has no row; restore a backup, remove these tables, or use another prefix", s.Store)
	}
	want, err := s.Shape(version)
	if err != nil {
		return err
	}
	missing, wrong := want.Compare(f.Shape)
	if half {
		missing = nil
	}
	if lines := append(wrong, missing...); len(lines) > 0 {
		const most = 5
		more := ""
		if n := len(lines) - most; n > 0 {
			lines, more = lines[:most], fmt.Sprintf(", and %d more", n)
		}
		return refused("its schema was changed or is another's: %s%s; change it back, restore a backup, or use another prefix", strings.Join(lines, ", "), more)
	}
	return nil
}

func (s Schema) notUpToDate(f Found, empty bool) error {
	what := fmt.Sprintf("its schema has version %d and this program needs %d", f.Version, s.Version())
	switch {
	case empty:
		what = fmt.Sprintf("it holds no store: there is no table %s", s.Store)
	case f.Migrating > 0 || !f.Row:
		what = fmt.Sprintf("its schema is half way from version %d to %d", f.Version, f.Version+1)
	}
	return refused("%s, and NoMigrate forbids to change that; check the database and the prefix, then run `belfry migrate --store …` as a user who may", what)
}

func refused(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{idempotency.ErrRefused}, args...)...)
}

// Left are those of the statements that have to be run where there is a shape: one whose every thing is there was run.
func (s Schema) Left(step []string, there Shape) (left []string, err error) {
	for _, text := range step {
		makes := make(Shape)
		if err := makes.Make(text); err != nil {
			return nil, err
		}
		missing := len(makes) == 0
		for x := range makes {
			_, ok := there[x]
			missing = missing || !ok
		}
		if missing {
			left = append(left, text)
		}
	}
	return left, nil
}
