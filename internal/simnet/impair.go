package simnet

import (
	"slices"
	"time"

	"github.com/hashicorp/memberlist"
)

// Impairment is how badly a network carries what is sent. The zero one is a good network's.
type Impairment struct {
	// DelayMin and DelayMax bound the delay in one direction, drawn anew for each packet and each write to a
	// connection. Packets overtake each other where they differ; bytes of one connection do not. Default, where both are 0: 1 to 5 ms.
	DelayMin, DelayMax time.Duration

	// Loss, Duplicate and Corrupt are the shares of packets that vanish, arrive twice (each at its own time), and
	// arrive with one bit flipped or their end missing. Connections are not affected: TCP would mend that.
	Loss, Duplicate, Corrupt float64
	// Reset is the share of writes to a connection that break it instead, for both sides.
	Reset float64
}

func (i Impairment) withDefaults() Impairment {
	if i.DelayMin == 0 && i.DelayMax == 0 {
		i.DelayMin, i.DelayMax = delayMin, delayMax
	}
	return i
}

// Impair sets how everything that is sent from now on is carried. It panics where DelayMin > DelayMax.
func (n *Net) Impair(i Impairment) {
	i = i.withDefaults()
	if i.DelayMin > i.DelayMax {
		panic("simnet: DelayMin > DelayMax")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.impairment = i
}

func (n *Net) delayLocked() time.Duration {
	i := n.impairment
	return i.DelayMin + time.Duration(n.rng.Int64N(int64(i.DelayMax-i.DelayMin)+1))
}

func (n *Net) chanceLocked(p float64) bool { return p > 0 && n.rng.Float64() < p }

// send carries a packet, or loses it.
func (n *Net) send(from, to string, b []byte) {
	host, arrivals := n.fate(from, to, b)
	for _, a := range arrivals {
		pkt := &memberlist.Packet{Buf: a.data, From: address(from)}
		time.AfterFunc(a.after, func() {
			pkt.Timestamp = time.Now()
			select {
			case <-host.down:
			case host.packets <- pkt:
			default:
			}
		})
	}
}

// arrival is one copy of a packet, as it will arrive.
type arrival struct {
	after time.Duration
	data  []byte
}

// fate decides what becomes of a packet sent now.
func (n *Net) fate(from, to string, b []byte) (*Host, []arrival) {
	n.mu.Lock()
	defer n.mu.Unlock()
	host := n.hosts[to]
	if host == nil || n.cuts[link{from, to}] || n.chanceLocked(n.impairment.Loss) {
		return nil, nil
	}
	copies := 1
	if n.chanceLocked(n.impairment.Duplicate) {
		copies = 2
	}
	all := make([]arrival, copies)
	for i := range all {
		all[i] = arrival{n.delayLocked(), slices.Clone(b)}
		if n.chanceLocked(n.impairment.Corrupt) {
			all[i].data = n.corruptLocked(all[i].data)
		}
	}
	return host, all
}

// corruptLocked flips a bit of b, or cuts its end off.
func (n *Net) corruptLocked(b []byte) []byte {
	if len(b) == 0 {
		return b
	}
	at := n.rng.IntN(len(b))
	if n.rng.IntN(2) == 0 {
		return b[:at]
	}
	b[at] ^= 1 << n.rng.IntN(8)
	return b
}
