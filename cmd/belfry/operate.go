package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
	"github.com/belfry-go/belfry/idempotency"
	"github.com/belfry-go/belfry/scheduler"
)

const (
	namespaceVariable = "BELFRY_NAMESPACE"
	defaultWithin     = 30 * time.Second
)

// operation is a command about a namespace of a store, for people or, with --json, for programs.
type operation struct {
	store, namespace, prefix string
	within                   time.Duration
	json                     bool

	history idempotency.History // the store, once it is open

	set *pflag.FlagSet
	in  io.Reader
	out io.Writer
}

// action is what an operation does, once its arguments are known to be right.
type action func(context.Context, *scheduler.Client) error

// operate makes the flags that all operations have, and what the command does: read checks the arguments and flags, and
// returns the action.
func (o *operation) operate(cmd *cobra.Command, read func(args []string) (action, error)) *cobra.Command {
	cmd.Long += operationHelp
	// A flag that is wrong is told as --json says, which is known only when all flags were read.
	cmd.DisableFlagParsing = true
	o.set = cmd.Flags()
	o.set.SortFlags = false
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		o.in, o.out = cmd.InOrStdin(), cmd.OutOrStdout()
		help, err := o.run(cmd.Context(), cmd.Name(), args, read)
		if help {
			return cmd.Help()
		}
		return o.tell(cmd.Context(), args, err)
	}
	return cmd
}

// storeFlags adds the flags that say where the record is, below those of the command itself.
func (o *operation) storeFlags() {
	o.set.StringVar(&o.store, "store", "", "`URL` of the store (default: that in "+storeurl.Variable+")")
	o.set.StringVar(&o.namespace, "namespace", "", "the replicas' namespace (default: that in "+namespaceVariable+")")
	o.set.StringVar(&o.prefix, "prefix", "", "what the tables' names begin with (default belfry_)")
	o.set.DurationVar(&o.within, "timeout", defaultWithin, "how long the store may take to answer")
	o.set.BoolVar(&o.json, "json", false, `print JSON for programs, or {"error": "…"}`)
}

const operationHelp = `

The exit status is 0 where it is done, 1 where the store cannot be reached or
used, 2 where an argument or flag is wrong, 3 where what is named is not there or
the command is rejected.` + storeHelp

func (o *operation) run(ctx context.Context, name string, args []string, read func([]string) (action, error)) (help bool, err error) {
	wrong := func(err error) error { return coded{fmt.Errorf("%s: %w", name, err), statusMisuse} }
	if err := o.set.Parse(args); err != nil {
		return false, wrong(fmt.Errorf("%w; see belfry %s --help", err, name))
	}
	if help, _ := o.set.GetBool("help"); help {
		return true, nil
	}
	act, err := read(o.set.Args())
	if err != nil {
		return false, wrong(err)
	}
	url, err := o.where()
	if err != nil {
		return false, wrong(err)
	}
	within, cancel := context.WithTimeout(ctx, o.within)
	defer cancel()
	err = o.act(within, url, act)
	switch {
	case err == nil || errors.As(err, new(coded)):
		return false, err
	case errors.Is(err, idempotency.ErrRejected), errors.Is(err, scheduler.ErrUnknown):
		return false, coded{err, statusRejected}
	case within.Err() != nil && ctx.Err() == nil:
		return false, fmt.Errorf("%w: the store did not answer within %v; see whether it is up, or raise --timeout", err, o.within)
	}
	return false, err
}

// where checks the flags that say where the record is.
func (o *operation) where() (url storeurl.URL, err error) {
	if o.within <= 0 {
		return url, fmt.Errorf("--timeout %v: give a time above zero, such as 30s", o.within)
	}
	o.namespace = cmp.Or(o.namespace, os.Getenv(namespaceVariable))
	if o.namespace == "" {
		return url, errors.New("no namespace is named; give --namespace or set " + namespaceVariable + " to the one in the replicas' scheduler.Config")
	}
	if err := idempotency.CheckNamespace(o.namespace); err != nil {
		return url, fmt.Errorf("--namespace: %w", err)
	}
	if url, err = storeurl.FromFlag(o.store); err != nil {
		return url, err
	}
	return url, url.Check(o.prefix)
}

func (o *operation) act(ctx context.Context, url storeurl.URL, act action) (err error) {
	c, err := storeurl.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	store, err := c.OpenMade(ctx, o.prefix)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	o.history = store
	client, err := scheduler.NewClient(o.namespace, store)
	if err != nil {
		return err
	}
	return act(ctx, client)
}

// tell tells an error to a program, where one asked; else it leaves that to the caller, as it does with the end by Ctrl-C.
func (o *operation) tell(ctx context.Context, args []string, err error) error {
	if err == nil || ctx.Err() != nil || errors.Is(err, errSilent) || !o.json && !wantsJSON(args) {
		return err
	}
	status := statusFailed
	if c, ok := errors.AsType[coded](err); ok {
		status = c.status
	}
	return coded{writeError(o.out, err), status}
}

// rejected is a failure about what was named.
func rejected(format string, a ...any) error {
	return coded{fmt.Errorf(format, a...), statusRejected}
}

// known returns an error where the namespace has no job at all: nothing was found, and a name may be mistyped.
func (o *operation) known(ctx context.Context, c *scheduler.Client) error {
	list, err := c.Jobs(ctx)
	if err == nil && len(list) == 0 {
		err = rejected("namespace %q has no job in this store; check --namespace, --store and --prefix, and whether a replica has ever run", o.namespace)
	}
	return err
}

// keyed says which jobs have keys.
func (o *operation) keyed(ctx context.Context) (map[string]bool, error) {
	v, err := o.history.Overview(ctx, o.namespace)
	keyed := make(map[string]bool, len(v.Entries))
	for _, e := range v.Entries {
		keyed[e.Job] = e.Keyed
	}
	return keyed, err
}
