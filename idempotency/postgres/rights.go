package postgres

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
)

// rights are what a role needs of each table and of the sequence to run a store, but for migrating, repartitioning and
// dropping namespaces. Locks of rows need UPDATE. Nothing removes what names a store, its namespaces and its entries.
var rights = map[string]string{
	"belfry_number":     "USAGE, SELECT",
	"belfry_store":      "SELECT",
	"belfry_space":      "SELECT, INSERT, UPDATE",
	"belfry_control":    "SELECT, INSERT, UPDATE",
	"belfry_command":    "SELECT, INSERT, DELETE",
	"belfry_session":    "SELECT, INSERT, UPDATE, DELETE",
	"belfry_leader":     "SELECT, INSERT, UPDATE",
	"belfry_definition": "SELECT, INSERT, UPDATE, DELETE",
	"belfry_seen":       "SELECT, INSERT",
	"belfry_entry":      "SELECT, INSERT, UPDATE",
	"belfry_decision":   "SELECT, INSERT, UPDATE, DELETE",
	"belfry_due":        "SELECT, INSERT, UPDATE, DELETE",
	"belfry_pass":       "SELECT, INSERT, UPDATE, DELETE",
	"belfry_range":      "SELECT, INSERT, DELETE",
	"belfry_run":        "SELECT, INSERT, UPDATE, DELETE",
	"belfry_running":    "SELECT, INSERT, UPDATE, DELETE",
}

// checkRights names each privilege that the role lacks.
func checkRights(t *tx, user string) error {
	var things, wanted []string
	for _, thing := range slices.Sorted(maps.Keys(rights)) {
		for right := range strings.SplitSeq(rights[thing], ", ") {
			things, wanted = append(things, t.texts.of(thing)), append(wanted, right)
		}
	}
	var lacks []string
	err := t.query(func(r pgx.Rows) error {
		var thing, right string
		err := r.Scan(&thing, &right)
		lacks = append(lacks, fmt.Sprintf("GRANT %s ON %s TO %s", right, thing, quote(user)))
		return err
	}, `SELECT CASE WHEN c.relkind = 'S' THEN 'SEQUENCE ' ELSE '' END || u.thing, u.wanted
FROM unnest($1::text[], $2::text[]) u(thing, wanted) JOIN pg_class c ON c.oid = to_regclass(quote_ident(u.thing))
WHERE NOT CASE WHEN c.relkind = 'S' THEN has_sequence_privilege(c.oid, u.wanted) ELSE has_table_privilege(c.oid, u.wanted) END
ORDER BY 1, 2`, things, wanted)
	if err == nil && len(lacks) > 0 {
		err = refuse("role %q lacks privileges; %s; as docs/stores.md has it", user, strings.Join(lacks, "; "))
	}
	return err
}

// checkSequence refuses what breaks the order of fences: cached blocks, each of a connection, and numbers that come again.
func checkSequence(t *tx) error {
	var cache, by int64
	var cycles bool
	_, err := t.get([]any{&cache, &by, &cycles}, `SELECT seqcache, seqincrement, seqcycle FROM pg_sequence WHERE seqrelid = to_regclass('belfry_number')`)
	if err == nil && (cache != 1 || by < 1 || cycles) {
		err = refuse("the sequence of fences has CACHE %d, INCREMENT %d, CYCLE %v, and fences would go back; ALTER SEQUENCE %s CACHE 1 INCREMENT 1 NO CYCLE", cache, by, cycles, t.texts.of("belfry_number"))
	}
	return err
}
