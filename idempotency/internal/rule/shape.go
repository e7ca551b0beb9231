package rule

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Shape is a schema as a server lists it: what each thing is, by its name. A column is "table.name", and its value its
// type, collation and whether it may be null; an index is "table/name", the primary key "table/primary", and its value
// its columns, with "unique" before them where it is; a table with an engine and a sequence are their names. All is in
// lower case.
type Shape map[string]string

// Make adds what a statement makes. It knows the forms that the schemas of this module are written in:
//
//	create table [if not exists] NAME (        a line for each column, primary key and index
//	create [unique] index NAME on TABLE (COLUMNS) …
//	create sequence NAME …
//	alter table NAME add column COLUMN TYPE …
//
// Any other statement makes nothing.
func (s Shape) Make(statement string) error {
	text := strings.ToLower(statement)
	w := strings.Fields(strings.ReplaceAll(text, "if not exists ", ""))
	switch {
	case strings.HasPrefix(text, "create table "):
		return s.table(w[2], text)
	case strings.HasPrefix(text, "create index "), strings.HasPrefix(text, "create unique index "):
		i := slices.Index(w, "on")
		if i < 1 || i+1 >= len(w) {
			return fmt.Errorf("an index on nothing: %s", statement)
		}
		s[w[i+1]+"/"+w[i-1]] = unique(w[1] == "unique") + columns(text)
	case strings.HasPrefix(text, "create sequence "):
		s[w[2]] = "sequence"
	case strings.HasPrefix(text, "alter table ") && strings.Contains(text, " add column "):
		_, column, _ := strings.Cut(text, " add column ")
		s.column(w[2], column)
	}
	return nil
}

func (s Shape) table(name, text string) error {
	lines := strings.Split(text, "\n")
	if len(lines) < 3 || !strings.HasSuffix(lines[0], "(") || !strings.HasPrefix(lines[len(lines)-1], ")") {
		return fmt.Errorf("table %s: not a line for each column", name)
	}
	if _, engine, ok := strings.Cut(lines[len(lines)-1], "engine="); ok {
		s[name] = "engine " + strings.Fields(engine)[0]
	}
	var primary string
	for _, line := range lines[1 : len(lines)-1] {
		switch w := strings.Fields(line); {
		case len(w) < 2:
			return fmt.Errorf("table %s: %q makes nothing", name, line)
		case w[0] == "primary":
			primary = columns(line)
		case len(w) > 2 && (w[0] == "key" || w[0] == "index") && strings.HasPrefix(w[2], "("): // a column may have such a name
			s[name+"/"+w[1]] = columns(line)
		case w[0] == "unique":
			s[name+"/"+w[2]] = unique(true) + columns(line)
		default:
			s.column(name, line)
			if strings.Contains(line, " primary key") {
				primary = w[0]
			}
			if strings.Contains(line, " unique") {
				s[fmt.Sprintf("%s/%s_%s_key", name, name, w[0])] = unique(true) + w[0] // as PostgreSQL names it
			}
		}
	}
	if primary == "" {
		return fmt.Errorf("table %s has no primary key", name)
	}
	s[name+"/primary"] = unique(true) + primary
	for c := range strings.SplitSeq(primary, ",") {
		s[name+"."+c] = strings.TrimSuffix(s[name+"."+c], notNull) + notNull
	}
	return nil
}

const notNull = " not null"

func (s Shape) column(table, line string) {
	w := strings.Fields(strings.TrimSuffix(strings.TrimSpace(line), ","))
	what := w[1]
	if i := slices.Index(w, "collate"); i > 0 && i+1 < len(w) {
		what += " collate " + strings.Trim(w[i+1], `"`)
	}
	if strings.Contains(line, notNull) {
		what += notNull
	}
	s[table+"."+w[0]] = what
}

// columns are those between the first parentheses.
func columns(line string) string {
	_, list, _ := strings.Cut(line, "(")
	list, _, _ = strings.Cut(list, ")")
	return strings.ReplaceAll(list, " ", "")
}

func unique(is bool) string {
	if is {
		return "unique "
	}
	return ""
}

// Tables are the tables that have columns here, in order.
func (s Shape) Tables() []string {
	names := make(map[string]bool)
	for x := range s {
		if table, _, ok := strings.Cut(x, "."); ok {
			names[table] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// Compare says, a line each, what is missing there, and what is otherwise than it should be: different, or a column too
// many in a table of this schema. Further indexes are their owner's business.
func (s Shape) Compare(there Shape) (missing, wrong []string) {
	for _, x := range slices.Sorted(maps.Keys(s)) {
		switch have, ok := there[x]; {
		case !ok:
			missing = append(missing, x+" is missing")
		case have != s[x]:
			wrong = append(wrong, fmt.Sprintf("%s is %q instead of %q", x, have, s[x]))
		}
	}
	tables := s.Tables()
	for _, x := range slices.Sorted(maps.Keys(there)) {
		table, _, column := strings.Cut(x, ".")
		if _, ok := s[x]; !ok && column && slices.Contains(tables, table) {
			wrong = append(wrong, x+" is not of this schema")
		}
	}
	return missing, wrong
}
