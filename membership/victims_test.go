package membership

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/belfry-go/belfry/internal/procs"
)

// victimsRole is the first argument of a copy of the test binary that is to be attacked: only a process of its own has
// a memory of its own.
const victimsRole = "membership-victims"

// orders are what the victims are told, and reports what they say: their addresses first, the rest at the end.
type (
	orders struct{ Key []byte }
	report struct {
		Addrs    []string
		Peak     int64 // bytes of memory at most; 0: this system does not say
		Changes  int64 // of owners or members, seen by any
		Members  []int // that each sees
		Refused  map[string]int64
		Received int64
	}
)

// victims makes this process one of three members, if it was started as that, and ends it.
func victims() {
	if len(os.Args) < 2 || os.Args[1] != victimsRole {
		return
	}
	if err := beVictims(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func beVictims() error {
	ctx, parent := procs.Attach(context.Background(), os.Stdin, os.Stdout)
	var o orders
	if err := parent.Receive(&o); err != nil {
		return err
	}
	c := Config{Namespace: "test", Profile: LAN, Secrets: keysOf(o.Key), Logger: slog.New(slog.NewTextHandler(os.Stderr, nil))}
	var all []*Cluster
	for i := range 3 {
		c.Name, c.Seeds = letter(i), addrs(all)
		m, err := Join(ctx, c)
		if err != nil {
			return err
		}
		if err := m.Announce(ctx, "serving", "layout", "", nil); err != nil {
			return err
		}
		all = append(all, m)
	}
	for _, m := range all {
		for o, changed := m.Watch(); len(o) < 3; o, changed = m.Watch() {
			<-changed
		}
	}
	watch, stop := context.WithCancel(ctx)
	defer stop()
	var changes atomic.Int64
	var watching sync.WaitGroup
	for _, m := range all {
		_, changed := m.Watch()
		watching.Go(func() {
			for {
				select {
				case <-changed:
					changes.Add(1)
					_, changed = m.Watch()
				case <-watch.Done():
					return
				}
			}
		})
	}
	if err := parent.Report(report{Addrs: addrs(all)}); err != nil {
		return err
	}
	if err := parent.Receive(&o); err != nil { // the end of the attack
		return err
	}
	stop()
	watching.Wait()
	r := report{Peak: peak(), Changes: changes.Load(), Refused: map[string]int64{}}
	var errs []error
	for _, m := range all {
		s := m.Stats()
		r.Received += s.Received
		for why, n := range s.Refused {
			r.Refused[why.String()] += n
		}
		r.Members = append(r.Members, len(m.Members()))
	}
	for _, m := range all {
		errs = append(errs, m.Close())
	}
	return errors.Join(append(errs, parent.Report(r))...)
}

// peak returns the most memory that this process had resident, as Linux counts it.
func peak() int64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return 0
	}
	defer func() { _ = f.Close() }()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		var kb int64
		if strings.HasPrefix(lines.Text(), "VmHWM:") {
			_, _ = fmt.Sscanf(lines.Text(), "VmHWM: %d kB", &kb) // 0
			return kb << 10
		}
	}
	return 0
}
