package membership

import (
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/memberlist"
)

// A key holder, or anybody where there is no key, could fill memory with processes that do not exist. No cluster has
// this many.
const (
	membersMost = 2048
	newcomers   = 2048 // in each newWindow; memberlist keeps the dead for a while. Counted are those that came to be members:
	// what memberlist asks about may be no more than an echo of one that is gone
	newWindow = time.Minute
)

// NotifyAlive is memberlist's question whether a process may be a member, asked at each sign of its life: only one whose
// meta can be read, and that names the process that it is of.
func (v *view) NotifyAlive(n *memberlist.Node) error {
	if n.Name == v.node {
		return nil
	}
	m, err := decodeMeta(n.Meta)
	if err == nil && m.node() != n.Name {
		err = errors.New("it names another process")
	}
	if err != nil {
		v.refuse(RefusedMeta, fmt.Sprintf("member %.100q", n.Name), n.Address(), err.Error())
		return err
	}
	return v.admit(n)
}

var errCrowd = errors.New("too many members")

// admit bounds how many processes are known, and how fast they may come.
func (v *view) admit(n *memberlist.Node) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if _, known := v.others[n.Name]; known {
		return nil
	}
	if now := time.Now(); now.Sub(v.window) >= newWindow {
		v.window, v.came = now, 0
	}
	if v.came >= newcomers || len(v.others) >= membersMost {
		v.refuse(RefusedCrowded, fmt.Sprintf("member %.100q", n.Name), n.Address(),
			fmt.Sprintf("there are %d members, and %d came within a minute; is somebody forging them?", len(v.others), v.came))
		return errCrowd
	}
	return nil
}
