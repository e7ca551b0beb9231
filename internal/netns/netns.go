package netns

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

const (
	// prefix of the namespaces' names; the process id and a number follow.
	prefix = "belfry-"
	// firstRule is the priority of the first rule: behind the table of the router's own addresses, before those that forward.
	firstRule = 100
	// mostHosts is what fits between 10.0.0.0/30 and 10.0.255.0/30.
	mostHosts = 256
)

// made counts the networks of this process, for their names.
var made atomic.Int64

// Net is a router and its hosts. Its methods may be called from any goroutine; they end the test where the ip command
// fails.
type Net struct {
	testing.TB
	name string // of its namespaces: this and what follows

	mu    sync.Mutex
	hosts int
	cuts  int // rules in force
}

// Host is one namespace, with one address.
type Host struct {
	net   *Net
	space string // the namespace
	link  string // the router's end of its link
	addr  netip.Addr
}

// New makes a network without hosts. It is removed at the end of the test; what runs in it has to have ended by then,
// so register that clean-up later than this call.
//
// Where namespaces cannot be made, linked and cut, the test is skipped, and says what is missing.
func New(t testing.TB) *Net {
	t.Helper()
	if what := missing(); what != "" {
		t.Skip("skipped: network namespaces need " + what)
	}
	n := &Net{TB: t, name: fmt.Sprintf("%s%d-%d", prefix, os.Getpid(), made.Add(1))}
	if err := n.open(); err != nil {
		_ = n.remove() // of what was made; err says what is wrong here
		t.Skipf("skipped: network namespaces cannot be made here: %v", err)
	}
	t.Cleanup(func() {
		t.Helper()
		if err := n.remove(); err != nil {
			t.Error(err)
		}
	})
	return n
}

// missing is what every machine needs for this.
func missing() string {
	switch _, err := exec.LookPath("ip"); {
	case runtime.GOOS != "linux":
		return "Linux"
	case os.Geteuid() != 0:
		return "root"
	case err != nil:
		return "the ip command (package iproute2)"
	}
	return ""
}

// open sweeps, makes the router, and tries there all that is done later, so that what this machine does not allow is seen now.
func (n *Net) open() error {
	if err := sweep(); err != nil {
		return err
	}
	if err := ip("", "netns add "+n.router()); err != nil {
		return err
	}
	// The reverse path filter would take a cut of one direction for one of both.
	_, err := run("", "ip", "netns", "exec", n.router(), "sh", "-ec",
		"cd /proc/sys/net/ipv4; echo 1 >ip_forward; echo 0 >conf/all/rp_filter; echo 0 >conf/default/rp_filter")
	if err != nil {
		return err
	}
	rule := fmt.Sprintf("priority %d from 192.0.2.1 to 192.0.2.2 blackhole", firstRule)
	return ip(n.router(), "link add try0 type veth peer name try1", "link del try0", "rule add "+rule, "rule del "+rule)
}

func (n *Net) router() string { return n.name + "-router" }

// Host adds one, which reaches all others.
func (n *Net) Host() *Host {
	n.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	i := n.hosts
	if i == mostHosts {
		n.Fatalf("netns: more than %d hosts", mostHosts)
	}
	n.hosts++
	h := &Host{net: n, space: n.name + "-" + strconv.Itoa(i), link: "h" + strconv.Itoa(i), addr: netip.AddrFrom4([4]byte{10, 0, byte(i), 2})}
	gate := netip.AddrFrom4([4]byte{10, 0, byte(i), 1}).String()
	n.must(ip("", "netns add "+h.space))
	n.must(ip(n.router(),
		"link add "+h.link+" type veth peer name eth0 netns "+h.space,
		"addr add "+gate+"/30 dev "+h.link,
		"link set "+h.link+" up"))
	n.must(ip(h.space,
		"addr add "+h.addr.String()+"/30 dev eth0",
		"link set lo up",
		"link set eth0 up",
		"route add default via "+gate))
	return h
}

// Addr is the host's address.
func (h *Host) Addr() netip.Addr { return h.addr }

// Exec is the start of a command line: the program that follows it is run on this host, in the place of the command.
func (h *Host) Exec() []string { return []string{"ip", "netns", "exec", h.space} }

// Way is a direction: what the first host sends to the second.
type Way struct{ From, To *Host }

// Cut drops what goes these ways, until Heal. Connections stay open and learn nothing of it.
func (n *Net) Cut(ways ...Way) {
	n.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	var rules []string
	for _, w := range ways {
		rules = append(rules, fmt.Sprintf("rule add priority %d from %s to %s blackhole", firstRule+n.cuts, w.From.addr, w.To.addr))
		n.cuts++
	}
	n.must(ip(n.router(), rules...))
}

// Heal takes all cuts back.
func (n *Net) Heal() {
	n.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	var rules []string
	for ; n.cuts > 0; n.cuts-- {
		rules = append(rules, fmt.Sprintf("rule del priority %d", firstRule+n.cuts-1))
	}
	n.must(ip(n.router(), rules...))
}

// Unplug takes the host's link down at the router, until Plug.
func (h *Host) Unplug() {
	h.net.Helper()
	h.net.must(ip(h.net.router(), "link set "+h.link+" down"))
}

// Plug takes the host's link up again.
func (h *Host) Plug() {
	h.net.Helper()
	h.net.must(ip(h.net.router(), "link set "+h.link+" up"))
}

func (n *Net) must(err error) {
	n.Helper()
	if err != nil {
		n.Fatal(err)
	}
}

// remove removes the router, the hosts and with them all links.
func (n *Net) remove() error {
	return removeIf(func(space string) bool { return strings.HasPrefix(space, n.name+"-") })
}

// sweep removes the namespaces of processes that are no more.
func sweep() error {
	return removeIf(func(space string) bool {
		rest, ours := strings.CutPrefix(space, prefix)
		pid, _, numbered := strings.Cut(rest, "-")
		if _, err := strconv.Atoi(pid); !ours || !numbered || err != nil {
			return false
		}
		_, err := os.Stat("/proc/" + pid)
		return os.IsNotExist(err)
	})
}

func removeIf(unwanted func(space string) bool) error {
	spaces, err := list(unwanted)
	if err != nil {
		return err
	}
	var failed error
	for _, space := range spaces {
		failed = errors.Join(failed, ip("", "netns del "+space))
	}
	if left, err := list(unwanted); err == nil && len(left) == 0 {
		return nil // another process swept too, and was quicker
	}
	return failed
}

// list lists the namespaces that are wanted, of all on this machine.
func list(wanted func(space string) bool) (spaces []string, err error) {
	text, err := run("", "ip", "netns", "list")
	for line := range strings.Lines(text) {
		if f := strings.Fields(line); len(f) > 0 && wanted(f[0]) { // an id may follow
			spaces = append(spaces, f[0])
		}
	}
	return spaces, err
}

// ip has the ip command do these lines, in a namespace or, with none, in that of this process.
func ip(space string, lines ...string) error {
	args := []string{"-batch", "-"}
	if space != "" {
		args = append([]string{"-netns", space}, args...)
	}
	_, err := run(strings.Join(lines, "\n")+"\n", "ip", args...)
	return err
}

// run runs a command to its end, and returns its output.
func run(input, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("netns: %s: %w: %s", strings.Join(cmd.Args, " "), err, strings.TrimSpace(input+string(out)))
	}
	return string(out), nil
}
