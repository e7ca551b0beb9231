package netns

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"

	"golang.org/x/sys/unix"
)

// Listen listens for TCP connections to this host, at a free port. The listener belongs to this process, whatever else
// that reaches: so a server that knows nothing of namespaces becomes one of this network. The caller closes it.
func (h *Host) Listen() (net.Listener, error) {
	l, err := h.listen()
	if err != nil {
		return nil, fmt.Errorf("netns: listen on %s: %w", h.space, err)
	}
	return l, nil
}

// listen makes the socket on a thread that visits the host: a socket stays in the namespace that it was made in.
func (h *Host) listen() (l net.Listener, err error) {
	there, err := os.Open(filepath.Join("/run/netns", h.space))
	if err != nil {
		return nil, err
	}
	defer there.Close()
	runtime.LockOSThread()
	here, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		runtime.UnlockOSThread()
		return nil, err
	}
	defer here.Close()
	if err := unix.Setns(int(there.Fd()), unix.CLONE_NEWNET); err != nil {
		runtime.UnlockOSThread()
		return nil, fmt.Errorf("enter its namespace: %w", err)
	}
	l, err = net.ListenTCP("tcp", &net.TCPAddr{IP: h.addr.AsSlice()})
	if back := unix.Setns(int(here.Fd()), unix.CLONE_NEWNET); back != nil {
		return l, errors.Join(err, fmt.Errorf("leave its namespace: %w", back)) // the thread stays locked, and so ends with its goroutine
	}
	runtime.UnlockOSThread()
	return l, err
}
