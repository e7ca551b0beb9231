package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// stage is a show that plays.
type stage struct {
	o        showOptions
	db       *database
	lines    chan said
	live     []*child
	leader   *child // nil: nobody leads
	reports  int    // that it has made
	occasion int    // what --kill has done
}

// show starts three replicas, tells what they do, and when ctx ends or the last has ended stops them and counts.
func show(ctx context.Context, o showOptions) (err error) {
	dir, err := os.MkdirTemp("", "global-report-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if !o.storeElection && len(o.etcd) == 0 {
		address, stop, err := startEtcd(ctx, filepath.Join(dir, "etcd"))
		if err != nil {
			return err
		}
		defer stop()
		o.etcd = []string{address}
		fmt.Printf("etcd\tlistens at %s\n", address)
	}
	file := filepath.Join(dir, "reports.db")
	fmt.Printf("store\tis %s, of namespace %s\n", file, namespace)
	db, err := openDatabase(ctx, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	s := &stage{o: o, db: db, lines: make(chan said)}
	err = s.play(ctx, file)
	s.close()
	if err != nil {
		return err
	}
	return s.count(context.WithoutCancel(ctx))
}

// play returns when ctx has ended, or the show; an error where a replica does not start.
func (s *stage) play(ctx context.Context, file string) error {
	args := append([]string{"--store", file, "--bind", "127.0.0.1:0"}, s.o.arguments()...)
	for _, name := range []string{"a", "b", "c"} {
		gossip, err := s.start(ctx, name, args)
		switch {
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
		args = append(args, "--seed", gossip)
	}
	for len(s.live) > 0 && !s.over() {
		select {
		case line := <-s.lines:
			s.hear(line)
			s.interfere()
		case <-ctx.Done():
			return nil
		}
	}
	return nil
}

// start starts a replica, and returns its gossip address once it is ready.
func (s *stage) start(ctx context.Context, name string, args []string) (gossip string, err error) {
	c, err := startChild(name, args, s.lines)
	if err != nil {
		return "", err
	}
	s.live = append(s.live, c)
	for {
		select {
		case line := <-s.lines:
			s.hear(line)
			switch {
			case line.from != c:
			case line.what == saysReady:
				if _, err := fmt.Sscanf(line.text, readyText, new(int), &gossip); err != nil {
					return "", fmt.Errorf("replica %s says %q: %w", name, line.text, err)
				}
				return gossip, nil
			case line.ended:
				return "", fmt.Errorf("replica %s %s before it was ready", name, line.text)
			}
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}

// hear tells the reader what a replica says, and of a leader what to do to it; and remembers who leads.
func (s *stage) hear(line said) {
	fmt.Printf("%s\t%s\t%s\n", line.from.name, line.what, line.text)
	switch {
	case line.ended:
		s.live = slices.DeleteFunc(s.live, func(c *child) bool { return c == line.from })
		if s.leader == line.from {
			s.leader = nil
		}
	case line.what == saysLeads:
		s.leader, s.reports = line.from, 0
		if pid := line.from.cmd.Process.Pid; !s.o.kill {
			fmt.Printf("\tkill -9 %d kills the leader, kill %d lets it leave; Ctrl-C ends the show\n", pid, pid)
		}
	case line.what == saysReport && line.from == s.leader:
		s.reports++
	}
}

// enough is how many reports a leader makes before something is done to it.
const enough = 2

// The occasions of --kill.
const (
	toBeKilled = iota
	toLeave
	toEnd
	over
)

func (s *stage) over() bool { return s.occasion == over }

// interfere does to the leader, with --kill, what the reader would.
func (s *stage) interfere() {
	if !s.o.kill || s.leader == nil || s.reports < enough {
		return
	}
	switch s.occasion {
	case toBeKilled:
		fmt.Printf("\tkill -9 %d, which is %s\n", s.leader.cmd.Process.Pid, s.leader.name)
		s.leader.kill()
	case toLeave:
		fmt.Printf("\t%s is to leave\n", s.leader.name)
		s.leader.leave()
	}
	s.leader = nil
	s.occasion++
}

// close stops the replicas that live, and waits until they have ended.
func (s *stage) close() {
	for _, c := range s.live {
		c.leave()
	}
	for len(s.live) > 0 {
		s.hear(<-s.lines)
	}
}

// count holds the reports against the clock: one for each due.
func (s *stage) count(ctx context.Context) error {
	reports, terms, lacking, err := s.db.sum(ctx, s.o.every)
	if err != nil {
		return err
	}
	begun, err := s.db.underWay(ctx)
	if err != nil {
		return err
	}
	fmt.Printf("\treports: %d, terms: %d, none twice", reports, terms)
	for _, due := range lacking {
		if !begun[due] {
			fmt.Println()
			return fmt.Errorf("the report of %s is lost", clock(due))
		}
		fmt.Printf("; that of %s follows when the lease of who had begun it has ended", clock(due))
	}
	fmt.Println(", none lost")
	return nil
}
