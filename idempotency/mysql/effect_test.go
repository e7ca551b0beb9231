package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/belfry-go/belfry/idempotency/storetest"
	"github.com/belfry-go/belfry/internal/testservers"
	"github.com/belfry-go/belfry/jobs"
)

var day = time.Date(2026, 10, 1, 0, 0, 0, 0, time.UTC)

func makeNotes(t testing.TB, db *sql.DB) {
	t.Helper()
	if _, err := db.Exec(`create table notes (text varchar(255) not null) engine=innodb`); err != nil {
		t.Fatal(err)
	}
}

func note(ctx context.Context, tx *sql.Tx, text string) error {
	_, err := tx.ExecContext(ctx, `insert into notes (text) values (?)`, text)
	return err
}

func notes(t testing.TB, db *sql.DB) (list []string) {
	t.Helper()
	rows, err := db.Query(`select text from notes order by text`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			t.Fatal(err)
		}
		list = append(list, text)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return list
}

// effects is a store, and the application's table, in one database, of which clients are as the DSN's parameters say.
func effects(t *testing.T, server *testservers.Server, parameters string) storetest.Effects[*sql.Tx] {
	db := client(t, server.Database(t), parameters)
	s := openOn(t, db, nil)
	makeNotes(t, db)
	return storetest.Effects[*sql.Tx]{
		Store:    s,
		InTx:     func(ctx context.Context, o jobs.Occurrence, f func(*sql.Tx) error) error { return InTx(ctx, s, o, f) },
		Complete: func(ctx context.Context, tx *sql.Tx, o jobs.Occurrence) error { return Complete(ctx, tx, s, o) },
		Begin: func(ctx context.Context) (*sql.Tx, func() error, func() error, error) {
			tx, err := db.BeginTx(ctx, nil)
			if err != nil {
				return nil, nil, nil, err
			}
			return tx, tx.Commit, tx.Rollback, nil
		},
		Note:  note,
		Notes: func(t *testing.T) []string { return notes(t, db) },
	}
}

// At every isolation level, and whatever the application's DSN says.
func TestEffects(t *testing.T) {
	t.Parallel()
	server := testservers.MariaDB(t)
	for _, level := range []string{"READ-COMMITTED", "REPEATABLE-READ", "SERIALIZABLE", "READ-UNCOMMITTED"} {
		for _, flags := range []string{"", "clientFoundRows=true&parseTime=true&interpolateParams=true&loc=Local"} {
			t.Run(level+"/"+flags, func(t *testing.T) {
				t.Parallel()
				storetest.RunEffects(t, func(t *testing.T) storetest.Effects[*sql.Tx] {
					return effects(t, server, fmt.Sprintf("?tx_isolation=%%27%s%%27&%s", level, flags))
				})
			})
		}
	}
}

// A transaction of another database can never be one with the store's completion.
func TestCompleteElsewhere(t *testing.T) {
	t.Parallel()
	server := testservers.MariaDB(t)
	s := openOn(t, client(t, server.Database(t), ""), nil)
	other, bare := client(t, server.Database(t), ""), client(t, server.Database(t), "")
	openOn(t, other, nil)
	for name, db := range map[string]*sql.DB{"another store's database": other, "a database without a store": bare} {
		tx, err := db.Begin()
		if err != nil {
			t.Fatal(err)
		}
		o := jobs.Occurrence{Namespace: "ns", Job: "j", Key: "j", Due: day, Attempt: 1, Fence: 1}
		if err := Complete(t.Context(), tx, s, o); err == nil || errors.Is(err, jobs.ErrOvertaken) {
			t.Errorf("%s: %v", name, err)
		}
		if err := tx.Rollback(); err != nil {
			t.Error(err)
		}
	}
}

func TestEffectOfNil(t *testing.T) {
	t.Parallel()
	o := jobs.Occurrence{Namespace: "ns", Job: "j", Key: "j", Due: day, Attempt: 1, Fence: 1}
	for name, err := range map[string]error{
		"store":             InTx(t.Context(), nil, o, func(*sql.Tx) error { return nil }),
		"function":          InTx(t.Context(), new(Store), o, nil),
		"transaction":       Complete(t.Context(), nil, new(Store), o),
		"store of Complete": Complete(t.Context(), new(sql.Tx), nil, o),
	} {
		if err == nil || !strings.Contains(err.Error(), "is nil") {
			t.Errorf("a nil %s: %v", name, err)
		}
	}
}
