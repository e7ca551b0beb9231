package etcdelector

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// deaf is a watcher that hears nothing of keys other than one.
type deaf struct {
	clientv3.Watcher
	hears string
}

func (d deaf) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	if key == d.hears {
		return d.Watcher.Watch(ctx, key, opts...)
	}
	nothing := make(chan clientv3.WatchResponse)
	context.AfterFunc(ctx, func() { close(nothing) })
	return nothing
}

// tampered is a client's leases with another TTL asked for, or without revocation.
type tampered struct {
	clientv3.Lease
	more   int64
	refuse bool
}

func (l tampered) Grant(ctx context.Context, ttl int64) (*clientv3.LeaseGrantResponse, error) {
	return l.Lease.Grant(ctx, ttl+l.more)
}

func (l tampered) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	if l.refuse {
		return nil, errors.New("revoke refused")
	}
	return l.Lease.Revoke(ctx, id)
}

// barred is a client's keys, which cannot be put or deleted while they are barred.
type barred struct {
	clientv3.KV
	on *atomic.Bool
}

func (k barred) Txn(ctx context.Context) clientv3.Txn {
	if k.on.Load() {
		ended, end := context.WithCancel(ctx)
		end()
		return k.KV.Txn(ended)
	}
	return k.KV.Txn(ctx)
}

func (k barred) Delete(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.DeleteResponse, error) {
	if k.on.Load() {
		return nil, errors.New("delete refused")
	}
	return k.KV.Delete(ctx, key, opts...)
}

// unread is a client's keys, of which nobody can read who leads while err has one; only Campaign can.
type unread struct {
	clientv3.KV
	err *atomic.Value // of errors
}

func (k unread) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if err, ok := k.err.Load().(error); ok && strings.HasSuffix(key, "/") && clientv3.OpGet(key, opts...).MaxCreateRev() == 0 {
		return nil, err
	}
	return k.KV.Get(ctx, key, opts...)
}

// lateReads and lateLeases are a client's, whose answers take that long at least.
type (
	lateReads struct {
		clientv3.KV
		takes time.Duration
	}
	lateLeases struct {
		clientv3.Lease
		takes time.Duration
	}
)

func (k lateReads) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	sleep(ctx, k.takes)
	return k.KV.Get(ctx, key, opts...)
}

func (l lateLeases) KeepAliveOnce(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseKeepAliveResponse, error) {
	sleep(ctx, l.takes)
	return l.Lease.KeepAliveOnce(ctx, id)
}
