package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
	"github.com/belfry-go/belfry/idempotency"
)

// soakSite is where a soak runs.
type soakSite struct {
	client    *storeurl.Client
	store     storeurl.Store
	namespace string
	kind      string
	dir       string // of logs, and of the file
	file      string // SQLite's; empty: another store
}

// withSite opens the store, or a SQLite file of its own, and takes everything out of it again when use has returned.
func withSite(ctx context.Context, u storeurl.URL, use func(*soakSite) error) (err error) {
	at := &soakSite{namespace: soakName(), kind: "a server"}
	if at.dir, err = os.MkdirTemp("", "belfry-soak-"); err != nil {
		return fmt.Errorf("bench: temporary folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(at.dir)) }()
	borrowed := !u.IsZero()
	if !borrowed {
		at.kind, at.file = "sqlite", filepath.Join(at.dir, "belfry.db")
		if u, err = storeurl.Parse("sqlite:" + at.file); err != nil {
			return err
		}
	}
	if at.client, err = storeurl.Connect(ctx, u); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer func() { err = errors.Join(err, at.client.Close()) }()
	if at.store, err = at.client.Open(ctx); err != nil {
		return fmt.Errorf("bench: %w", err)
	}
	defer func() { err = errors.Join(err, at.store.Close()) }()
	if borrowed {
		defer func() { err = errors.Join(err, at.clear(context.WithoutCancel(ctx))) }()
	}
	return use(at)
}

// clear drops the namespace, once the session of who was killed last has ended.
func (s *soakSite) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*soakTiming.Lease)
	defer cancel()
	pause := time.NewTicker(time.Second)
	defer pause.Stop()
	for {
		err := s.store.DropNamespace(ctx, s.namespace)
		if !errors.Is(err, idempotency.ErrRefused) {
			return err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return fmt.Errorf("bench: %s still holds the namespace %s: %w", s.client.URL(), s.namespace, err)
		}
	}
}
