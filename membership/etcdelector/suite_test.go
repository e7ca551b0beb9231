package etcdelector

import (
	"strings"
	"testing"

	"github.com/belfry-go/belfry/internal/faultproxy"
	"github.com/belfry-go/belfry/membership/electortest"
	"github.com/belfry-go/belfry/scheduler"
)

var _ scheduler.Elector = (*Elector)(nil)

// election is one of electortest's, on a prefix of its own. Each replica reaches etcd through its own proxy.
type election struct {
	*bench
	proxies map[string]*faultproxy.Proxy
}

func (e *election) Elector(name string) electortest.Elector {
	c, p := e.behind()
	e.proxies[name] = p
	if strings.HasSuffix(e.T.Name(), "/Kill") || strings.HasSuffix(e.T.Name(), "/Cut") {
		return e.elector(c, e.short(name))
	}
	return e.elector(c, e.options(name))
}

func (e *election) Kill(name string) {
	e.proxies[name].Refuse(true)
	e.proxies[name].Reset()
}

func (e *election) Cut(name string)  { cut(e.proxies[name], true) }
func (e *election) Mend(name string) { cut(e.proxies[name], false) }

// TestElector: an Elector keeps the contract.
func TestElector(t *testing.T) {
	t.Parallel()
	electortest.Run(t, electortest.Config{Changes: 12, Open: func(t *testing.T) electortest.Election {
		return &election{newBench(t), make(map[string]*faultproxy.Proxy)}
	}})
}
