package membership

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"github.com/hashicorp/memberlist"
)

// hintMessage is the only message between replicas: look now for what is to be done.
const hintMessage = 1

// Hint asks a member, by name, to look at once for work that has fallen to it; of several processes with that name, the
// newest, or this one for its own name. It goes straight to that member, in some milliseconds. It is no more than a hint: it may be lost, come twice
// or come late, and nothing may depend on it.
//
// Hint waits until it was sent, or ctx ends; then it may still be sent. The errors are a member that is not known to
// live, one that cannot be reached, a closed cluster, and ctx's.
func (c *Cluster) Hint(ctx context.Context, member string) error {
	if member == c.name {
		return c.hintSelf()
	}
	p, ok := c.view.newest(member)
	if !ok {
		return fmt.Errorf("membership: hint: no member %.80q is known to live", member)
	}
	node, err := p.target()
	if err != nil {
		return fmt.Errorf("membership: hint %s: %w", member, err)
	}
	sent := make(chan error, 1)
	if !c.work(func() { sent <- c.gossip.SendReliable(node, []byte{hintMessage}) }) {
		return errHintClosed
	}
	select {
	case err = <-sent:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		return fmt.Errorf("membership: hint %s: %w", member, err)
	}
	return nil
}

var errHintClosed = errors.New("membership: hint: the cluster is closed")

func (c *Cluster) hintSelf() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errHintClosed
	}
	c.view.hint()
	return nil
}

// Hints returns the channel of the hints that came, one token for all since the last was taken. It is never closed.
func (c *Cluster) Hints() <-chan struct{} { return c.view.hints }

// work runs f in a goroutine that Close waits for; false: the cluster is closed, and f does not run.
func (c *Cluster) work(f func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.resting.Go(f)
	return true
}

// newest returns the newest live process of a name other than ours.
func (v *view) newest(name string) (best peer, ok bool) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, p := range v.others {
		if p.name == name && (!ok || p.newer(best.meta)) {
			best, ok = p, true
		}
	}
	return best, ok
}

// target is a process as memberlist addresses it.
func (p peer) target() (*memberlist.Node, error) {
	host, port, err := net.SplitHostPort(p.addr)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	return &memberlist.Node{Name: p.node(), Addr: net.ParseIP(host), Port: uint16(n)}, nil
}

// NotifyMsg is memberlist's word that a message came. What it does not know it ignores: a newer replica may say more.
func (v *view) NotifyMsg(b []byte) {
	if len(b) == 1 && b[0] == hintMessage {
		v.hint()
	}
}

// hint leaves a token for whoever listens; a second one would say nothing new.
func (v *view) hint() {
	select {
	case v.hints <- struct{}{}:
	default:
	}
}
