package etcdelector

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
)

// candidacy is a lease, its session, and a key that hangs on it. It is elected once at most; who wants to be again
// begins another, since a lease that was lost is lost with the key and its place in the queue.
type candidacy struct {
	*Elector
	client   *clientv3.Client // the elector's, with a context that ends with the candidacy
	end      context.CancelFunc
	session  *concurrency.Session
	election *concurrency.Election
	key      string
	rev      int64 // the key's create revision: the term

	// ctx ends when this replica may not lead any more, by lose with the reason, or with the context of Lead.
	ctx  context.Context
	lose context.CancelCauseFunc

	trust  trust
	margin time.Duration // of the lease, which trust leaves

	// Of the goroutine that confirms.
	asked    time.Time // when the last renewal was sent
	doubtful bool      // it failed

	running  sync.WaitGroup
	returned chan struct{} // closed when lead has returned; never has anything in it
	resigned sync.Once
}

// open gets a lease and keeps it alive.
func (e *Elector) open(ctx context.Context) (*candidacy, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	c := &candidacy{
		Elector: e, end: end,
		client:   clientv3.NewCtxClient(life, clientv3.WithZapLogger(e.client.GetLogger())),
		margin:   e.options.Lease - e.options.Trust,
		trust:    trust{now: e.now},
		returned: make(chan struct{}),
	}
	c.client.KV, c.client.Lease, c.client.Watcher = e.client.KV, e.client.Lease, e.client.Watcher
	c.ctx, c.lose = context.WithCancelCause(ctx)
	fail := func(err error) (*candidacy, error) {
		c.lose(err)
		end()
		return nil, err
	}
	call, done := c.call(ctx)
	defer done()
	lease, err := c.client.Grant(call, int64(e.options.Lease/time.Second))
	if err != nil {
		return fail(fmt.Errorf("grant a lease: %w", err))
	}
	if lease.TTL*int64(time.Second) < int64(e.options.Lease) {
		return fail(fmt.Errorf("%w: %d s in place of %v", errShort, lease.TTL, e.options.Lease))
	}
	c.session, err = concurrency.NewSession(c.client, concurrency.WithLease(lease.ID), concurrency.WithContext(life))
	if err != nil {
		return fail(fmt.Errorf("keep the lease alive: %w", err))
	}
	c.election = concurrency.NewElection(c.session, e.prefix())
	c.key = fmt.Sprintf("%s/%x", e.prefix(), lease.ID) // as Campaign names it
	c.running.Go(func() {
		select {
		case <-c.session.Done():
			c.lose(errSession)
		case <-c.ctx.Done():
		}
	})
	return c, nil
}

// call is the context of one call of etcd. A member that has lost its quorum answers at once, so that the client can ask another.
func (c *candidacy) call(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(clientv3.WithRequireLeader(ctx), c.options.Renew)
}

// announce puts the own key, so that its revision is known and it is watched before Campaign waits for its turn. Campaign finds it there and
// takes it for its own.
func (c *candidacy) announce() error {
	call, done := c.call(c.ctx)
	defer done()
	r, err := c.client.Txn(call).
		If(clientv3.Compare(clientv3.CreateRevision(c.key), "=", 0)).
		Then(clientv3.OpPut(c.key, c.options.Name, clientv3.WithLease(c.session.Lease()))).
		Commit()
	if err != nil {
		return fmt.Errorf("put key %q: %w", c.key, err)
	}
	if !r.Succeeded {
		return fmt.Errorf("key %q exists before its lease has one", c.key)
	}
	c.rev = r.Header.Revision
	c.running.Go(c.watch)
	return nil
}

// campaign waits until this replica is elected, and makes sure of it. Campaign of etcd's client says so too where the session has ended or
// the own key is gone, and waits for ever where these vanish while it waits: its context ends with either.
func (c *candidacy) campaign() error {
	done := make(chan error, 1)
	go func() { done <- c.election.Campaign(clientv3.WithRequireLeader(c.ctx), c.options.Name) }()
	var err error
	select {
	case err = <-done:
	case <-c.ctx.Done():
		// It resigns before it returns, for as long as the client's context lets it.
		bound := time.AfterFunc(c.options.Renew, c.end)
		err = <-done
		bound.Stop()
	}
	if c.ctx.Err() != nil {
		return context.Cause(c.ctx)
	}
	if err != nil {
		return fmt.Errorf("campaign: %w", err)
	}
	return c.prove()
}

