// Package simnet is a network in memory for memberlist, made for testing/synctest bubbles: delays come from a seed
// and pass in the bubble's fake time, so that packets overtake each other; packets can be lost, duplicated and
// corrupted, connections reset, links cut in one or both directions, hosts killed. An address that does not answer
// fails as a real one does: refused at once if its host is dead, timed out if the link is cut.
//
// It does not make a run repeatable: memberlist and the Go runtime draw from sources of their own. Assert what must
// always hold, over many seeds.
package simnet

import (
	"fmt"
	"math/rand/v2"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/memberlist"
)

const (
	delayMin = time.Millisecond
	delayMax = 5 * time.Millisecond
	port     = 7946
	packets  = 1024 // queued at a host; more are lost, as with a socket's buffer
	streams  = 64   // waiting to be accepted; more are refused
)

// Net is one network. Its methods may be called from any goroutine of the bubble.
type Net struct {
	mu         sync.Mutex
	rng        *rand.Rand
	hosts      map[string]*Host
	cuts       map[link]bool
	impairment Impairment
	made       int // hosts, for the next address
}

// link is one direction between two addresses.
type link struct{ from, to string }

// New returns an empty network without loss, whose delays of 1 to 5 ms are drawn from seed.
func New(seed uint64) *Net {
	return &Net{
		rng:        rand.New(rand.NewPCG(seed, 0)),
		hosts:      map[string]*Host{},
		cuts:       map[link]bool{},
		impairment: Impairment{}.withDefaults(),
	}
}

// Listen adds a host with a new address. Its Shutdown takes it away.
func (n *Net) Listen() *Host {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.made++
	h := &Host{
		net:     n,
		ip:      net.IPv4(10, 0, byte(n.made>>8), byte(n.made)),
		packets: make(chan *memberlist.Packet, packets),
		streams: make(chan net.Conn, streams),
		down:    make(chan struct{}),
	}
	n.hosts[h.Addr()] = h
	return h
}

// Cut drops all that goes from one address to another; the other direction stays.
func (n *Net) Cut(from, to string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.cuts[link{from, to}] = true
}

// Split cuts both directions between each two of the groups.
func (n *Net) Split(groups ...[]string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for i, g := range groups {
		others := slices.Concat(slices.Concat(groups[:i]...), slices.Concat(groups[i+1:]...))
		for _, a := range g {
			for _, b := range others {
				n.cuts[link{a, b}] = true
			}
		}
	}
}

// Heal mends all cuts. A connection that was cut stays dead, as one would that lost its retries.
func (n *Net) Heal() {
	n.mu.Lock()
	defer n.mu.Unlock()
	clear(n.cuts)
}

// Kill takes the host at addr off the network, as if its process had died: calls to it are refused, and what it
// still tries to send goes nowhere.
func (n *Net) Kill(addr string) {
	n.mu.Lock()
	h := n.hosts[addr]
	n.mu.Unlock()
	if h != nil {
		_ = h.Shutdown() // never fails
	}
}

// path is what the network does with something sent now.
type path struct {
	host  *Host // nil: nobody there
	cut   bool
	delay time.Duration
	reset bool // a connection breaks
}

func (n *Net) path(from, to string) path {
	n.mu.Lock()
	defer n.mu.Unlock()
	return path{
		host:  n.hosts[to],
		cut:   n.cuts[link{from, to}],
		delay: n.delayLocked(),
		reset: n.chanceLocked(n.impairment.Reset),
	}
}

func (n *Net) remove(addr string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.hosts, addr)
}

// address is a host:port.
type address string

func (address) Network() string  { return "sim" }
func (a address) String() string { return string(a) }

func hostPort(ip net.IP) string { return fmt.Sprintf("%s:%d", ip, port) }
