package etcdservers

import (
	"errors"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(Main(m)) }

// put writes a key, again where etcd elects a leader of its own meanwhile, which on a busy machine may take several rounds.
func put(t *testing.T, c *clientv3.Client, key string) {
	t.Helper()
	for {
		_, err := c.Put(t.Context(), key, "x")
		if err == nil {
			return
		}
		if !errors.Is(err, rpctypes.ErrTimeoutDueToLeaderFail) && !errors.Is(err, rpctypes.ErrLeaderChanged) && !errors.Is(err, rpctypes.ErrNoLeader) && !errors.Is(err, rpctypes.ErrTimeout) {
			t.Fatal(err)
		}
	}
}

func has(t *testing.T, c *clientv3.Client, key string) {
	t.Helper()
	r, err := c.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	if r.Count != 1 {
		t.Errorf("%q is gone", key)
	}
}

// TestRestart: one member has its data and its address after a restart.
func TestRestart(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{})
	c := s.Client(t)
	put(t, c, "before")
	s.Stop(0)
	s.Stop(0) // again: nothing
	s.Restart(t, 0)
	s.Ready(t, 0)
	has(t, c, "before")
}

// TestQuorum: two of three members answer, and the third catches up when it is back.
func TestQuorum(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{Members: 3})
	s.Stop(2)
	put(t, s.Client(t, s.Endpoints()[:2]...), "meanwhile")
	s.Restart(t, 2)
	s.Ready(t, 2)
	has(t, s.Client(t, s.Endpoints()[2]), "meanwhile")
}

// TestShared: two that ask for the shared server have the same.
func TestShared(t *testing.T) {
	t.Parallel()
	put(t, Shared(t).Client(t), "one")
	has(t, Shared(t).Client(t), "one")
}