// prove confirms that this replica is elected. All others wait behind its key meanwhile, which the session keeps, so one that
// cannot, as its etcd is too slow for it, makes room.
func (c *candidacy) prove() error {
	ctx, end := context.WithTimeout(c.ctx, c.options.Trust)
	defer end()
	for {
		err := c.confirm(ctx)
		switch {
		case err == nil:
			return nil
		case c.ctx.Err() != nil:
			return context.Cause(c.ctx)
		case c.remedy(err) != "":
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("elected, but it could not be confirmed within %v: %w", c.options.Trust, err)
		}
		sleep(ctx, c.options.Retry)
	}
}

// confirm renews the lease, makes sure that the own key is still the oldest, and extends the trust from when the renewal was sent. From then on it
// takes half of the trust at most: the next one is sent when that is over, if not before, and may take as long. It loses
// the candidacy where etcd says that it is lost; any other error may pass.
func (c *candidacy) confirm(ctx context.Context) (err error) {
	defer func() { c.doubtful = err != nil }()
	if c.doubtful { // KeepAliveOnce tries again without a pause for as long as nothing answers; reads do not
		if err := c.oldest(ctx); err != nil {
			return err
		}
	}
	ctx, end := context.WithTimeout(ctx, c.options.Trust/2)
	defer end()
	sent := c.now()
	c.asked = time.Now()
	ttl, err := c.keepAlive(ctx)
	if err != nil {
		return err
	}
	if err := c.oldest(ctx); err != nil {
		return err
	}
	c.trust.confirm(sent, ttl-c.margin)
	return nil
}

// keepAlive renews the lease, and returns for how long.
func (c *candidacy) keepAlive(ctx context.Context) (time.Duration, error) {
	call, done := c.call(ctx)
	defer done()
	r, err := c.client.KeepAliveOnce(call, c.session.Lease())
	if errors.Is(err, rpctypes.ErrLeaseNotFound) {
		c.lose(errSession)
	}
	if err != nil {
		return 0, fmt.Errorf("renew: %w", err)
	}
	return time.Duration(r.TTL) * time.Second, nil
}

// oldest asks a quorum of etcd whether the own key is the oldest of the election, and as it was made.
func (c *candidacy) oldest(ctx context.Context) error {
	call, done := c.call(ctx)
	defer done()
	r, err := c.client.Get(call, c.prefix()+"/", clientv3.WithFirstCreate()...)
	if err != nil {
		return fmt.Errorf("read who leads: %w", err)
	}
	if len(r.Kvs) == 1 && string(r.Kvs[0].Key) == c.key && r.Kvs[0].CreateRevision == c.rev {
		return nil
	}
	err = errDeleted
	if len(r.Kvs) == 1 && r.Kvs[0].CreateRevision < c.rev {
		err = errOlder
	}
	c.lose(err)
	return err
}

// close ends the candidacy, whatever is left of it.
func (c *candidacy) close() {
	c.lose(errReturned)
	c.running.Wait()
	c.resign()
	c.end()
}

// resign deletes the own key, so that the next replica is elected at once, and gives the lease back, which deletes the key where that failed.
func (c *candidacy) resign() {
	c.resigned.Do(func() {
		c.session.Orphan()
		base := context.WithoutCancel(c.ctx)
		if c.Elector.client.Ctx().Err() != nil { // the client would try a hundred times
			c.log(base, slog.LevelWarn, "could not resign, the client was closed; another replica is elected when the lease has ended", "lease", c.options.Lease)
			return
		}
		call, done := c.call(base)
		_, failed := c.client.Delete(call, c.key) // Election.Resign does nothing, and returns nil, where Campaign has not succeeded
		done()
		call, done = c.call(base)
		defer done()
		_, err := c.client.Revoke(call, c.session.Lease())
		switch {
		case err == nil, errors.Is(err, rpctypes.ErrLeaseNotFound):
		case failed == nil:
			c.log(base, slog.LevelDebug, "lease not given back; it ends by itself", "err", err)
		default:
			c.log(base, slog.LevelWarn, "could not resign; another replica is elected when the lease has ended", "lease", c.options.Lease, "err", errors.Join(failed, err))
		}
	})
}
