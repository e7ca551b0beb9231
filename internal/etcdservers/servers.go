package etcdservers

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/belfry-go/belfry/internal/faultproxy"
)

// Config says which servers a test needs.
type Config struct {
	Members int   // default 1
	Quota   int64 // bytes of data, after which a member raises NOSPACE; default etcd's
}

// Servers are etcd servers that form one cluster. Stop and Restart are for one goroutine.
type Servers struct{ members []*member }

// member is one server, running or not.
type member struct {
	config         *embed.Config
	clients, peers *faultproxy.Proxy // both reach the member through these
	etcd           *embed.Etcd       // nil: stopped
}

// patience bounds the waits for a server. A loaded machine needs seconds where an idle one needs 50 ms.
const patience = time.Minute

// tries bounds how often ports are drawn anew, where another process took one between its drawing and its use.
const tries = 5

// Start starts servers and waits until all of them answer. They end with the test.
func Start(t testing.TB, c Config) *Servers {
	t.Helper()
	s, err := open(t.TempDir(), c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.stop)
	return s
}

// open starts servers on data in dir.
func open(dir string, c Config) (*Servers, error) {
	for i := range tries {
		all, err := members(filepath.Join(dir, fmt.Sprint(i)), max(c.Members, 1), c.Quota)
		s := &Servers{members: all}
		if err == nil {
			err = s.start()
		}
		if err == nil {
			return s, nil
		}
		s.stop()
		if !errors.Is(err, syscall.EADDRINUSE) {
			return nil, fmt.Errorf("etcdservers: start: %w", err)
		}
	}
	return nil, fmt.Errorf("etcdservers: no free ports in %d tries", tries)
}

func (s *Servers) start() error {
	for _, m := range s.members {
		if err := m.start(); err != nil {
			return err
		}
	}
	for _, m := range s.members {
		if err := m.ready(); err != nil {
			return err
		}
	}
	return nil
}

// stop halts all members before it closes any: one that is closed waits for the connections of those that live.
func (s *Servers) stop() {
	for _, m := range s.members {
		m.halt()
	}
	for _, m := range s.members {
		m.stop()
		for _, p := range []*faultproxy.Proxy{m.clients, m.peers} {
			if p != nil {
				p.Close()
			}
		}
	}
}

// Stop stops a member, by its number from 0; it keeps its data. A stopped one is left alone.
func (s *Servers) Stop(i int) { s.members[i].stop() }

// Restart starts a stopped member on its data and ports. It does not wait for a quorum, which may be missing.
func (s *Servers) Restart(t testing.TB, i int) {
	t.Helper()
	if err := s.members[i].start(); err != nil {
		t.Fatalf("etcdservers: restart of member %d: %v", i, err)
	}
}

// Ready waits until a member answers, which takes a quorum.
func (s *Servers) Ready(t testing.TB, i int) {
	t.Helper()
	if err := s.members[i].ready(); err != nil {
		t.Fatalf("etcdservers: member %d: %v", i, err)
	}
}

// Addr is the host:port on which a member serves its clients, for a proxy before it.
func (s *Servers) Addr(i int) string { return s.members[i].clients.Addr() }

// Endpoints are what clients of all members dial.
func (s *Servers) Endpoints() []string {
	var all []string
	for i := range s.members {
		all = append(all, "http://"+s.Addr(i))
	}
	return all
}

// Client returns a client of the given endpoints, or of all members. It logs nothing and is closed with the test.
func (s *Servers) Client(t testing.TB, endpoints ...string) *clientv3.Client {
	t.Helper()
	if len(endpoints) == 0 {
		endpoints = s.Endpoints()
	}
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		t.Fatalf("etcdservers: client: %v", err)
	}
	t.Cleanup(func() { c.Close() }) // a test may have closed it
	return c
}

// members draws ports and names for the members of a cluster. They have proxies also where it fails.
func members(dir string, n int, quota int64) (all []*member, err error) {
	addrs, err := freeAddrs(2 * n)
	if err != nil {
		return nil, err
	}
	var cluster []string
	for i := range n {
		e := embed.NewConfig()
		e.Name = fmt.Sprintf("m%d", i)
		e.Dir = filepath.Join(dir, e.Name)
		m := &member{config: e}
		all = append(all, m)
		if m.clients, err = faultproxy.Listen(addrs[2*i]); err != nil {
			return all, err
		}
		if m.peers, err = faultproxy.Listen(addrs[2*i+1]); err != nil {
			return all, err
		}
		e.ListenClientUrls, e.AdvertiseClientUrls = urls(addrs[2*i]), urls(m.clients.Addr())
		e.ListenPeerUrls, e.AdvertisePeerUrls = urls(addrs[2*i+1]), urls(m.peers.Addr())
		e.TickMs, e.ElectionMs = 10, 100
		if n > 1 { // a busy machine delays heartbeats, and a leader that is deposed for that helps no test
			e.TickMs, e.ElectionMs = 50, 500
		}
		e.UnsafeNoFsync = true
		e.QuotaBackendBytes = quota
		e.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
		cluster = append(cluster, e.Name+"="+e.AdvertisePeerUrls[0].String())
	}
	for _, m := range all {
		m.config.InitialCluster = strings.Join(cluster, ",")
	}
	return all, nil
}

func urls(addr string) []url.URL { return []url.URL{{Scheme: "http", Host: addr}} }

// freeAddrs returns addresses that are free while it looks; all are held at once, so that none comes twice.
func freeAddrs(n int) (all []string, err error) {
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		all = append(all, l.Addr().String())
	}
	return all, nil
}

func (m *member) start() (err error) {
	if m.etcd == nil {
		m.clients.Refuse(false)
		m.peers.Refuse(false)
		m.etcd, err = embed.StartEtcd(m.config)
	}
	return err
}

func (m *member) ready() error {
	select {
	case <-m.etcd.Server.ReadyNotify():
		return nil
	case err := <-m.etcd.Err():
		return err
	case <-time.After(patience):
		return fmt.Errorf("not ready after %v", patience)
	}
}

// halt does not hand the leader's office to another member first, which would wait for one that is gone. It ends the connections, for
// whose streams etcd would wait 5 s or more.
func (m *member) halt() {
	if m.etcd == nil {
		return
	}
	m.etcd.Server.HardStop()
	for _, p := range []*faultproxy.Proxy{m.clients, m.peers} {
		p.Refuse(true)
		p.Reset()
	}
}

func (m *member) stop() {
	if m.etcd == nil {
		return
	}
	m.halt()
	m.etcd.Close()
	m.etcd = nil
}
