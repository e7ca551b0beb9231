package demo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
	"github.com/belfry-go/belfry/idempotency"
)

const (
	// dropWithin bounds the clearing of a server: the lease of a replica that was killed last has to end first.
	dropWithin = 20 * time.Second
	// dropPause is between two tries.
	dropPause = 200 * time.Millisecond
)

// site is where the demo runs: a database, a namespace in its store, and a table of customers.
type site struct {
	client    *storeurl.Client
	store     storeurl.Store
	namespace string
	book      book
	borrowed  bool // somebody else's database: nothing may be left in it
}

// openSite opens the database that o names, and makes the customers. A database that is not the demo's own gets a
// namespace and a table under names that nobody else has.
func openSite(ctx context.Context, o Options, dir string) (s *site, err error) {
	u, id := o.Store, ""
	if u.IsZero() {
		if u, err = storeurl.Parse("sqlite:" + filepath.Join(dir, storeFile)); err != nil {
			return nil, err
		}
	} else {
		id = "_" + strings.ToLower(rand.Text()[:8])
	}
	client, err := storeurl.Connect(ctx, u)
	if err != nil {
		return nil, fmt.Errorf("demo: %w", err)
	}
	s = &site{client: client, namespace: "demo" + id, book: book{client, "demo_customers" + id}, borrowed: id != ""}
	if s.store, err = client.Open(ctx); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	if err := s.book.fill(ctx, o.Customers); err != nil {
		return nil, errors.Join(err, s.close(ctx))
	}
	return s, nil
}

// where says what the demo runs on.
func (s *site) where() string {
	if !s.borrowed {
		return "one SQLite file"
	}
	return fmt.Sprintf("%s, in the namespace %s, which is dropped at the end", s.client.URL(), s.namespace)
}

// close takes everything out of a borrowed database again, whatever became of the demo and of ctx, and closes it. All
// replicas have ended.
func (s *site) close(ctx context.Context) error {
	var err error
	if s.borrowed {
		if err = s.clear(context.WithoutCancel(ctx)); err != nil {
			err = fmt.Errorf("demo: %s still holds the table %s or rows of the namespace %s: %w", s.client.URL(), s.book.table, s.namespace, err)
		}
	}
	return errors.Join(err, s.store.Close(), s.client.Close())
}

// clear drops the table and the namespace, once no session is live in it.
func (s *site) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, dropWithin)
	defer cancel()
	pause := time.NewTicker(dropPause)
	defer pause.Stop()
	for {
		err := s.store.DropNamespace(ctx, s.namespace)
		if !errors.Is(err, idempotency.ErrRefused) {
			return errors.Join(err, s.book.drop(ctx))
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return errors.Join(err, s.book.drop(context.WithoutCancel(ctx)))
		}
	}
}
