// Package faultproxy is a TCP proxy on the loopback address that does to the connections between a client and a server
// what networks do, for tests: it delays, loses, tears and resets, in one direction or in both, while connections live.
//
//	p, err := faultproxy.Listen(server.Addr())
//	...
//	defer p.Close()
//	p.ToClient.Lose(faultproxy.PostgresCommitted, faultproxy.Hang) // committed, but the client never hears of it
//
// What is lost stays lost: a TCP stream has no gaps, so a connection of which a byte was lost carries nothing more that
// way, not even its end, and is silent until its peers give up. Mending a fault is for new connections.
//
// The proxy sees a stream in chunks: what one read returned, which on the loopback address is what the sender wrote at
// once, up to 64 KiB. It knows no protocol. Time is real: a bubble of testing/synctest has no sockets.
package faultproxy
