package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/jobs"
)

// database is all that this service keeps: its customers, its ledger, and the scheduler's store. All three are in one
// database, so that an entry in the ledger and the completion of the run that made it commit together.
type database interface {
	// customers lists the ids of all customers, to whoever owns them.
	customers() jobs.KeySource
	// price is what the customer pays for the next period, in cents.
	price(ctx context.Context, id string) (int64, error)
	// enter writes a charge into the ledger and completes the occurrence, both or neither. Where another replica has taken
	// the occurrence over, neither: jobs.ErrOvertaken.
	enter(ctx context.Context, o jobs.Occurrence, cents int64) error
	// store is the scheduler's.
	store() idempotency.Store
	// seed adds customers until there are n. Done again, it changes nothing.
	seed(ctx context.Context, n int) error
	close() error
}

// databaseURL is the environment variable that names a Postgres database. It is no flag, since it may hold a password,
// and everybody on a host can read the arguments of its programs.
const databaseURL = "DATABASE_URL"

// openWithin bounds the start: a database that is away then ends the program, and whoever runs it starts it again.
const openWithin = 30 * time.Second

// openDatabase opens the Postgres database that the environment names, or else the SQLite file, with the tables made.
func openDatabase(ctx context.Context, file string) (database, error) {
	ctx, cancel := context.WithTimeout(ctx, openWithin)
	defer cancel()
	if url := strings.TrimSpace(os.Getenv(databaseURL)); url != "" { // a file that it came from may end in a line break
		return openPostgres(ctx, url)
	}
	return openSQLite(ctx, file)
}

// customerID is the n-th customer's.
func customerID(n int) string { return fmt.Sprintf("customer-%05d", n) }

// cents is what the n-th customer pays.
func cents(n int) int64 { return 500 + int64(n%10)*100 }

// errNobody is for an id that is no customer's any more. There is nobody to charge, and trying again will not help.
var errNobody = jobs.Permanent(errors.New("there is no such customer"))
