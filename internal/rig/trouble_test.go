//go:build unix

package rig

import (
	"math/rand/v2"
	"time"

	"github.com/belfry-go/belfry/internal/faultproxy"
)

// troubles says behind which of so many deaths what befalls the fleet's server or the way to it: each kind once behind
// every forty, and once at least. A store in a file has none.
func (f *fleet) troubles(deaths int) map[int]func() {
	at := map[int]func(){}
	if f.place.server == nil {
		return at
	}
	kinds := []func(){f.killServer, f.delayCalls, f.loseCommits, f.halfOpen}
	n := len(kinds) * max(1, deaths/40)
	for i := range n {
		at[1+i*max(1, deaths-2)/n] = kinds[i%len(kinds)]
	}
	return at
}

// killServer kills it with all its processes, and starts it again.
func (f *fleet) killServer() {
	f.Helper()
	from := time.Now()
	f.place.server.Kill()
	if err := f.place.server.Restart(); err != nil {
		f.Fatal(err)
	}
	f.rough = append(f.rough, stretch{from.UnixMicro(), time.Now().UnixMicro()})
}

// trouble has something be so for a while, and goes on meanwhile.
func (f *fleet) trouble(d time.Duration, set func(on bool)) {
	set(true)
	f.rough = append(f.rough, stretch{time.Now().UnixMicro(), time.Now().Add(d).UnixMicro()})
	f.troubled.Add(1)
	time.AfterFunc(d, func() {
		defer f.troubled.Done()
		set(false)
	})
}

const troubleTime = 3 * time.Second

// delayCalls makes all calls slow.
func (f *fleet) delayCalls() {
	f.trouble(troubleTime, func(on bool) {
		var d func() time.Duration
		if on {
			d = func() time.Duration { return rand.N(60 * time.Millisecond) }
		}
		for _, way := range f.ways {
			way.ToServer.Delay(d)
			way.ToClient.Delay(d)
		}
	})
}

// loseCommits loses the replies to a third of all commits.
func (f *fleet) loseCommits() {
	f.trouble(troubleTime, func(on bool) {
		var third faultproxy.Match
		if on {
			third = func(chunk []byte) bool { return f.place.commit(chunk) && rand.IntN(3) == 0 }
		}
		for _, way := range f.ways {
			f.place.lose(way, third, faultproxy.Reset)
		}
	})
}

// halfOpen lets a process wait for answers in vain, longer than its lease.
func (f *fleet) halfOpen() {
	p := f.anyone(nil)
	way := f.way(p.name)
	f.trouble(f.base.Lease*3/2, func(on bool) {
		way.ToServer.Swallow(on)
		way.ToClient.Swallow(on)
	})
}
