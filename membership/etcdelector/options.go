package etcdelector

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"
)

// Options says how an Elector elects. All replicas of a service have the same, but for the Name. Zero means the default. New
// refuses what makes no sense and names every problem at once. The package comment says how to choose the durations.
type Options struct {
	// Prefix is where the keys of the election are, one of each replica that asks: Prefix/leader/<lease>. Required: services with the
	// same Prefix elect one leader among them all, so it has the service's name in it, such as "belfry/billing". Any bytes but a slash at the
	// end or an element "leader", with which one election's keys could lie among another's; 512 at most.
	Prefix string

	// Name is the value of this replica's key, for people who look into etcd. Default: the host's name.
	Name string

	// Lease is how long etcd keeps the leadership of a replica that fell silent: whole seconds, at least one. Shorter fails over
	// faster and tolerates less of a slow etcd. etcd grants more where its own election timeout demands that. Default 10 s.
	Lease time.Duration

	// Trust is how long a leader believes in itself: from the sending of the last renewal that etcd confirmed. Below Lease by a margin
	// for what lead needs to stop, which no other replica is elected in, and for clocks that run at different speeds; where etcd grants more than
	// Lease, the margin stays. It also bounds how long an election may take to be confirmed before the replica makes room for others. Default 7/10 of Lease.
	Trust time.Duration

	// Renew is how often a leader renews, and how long each call of etcd may take. A renewal is two calls, which take half of Trust together
	// at most. At most half of Trust, so that one renewal may fail. Default Lease/5.
	Renew time.Duration

	// Retry is the pause before a renewal that failed, or a watch that broke, is tried again. Before a replica stands again it is jittered, and doubles with
	// each further failure, up to Renew and half as much more. Below Renew. Default Renew/10.
	Retry time.Duration

	// Logger is told of each term and of failures. Nil: slog.Default().
	Logger *slog.Logger
}

const (
	maxPrefix = 512
	maxName   = 255

	// leaders is the element of a key that ends the Prefix. Keys of "a" and "a/b" share no beginning by it: without it the election of
	// "a" would wait for the leader of "a/b".
	leaders = "leader"
)

func (o Options) withDefaults() (Options, error) {
	if o.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			return o, fmt.Errorf("etcdelector: the host has no name; set Name: %w", err)
		}
		o.Name = host
	}
	o.Lease = cmp.Or(o.Lease, 10*time.Second)
	o.Trust = cmp.Or(o.Trust, o.Lease*7/10)
	o.Renew = cmp.Or(o.Renew, o.Lease/5)
	o.Retry = cmp.Or(o.Retry, o.Renew/10)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o, nil
}

func (o Options) validate() error {
	var errs []error
	bad := func(format string, a ...any) { errs = append(errs, fmt.Errorf("etcdelector: "+format, a...)) }
	switch {
	case o.Prefix == "":
		bad(`Prefix is empty; set it to a prefix of the service's own, such as "belfry/billing"`)
	case len(o.Prefix) > maxPrefix:
		bad("Prefix has %d bytes; at most %d", len(o.Prefix), maxPrefix)
	case strings.HasSuffix(o.Prefix, "/"):
		bad("Prefix %q ends in a slash; leave it away", o.Prefix)
	case slices.Contains(strings.Split(o.Prefix, "/"), leaders):
		bad("Prefix %q has an element %q, which begins the keys of another election; choose another word", o.Prefix, leaders)
	}
	if len(o.Name) > maxName {
		bad("Name has %d bytes; at most %d", len(o.Name), maxName)
	}
	if o.Lease < time.Second || o.Lease%time.Second != 0 {
		bad("Lease is %v; set it to whole seconds, at least 1s", o.Lease)
	}
	if o.Trust >= o.Lease {
		bad("Trust %v is not below Lease %v; set it to about 7/10 of Lease, or the leader would believe in itself while the next one is elected", o.Trust, o.Lease)
	}
	if o.Renew > o.Trust/2 {
		bad("Renew %v is above half of Trust %v; set it to about Lease/5, or one failed renewal would end the term", o.Renew, o.Trust)
	}
	if o.Retry >= o.Renew {
		bad("Retry %v is not below Renew %v; set it to about a tenth of Renew, or no renewal is tried again in time", o.Retry, o.Renew)
	}
	if o.Trust <= 0 || o.Renew <= 0 || o.Retry <= 0 {
		bad("Trust %v, Renew %v and Retry %v must be above 0; leave them 0 for the defaults", o.Trust, o.Renew, o.Retry)
	}
	return errors.Join(errs...)
}
