// Package netns makes networks for tests out of Linux network namespaces: each host has an address and a link of its
// own, all meet in one router, and the router drops what a test wants dropped, per pair and direction, or at random. A
// listener of the test's own process can stand on a host, for servers that stay outside.
//
// It does not imitate a real network's delay or bandwidth. What is cut is dropped without a word to either side,
// as by a broken switch; what is unplugged is refused by the router with an ICMP message, as by one that knows.
//
// It needs Linux, root and the ip command (Debian's iproute2), and nothing else: no packet filter but for loss, no kernel
// module beyond veth. Namespaces are named after the process that made them; those of a process that has died are removed by
// the next that makes one.
package netns
