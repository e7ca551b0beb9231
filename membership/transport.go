package membership

import (
	"context"
	"log"
	"net"
	"time"

	"github.com/hashicorp/memberlist"
)

// dialMost bounds how long a dead address holds a call, so that calls of one round are over before the next.
const dialMost = 5 * time.Second

// transport is memberlist's for sockets, whose outgoing connections end with the cluster instead of with their
// own deadline up to 30 s later.
type transport struct {
	*memberlist.NetTransport
	life      context.Context
	advertise *net.TCPAddr // nil: what is bound
}

// listen opens the sockets. With port 0 the kernel's choice for TCP may be taken for UDP, so that is tried again.
func listen(life context.Context, at endpoint, l *log.Logger) (*transport, error) {
	tries := 1
	if at.bind.Port == 0 {
		tries = 10
	}
	var err error
	for range tries {
		var t *memberlist.NetTransport
		t, err = memberlist.NewNetTransport(&memberlist.NetTransportConfig{
			BindAddrs: []string{at.bind.IP.String()},
			BindPort:  at.bind.Port,
			Logger:    l,
		})
		if err == nil {
			return &transport{NetTransport: t, life: life, advertise: at.advertise}, nil
		}
	}
	return nil, err
}

// FinalAdvertiseAddr returns the configured address, or what memberlist makes of the bound one.
func (t *transport) FinalAdvertiseAddr(string, int) (net.IP, int, error) {
	if t.advertise == nil {
		return t.NetTransport.FinalAdvertiseAddr("", 0)
	}
	port := t.advertise.Port
	if port == 0 {
		port = t.GetAutoBindPort()
	}
	return t.NetTransport.FinalAdvertiseAddr(t.advertise.IP.String(), port)
}

// DialTimeout calls addr.
func (t *transport) DialTimeout(addr string, timeout time.Duration) (net.Conn, error) {
	return t.DialAddressTimeout(memberlist.Address{Addr: addr}, timeout)
}

// DialAddressTimeout calls a.
func (t *transport) DialAddressTimeout(a memberlist.Address, timeout time.Duration) (net.Conn, error) {
	d := net.Dialer{Timeout: min(timeout, dialMost)}
	c, err := d.DialContext(t.life, "tcp", a.Addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(t.life, func() { _ = c.Close() })
	return &conn{Conn: c, stop: stop}, nil
}

// conn is a connection that lets go of the cluster's life when it is closed.
type conn struct {
	net.Conn
	stop func() bool
}

func (c *conn) Close() error {
	c.stop()
	return c.Conn.Close()
}
