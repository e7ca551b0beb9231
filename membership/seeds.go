package membership

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	seedAddrs   = 16              // addresses called of one seed and round, a random choice
	resolveMost = 3 * time.Second // for a seed's name
	seedFileMax = 64 << 10        // bytes
	readMost    = time.Second     // for the file
	badLines    = 3               // of the file that are named
)

// seeds are the addresses that a replica was told to call.
type seeds struct {
	fixed []string
	file  string // "": none
	look  func(ctx context.Context, host string) ([]netip.Addr, error)
	busy  chan struct{} // capacity 1: the file is being read
}

func newSeeds(c Config) seeds {
	return seeds{fixed: c.Seeds, file: c.SeedFile, busy: make(chan struct{}, 1), look: func(ctx context.Context, host string) ([]netip.Addr, error) {
		return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	}}
}

// list returns the seeds of now, at most maxSeeds, and what is wrong with the file. A file that cannot be read, or not
// in whole, takes nothing away from the rest: others write it, perhaps at this very moment.
func (s seeds) list() ([]string, error) {
	if s.file == "" {
		return s.fixed, nil
	}
	lines, err := s.read()
	if err != nil {
		return s.fixed, fmt.Errorf("seed file: %w", err)
	}
	all := slices.Clone(s.fixed)
	var errs []error
	for i, line := range lines {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' || slices.Contains(all, line) {
			continue
		}
		if err := hostPort(line); err != nil {
			errs = append(errs, fmt.Errorf("seed file %s, line %d: %.80q: %w; write host:port", s.file, i+1, line, err))
			continue
		}
		if len(all) == maxSeeds {
			errs = append(errs, fmt.Errorf("seed file %s: seeds behind line %d are left out; at most %d in all", s.file, i, maxSeeds))
			break
		}
		all = append(all, line)
	}
	if more := len(errs) - badLines; more > 0 {
		errs = append(errs[:badLines], fmt.Errorf("and %d lines more", more))
	}
	return all, errors.Join(errs...)
}

// read returns the lines of the file, unless that takes too long, as it may on a disk far away: calling must not wait.
func (s seeds) read() ([]string, error) {
	select {
	case s.busy <- struct{}{}:
	default:
		return nil, fmt.Errorf("%s is still being read", s.file)
	}
	type result struct {
		lines []string
		err   error
	}
	done := make(chan result, 1)
	go func() {
		lines, err := readLines(s.file)
		<-s.busy
		done <- result{lines, err}
	}()
	late := time.NewTimer(readMost)
	defer late.Stop()
	select {
	case r := <-done:
		return r.lines, r.err
	case <-late.C:
		return nil, fmt.Errorf("%s was not read within %s", s.file, readMost)
	}
}

// readLines returns the lines of a file that is not too long.
func readLines(path string) ([]string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", path)
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, seedFileMax+1))
	if err != nil {
		return nil, err
	}
	if len(b) > seedFileMax {
		return nil, fmt.Errorf("%s is longer than %d bytes; is it the right file?", path, seedFileMax)
	}
	return strings.Split(string(b), "\n"), nil
}

// resolve returns all addresses that a seed stands for now, host:port each.
func (s seeds) resolve(ctx context.Context, seed string) ([]string, error) {
	host, port, err := net.SplitHostPort(seed)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, resolveMost)
	defer cancel()
	ips, err := s.look(ctx, host)
	if err != nil {
		return nil, err
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil, err
	}
	addrs := make([]string, len(ips))
	for i, ip := range ips {
		addrs[i] = netip.AddrPortFrom(ip.Unmap(), uint16(n)).String()
	}
	return addrs, nil
}
