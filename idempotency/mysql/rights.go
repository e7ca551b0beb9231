package mysql

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/belfry-go/belfry/idempotency/internal/rule"
)

// rights are what a user needs of each table to run a store, but for migrating, repartitioning and dropping namespaces.
// Nothing removes what names a store, its namespaces and its entries.
var rights = map[string]string{
	"belfry_store":      "SELECT",
	"belfry_sequence":   "SELECT, INSERT, DELETE",
	"belfry_space":      "SELECT, INSERT, UPDATE",
	"belfry_control":    "SELECT, INSERT, UPDATE",
	"belfry_command":    "SELECT, INSERT, DELETE",
	"belfry_session":    "SELECT, INSERT, UPDATE, DELETE",
	"belfry_lease":      "SELECT, INSERT, UPDATE, DELETE",
	"belfry_leader":     "SELECT, INSERT, UPDATE",
	"belfry_definition": "SELECT, INSERT, UPDATE, DELETE",
	"belfry_seen":       "SELECT, INSERT",
	"belfry_entry":      "SELECT, INSERT, UPDATE",
	"belfry_decision":   "SELECT, INSERT, UPDATE, DELETE",
	"belfry_run":        "SELECT, INSERT, UPDATE, DELETE",
	"belfry_running":    "SELECT, INSERT, UPDATE, DELETE",
	"belfry_waiting":    "SELECT, INSERT, UPDATE, DELETE",
	"belfry_due":        "SELECT, INSERT, UPDATE, DELETE",
	"belfry_pass":       "SELECT, INSERT, UPDATE, DELETE",
	"belfry_range":      "SELECT, INSERT, DELETE",
}

// checkRights asks for each right by a statement that does nothing: what a server lists of rights does not tell those
// that a user has through roles.
func checkRights(t *tx, s rule.Schema) error {
	want, err := s.Shape(s.Version())
	if err != nil {
		return err
	}
	var user string
	if _, err := t.get([]any{&user}, `SELECT CURRENT_USER()`); err != nil {
		return err
	}
	name, host, _ := strings.Cut(user, "@")
	var lacks []string
	for _, table := range slices.Sorted(maps.Keys(rights)) {
		column := firstColumn(want, render(t.prefix, table, nil))
		for right := range strings.SplitSeq(rights[table], ", ") {
			_, err := t.exec(map[string]string{
				"SELECT": `DO (SELECT 1 FROM ` + table + ` LIMIT 0)`,
				"INSERT": `INSERT INTO ` + table + ` SELECT * FROM ` + table + ` WHERE FALSE`,
				"UPDATE": `UPDATE ` + table + ` SET ` + column + ` = ` + column + ` WHERE FALSE`,
				"DELETE": `DELETE FROM ` + table + ` WHERE FALSE`,
			}[right])
			switch code(err) {
			case noTableRight, noDatabase:
				lacks = append(lacks, fmt.Sprintf("GRANT %s ON %s TO '%s'@'%s'", right, render(t.prefix, table, nil), name, host))
			case noTable, noColumn: // the schema was changed, which is for others to say
			case 0:
				if err != nil {
					return err
				}
			default:
				return err
			}
		}
	}
	if len(lacks) > 0 {
		return refuse("the user lacks rights; %s; as docs/stores.md has it", strings.Join(lacks, "; "))
	}
	return nil
}

// firstColumn is any column of the table.
func firstColumn(s rule.Shape, table string) (column string) {
	for _, x := range slices.Sorted(maps.Keys(s)) {
		if name, ok := strings.CutPrefix(x, table+"."); ok {
			return name
		}
	}
	return ""
}
