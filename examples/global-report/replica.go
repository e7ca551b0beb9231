package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/membership"
	"github.com/belfry-go/belfry/membership/etcdelector"
	"github.com/belfry-go/belfry/scheduler"
)

// What a replica says. The show reads it too.
const (
	saysReady  = "ready"
	saysLeads  = "leads"
	saysReport = "report"
)

// readyText follows saysReady.
const readyText = "process %d, gossip %s"

// replica runs until ctx ends. What it opens it closes in the opposite order.
func replica(ctx context.Context, o replicaOptions) (err error) {
	db, err := openDatabase(ctx, o.store)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.close()) }()
	members, err := membership.Join(ctx, membership.Config{Name: o.name, Namespace: namespace, Bind: o.bind, Seeds: o.seeds})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, members.Close()) }()

	say := func(what, format string, a ...any) {
		fmt.Printf("%s\t%s\t"+format+"\n", append([]any{members.Self(), what}, a...)...)
	}
	config := scheduler.Config{
		Namespace: namespace, Members: members, Store: db.store, Lease: o.lease,
		Hooks: []scheduler.Hooks{{Led: func(_ context.Context, l scheduler.Led) {
			if l.Mine {
				say(saysLeads, "since %s, in term %d: %s", clock(l.Since), l.Term, l.Why)
			}
		}}},
	}
	if len(o.etcd) > 0 { // else the store elects
		client, err := clientv3.New(clientv3.Config{Endpoints: o.etcd, DialTimeout: o.lease, DialKeepAliveTime: o.lease / 5, Logger: zap.NewNop()})
		if err != nil {
			return fmt.Errorf("etcd: %w", err)
		}
		defer client.Close()
		if config.Elector, err = etcdelector.New(client, &etcdelector.Options{Prefix: "belfry/" + namespace, Name: members.Self(), Lease: o.lease}); err != nil {
			return err
		}
	}
	s, err := scheduler.New(config)
	if err != nil {
		return err
	}
	if err := s.Add(report(o.every, db, say)); err != nil {
		return err
	}
	if err := s.OnLeader("count", count(db, say)); err != nil {
		return err
	}
	say(saysReady, readyText, os.Getpid(), members.Addr())
	return s.Run(ctx)
}

// jobName is that of the leader's job.
const jobName = "report"

// say tells the reader what a replica does.
type say = func(what, format string, a ...any)

// report is the job of the leader: one report of all, by the replica that leads.
func report(every time.Duration, db *database, say say) jobs.Job {
	return jobs.Job{
		Name:      jobName,
		Schedule:  jobs.Every(every),
		Placement: jobs.Leader,
		Overlap:   jobs.OverlapAllow,                   // reports do not wait for the one that a killed leader had begun
		Missed:    jobs.Missed{Policy: jobs.MissedAll}, // each is wanted, however late
		Run: func(ctx context.Context, o jobs.Occurrence) error {
			// The report and the end of its run commit together: a leader that was overtaken meanwhile adds no second one.
			if err := db.report(ctx, o); err != nil {
				return err
			}
			say(saysReport, "of %s, in term %d, %.1f s after its due", clock(o.Due), o.Term, time.Since(o.Due).Seconds())
			return nil
		},
	}
}

// count is the role: work without end that only the leader does. The context ends with the term; what
// is under way then is refused by the database once a later leader has written there.
func count(db *database, say say) func(context.Context, int64) error {
	return func(ctx context.Context, term int64) error {
		say("counts", "in term %d", term)
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
			case <-ctx.Done():
				say("counts", "no more in term %d", term)
				return nil
			}
			if err := db.count(ctx, term); err != nil && ctx.Err() == nil {
				return err
			}
		}
	}
}

// clock is an instant's time of day, as a reader wants it.
func clock(t time.Time) string { return t.UTC().Format("15:04:05Z") }
