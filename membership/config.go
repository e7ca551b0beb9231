package membership

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/memberlist"
)

// Profile is a tuning set of the gossip: how soon a crash is seen, against how much it costs.
type Profile int

const (
	// Fast sees a crash in about 1.3 s, for 3 to 6 ms of CPU and 400 bytes (570 with a key) a second. The default. It wants
	// hosts without CPU limits below one core, and round trips below 0.1 s.
	Fast Profile = iota
	// LAN is memberlist's profile for one data centre, with quicker gossip: a crash is seen in 5-7 s, for 2 ms of CPU and
	// 130 bytes a second.
	LAN
	// WAN is memberlist's profile for links with long round trips: a crash is seen in 35-60 s.
	WAN
)

// String returns "fast", "lan" or "wan".
func (p Profile) String() string {
	switch p {
	case Fast:
		return "fast"
	case LAN:
		return "lan"
	case WAN:
		return "wan"
	}
	return fmt.Sprintf("profile(%d)", int(p))
}

// Bounds. Those of name, version and zone keep the encoded meta below memberlist's 512 bytes (see meta.go).
const (
	maxName    = 64
	maxVersion = 32
	maxZone    = 32
	maxSeeds   = 64
	maxSecrets = 8
	maxAllow   = 64
	maxExpect  = 1000
)

// Config is how a replica joins. Namespace is required; everything else has a default.
type Config struct {
	// Name is the replica's stable name, its identity in the ring: 1 to 64 of letters, digits, dot, underscore and
	// hyphen. Two live replicas must not share one; of two, the one that started last owns. Default: the host name.
	Name string
	// Namespace names the cluster: 1 to 64 of letters, digits, dot, underscore and hyphen. Replicas of different
	// namespaces never become members of one cluster, even if they call each other. Required.
	Namespace string
	// Bind is the host:port to listen on, UDP and TCP; port 0 takes a free one. An address other than loopback
	// needs a key in Secrets. Default: 127.0.0.1:0.
	Bind string
	// Advertise is the host:port at which the others reach this replica; without a port, the bound one. Default:
	// the bound address, or the host's private address where Bind is 0.0.0.0.
	Advertise string
	// Seeds are addresses (host:port) of replicas to call, at most 64. Names are resolved anew at each call, to all
	// their addresses. It does no harm to list oneself. None: this replica waits to be called.
	Seeds []string
	// SeedFile is the path of a file with more seeds, one host:port a line; empty lines and those that begin with # do
	// not count. It is read anew at each call, may be missing for now, and a line that is no address is logged and left
	// out. Default: none.
	SeedFile string
	// Expect is how many replicas, itself included, this one must have seen alive at one time before it owns anything; until
	// then it stays joining, and its Reason says how many it waits for. It waits for 30 s from Join at most and then owns all the same,
	// with a warning: a fleet that lost replicas must still work. At most 1000. Default 0: it does not wait. Negative
	// is refused.
	Expect int
	// Secrets are the gossip keys: 16, 24 or 32 bytes each (AES-128, -192, -256), at most 8. The first encrypts what
	// this replica sends, each of them may have encrypted what it accepts. All replicas need the same, and while they
	// are changed one in common (see Rotate). None: gossip is neither encrypted nor authenticated, which only a
	// loopback Bind may do.
	Secrets [][]byte
	// Allow are the networks that gossip is accepted from, and that members may be in; at most 64. It is a second
	// fence, not a substitute for a key. It must hold the own advertised address. Default: all.
	Allow []netip.Prefix
	// Profile is the tuning set. Default: Fast.
	Profile Profile
	// Zone is where this replica runs, such as a region's availability zone; shown in Members: at most 32 bytes of
	// printable ASCII. Default: none.
	Zone string
	// Version of the program, shown in Members: at most 32 bytes of printable ASCII. Default: none.
	Version string
	// Logger gets membership changes, what was refused, and memberlist's own complaints at a bounded rate. Default: slog.Default().
	Logger *slog.Logger
}

var word = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// withDefaults returns a copy with the defaults filled in.
func (c Config) withDefaults() Config {
	if c.Name == "" {
		c.Name, _ = os.Hostname() // an empty one is refused by validate
	}
	if c.Bind == "" {
		c.Bind = "127.0.0.1:0"
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Logger = c.Logger.With("replica", c.Name)
	return c
}

// validate returns everything that is wrong with the configuration. It touches neither network nor disk.
func (c Config) validate() error {
	var errs []error
	bad := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("membership: "+format, args...))
	}
	if c.Namespace == "" {
		bad(`Namespace is empty; set Config.Namespace to the cluster's name, such as "billing"`)
	} else if !word.MatchString(c.Namespace) {
		bad("namespace %q: use 1 to 64 of A-Z a-z 0-9 . _ -", c.Namespace)
	}
	if !word.MatchString(c.Name) {
		bad("name %q: use 1 to %d of A-Z a-z 0-9 . _ -; set Config.Name if the host name is not like that", c.Name, maxName)
	}
	if err := printable(c.Version, maxVersion); err != nil {
		bad("version %.80q: %w", c.Version, err)
	}
	if err := printable(c.Zone, maxZone); err != nil {
		bad("zone %.80q: %w", c.Zone, err)
	}
	if c.Expect < 0 || c.Expect > maxExpect {
		bad("expect %d: use 0 to %d", c.Expect, maxExpect)
	}
	if c.Profile < Fast || c.Profile > WAN {
		bad("profile %d is unknown; use Fast, LAN or WAN", int(c.Profile))
	}
	if err := checkKeys(c.Secrets); err != nil {
		bad("%w", err)
	}
	if len(c.Allow) > maxAllow {
		bad("%d networks in Allow; at most %d", len(c.Allow), maxAllow)
	}
	for _, p := range c.Allow {
		if !p.IsValid() {
			bad("a network in Allow is not valid; make it with netip.ParsePrefix")
		}
	}
	if len(c.Seeds) > maxSeeds {
		bad("%d seeds; give at most %d, or one DNS name that resolves to all", len(c.Seeds), maxSeeds)
	}
	for _, s := range c.Seeds {
		if err := hostPort(s); err != nil {
			bad("seed %q: %w; write host:port", s, err)
		}
	}
	return errors.Join(errs...)
}

