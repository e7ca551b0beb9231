package netns

import (
	"fmt"
	"os/exec"
)

// Lose has the router drop each packet between two hosts with this probability, in percent, until the next call; 0 is
// none. Connections stay open and repeat what is lost.
//
// It needs the iptables command (Debian's iptables), which nothing else here does; where that or its statistic match is
// missing, the test is skipped, and says so.
func (n *Net) Lose(percent int) {
	n.Helper()
	if _, err := exec.LookPath("iptables"); err != nil {
		n.Skip("skipped: loss needs the iptables command (package iptables)")
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	filter := func(args ...string) error {
		_, err := run("", "ip", append([]string{"netns", "exec", n.router(), "iptables", "-w"}, args...)...)
		return err
	}
	n.must(filter("-F", "FORWARD"))
	if percent == 0 {
		return
	}
	err := filter("-A", "FORWARD", "-m", "statistic", "--mode", "random", "--probability", fmt.Sprintf("%.2f", float64(percent)/100), "-j", "DROP")
	if err != nil {
		n.Skipf("skipped: packets cannot be lost at random here: %v", err)
	}
}
