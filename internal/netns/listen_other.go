//go:build !linux

package netns

import (
	"errors"
	"net"
)

// Listen is for Linux alone; New skips elsewhere.
func (h *Host) Listen() (net.Listener, error) {
	return nil, errors.New("netns: listen: network namespaces need Linux")
}