// printable reports what keeps s from being shown to people as it is: text from gossip reaches terminals and logs.
func printable(s string, most int) error {
	if len(s) > most {
		return fmt.Errorf("%d bytes; at most %d fit into gossip", len(s), most)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
		return errors.New("use printable ASCII")
	}
	return nil
}

// hostPort reports what keeps s from being an address that can be called.
func hostPort(s string) error {
	host, port, err := net.SplitHostPort(s)
	if err != nil {
		return err
	}
	if host == "" {
		return errors.New("no host")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errors.New("port must be 1 to 65535")
	}
	return nil
}

// endpoint is where a replica listens, and what it tells the others.
type endpoint struct {
	bind      *net.TCPAddr
	advertise *net.TCPAddr // nil: what is bound
}

// resolve looks up Bind and Advertise, and refuses an open door.
func (c Config) resolve(ctx context.Context) (endpoint, error) {
	bind, err := lookup(ctx, c.Bind)
	if err != nil {
		return endpoint{}, fmt.Errorf("membership: bind %q: %w; write host:port of this host", c.Bind, err)
	}
	if !bind.IP.IsLoopback() && len(c.Secrets) == 0 {
		return endpoint{}, fmt.Errorf("membership: bind %q: not a loopback address, and gossip has no key; "+
			"set Config.Secrets to 16, 24 or 32 random bytes shared by all replicas, or bind to 127.0.0.1", c.Bind)
	}
	if c.Advertise == "" {
		if bind.IP.Equal(net.IPv6unspecified) {
			return endpoint{}, fmt.Errorf("membership: bind %q: no address to tell the others; set Config.Advertise", c.Bind)
		}
		return endpoint{bind: bind}, nil
	}
	where := c.Advertise
	if _, _, err := net.SplitHostPort(where); err != nil {
		where = net.JoinHostPort(where, "0")
	}
	adv, err := lookup(ctx, where)
	if err == nil && (adv.IP.IsUnspecified() || adv.IP.IsMulticast() || adv.IP.Equal(net.IPv4bcast)) {
		err = errors.New("it is unspecified, multicast or broadcast")
	}
	if err != nil {
		return endpoint{}, fmt.Errorf("membership: advertise %q: %w; write the host:port at which the others reach this replica", c.Advertise, err)
	}
	return endpoint{bind: bind, advertise: adv}, nil
}

// lookup resolves host:port to one address; an empty host is all IPv4 interfaces.
func lookup(ctx context.Context, addr string) (*net.TCPAddr, error) {
	host, sport, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, err
	}
	port, err := strconv.ParseUint(sport, 10, 16)
	if err != nil {
		return nil, errors.New("port must be 0 to 65535")
	}
	if host == "" {
		return &net.TCPAddr{IP: net.IPv4zero, Port: int(port)}, nil
	}
	ips, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return nil, err
	}
	ip := ips[0].Unmap()
	return &net.TCPAddr{IP: ip.AsSlice(), Port: int(port), Zone: ip.Zone()}, nil
}

// settings returns memberlist's configuration of a profile. Its 4 retransmissions lose updates, the more the quicker
// the gossip and the worse the network; who was missed waits for a push/pull, tens of seconds. With 8 hardly anybody
// is missed. Who has no news sends no gossip, so that neither this nor a short interval costs idle members bytes.
// Compression is off in all: the messages are below 200 bytes, and it made nearly all of gossip's garbage.
//
// Fast is what was measured to see a crash within 1.5 s at the least cost of an idle member, which is that of being woken:
// fewer probes, each of which is enough to suspect, and after 0.64 s to be sure (with up to 10 members; it grows with log10 of
// their number). A member has to be silent for 0.96 s to be taken for dead, against 0.8 s with a probe each 0.2 s that two have to confirm.
func (p Profile) settings() *memberlist.Config {
	m := memberlist.DefaultLANConfig()
	switch p {
	case Fast:
		m.ProbeInterval = 320 * time.Millisecond
		m.ProbeTimeout = 120 * time.Millisecond
		m.SuspicionMult = 2
		m.GossipInterval = 100 * time.Millisecond
		m.GossipNodes = 4
	case LAN:
		m.GossipInterval = 100 * time.Millisecond
	case WAN:
		m = memberlist.DefaultWANConfig()
	}
	m.RetransmitMult = 8
	m.EnableCompression = false
	return m
}
