//go:build unix

package rig

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/belfry-go/belfry/internal/procs"
)

// quota is a cgroup that gives its processes a share of one processor.
type quota struct {
	*testing.T
	dir string
}

const everyQuota = 100 * time.Millisecond // the period that a share is of: the kernel's default

// quotas counts those of this process, for their names.
var quotas atomic.Int64

// newQuota makes one, with no limit yet, or skips the test. It has to be made before the fleet, so that it is removed
// when the processes are gone.
func newQuota(t *testing.T) *quota {
	t.Helper()
	const root = "/sys/fs/cgroup/cpu"
	if _, err := os.Stat(filepath.Join(root, "cpu.cfs_quota_us")); err != nil {
		t.Skipf("skipped: a share of a processor needs the cpu controller of cgroup v1 in %s: %v", root, err)
	}
	q := &quota{t, filepath.Join(root, fmt.Sprintf("belfry-%d-%d", os.Getpid(), quotas.Add(1)))}
	if err := os.Mkdir(q.dir, 0o700); err != nil {
		t.Skipf("skipped: no cgroup can be made, which needs root: %v", err)
	}
	t.Cleanup(func() {
		if err := os.Remove(q.dir); err != nil {
			t.Error(err)
		}
	})
	return q
}

// set limits the share, in percent of one processor; -1 is no limit.
func (q *quota) set(percent int) {
	q.Helper()
	share := -1
	if percent > 0 {
		share = int(everyQuota.Microseconds()) * percent / 100
	}
	q.write("cpu.cfs_quota_us", share)
}

// add moves a process into it.
func (q *quota) add(pid int) { q.write("cgroup.procs", pid) }

func (q *quota) write(name string, value int) {
	q.Helper()
	if err := os.WriteFile(filepath.Join(q.dir, name), []byte(strconv.Itoa(value)), 0o600); err != nil {
		q.Fatal(err)
	}
}

// stood is how long it was throttled so far, summed over the processors.
func (q *quota) stood() (total time.Duration) {
	q.Helper()
	text, err := os.ReadFile(filepath.Join(q.dir, "cpu.stat"))
	if err != nil {
		q.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if _, err := fmt.Sscanf(line, "throttled_time %d", &total); err == nil {
			return total
		}
	}
	q.Fatalf("no throttled_time in %q", text)
	return 0
}

// used is how much of processors processes have had so far, from /proc/PID/stat: behind the name in parentheses the fields count
// from 3, and 14 and 15 are ticks of 10 ms.
func (q *quota) used(pids ...int) (total time.Duration) {
	q.Helper()
	for _, pid := range pids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil {
			q.Fatal(err)
		}
		fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
		for _, field := range fields[11:13] {
			ticks, err := strconv.Atoi(field)
			if err != nil {
				q.Fatal(err)
			}
			total += time.Duration(ticks) * 10 * time.Millisecond
		}
	}
	return total
}

// greedy starts a process that is never idle and ends with the test.
func greedy(t *testing.T) *procs.Child {
	t.Helper()
	c, err := procs.Start(nil, spinner)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Kill()
		_ = c.Receive(nil) // says that it has ended, and closes the pipe
	})
	return c
}

// F11: one of three replicas shares a tenth of a processor with a process that takes all it gets. It may be taken for
// dead, and come back; nothing is lost or done twice.
func TestStarved(t *testing.T) {
	t.Parallel()
	skipSlow(t)
	q := newQuota(t)
	base := slowly
	base.Works = mix()
	f := newFleet(t, base)
	a, _, _ := f.three()
	f.paused[a.Pid()] = true
	b := greedy(t)
	q.add(a.Pid())
	q.add(b.Pid())
	for range times(1) {
		before, used := f.states(), q.used(a.Pid(), b.Pid())
		q.set(10)
		f.pass(30 * time.Second)
		used = q.used(a.Pid(), b.Pid()) - used
		s := f.seen(before)
		t.Logf("in 30 s a and what is greedy had a processor for %v; the three saw members go %d times and the owners change %d times",
			used.Round(100*time.Millisecond), s.Gone, s.Moves)
		if used > 5*time.Second { // 3 s is a tenth; on a busy machine they get less
			t.Errorf("a and what is greedy had a processor for %v", used)
		}
		q.set(-1)
		f.merged("a was starved")
	}
	f.settle(law{})
}
