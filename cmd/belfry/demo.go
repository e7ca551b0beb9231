package main

import (
	"encoding/json"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/mattn/go-isatty"
	"github.com/spf13/cobra"

	"github.com/belfry-go/belfry/cmd/belfry/internal/demo"
	"github.com/belfry-go/belfry/cmd/belfry/internal/storeurl"
)

func demoCommand() *cobra.Command {
	var o demo.Options
	var store string
	var headless, asJSON bool
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Run three replicas that renew subscriptions once each, and kill one",
		Long: `Run replicas as processes of their own that share a store and gossip over
loopback. Each night they charge every customer through a payment provider,
another process. In the second night replicas are killed with SIGKILL and started
again. At the end the provider's ledger and the store are counted: the exit
status is 0 only if every customer was charged once for every night. Ctrl-C ends
it in order, a second one without waiting for the charges at work, a third at once.

The store is a SQLite file of the demo's own, or else a database that is there
already, by --store or ` + storeurl.Variable + `. There the demo makes the store's tables,
where they are missing, and leaves them; everything else it puts into a namespace
and a table of its own, and removes at its end, however it ends.` + storeHelp,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if o.Nights == 1 && !cmd.Flags().Changed("kills") {
				o.Kills = 0 // they are made in the second night
			}
			var err error
			if o.Store, err = storeurl.FromFlag(store); err != nil {
				return err
			}
			hurry, end := secondSignal()
			defer end()
			o.Hurry = hurry
			to := cmd.OutOrStdout()
			if asJSON {
				to = cmd.ErrOrStderr()
			}
			r, err := demo.Run(cmd.Context(), o, screen(to, headless))
			if err != nil {
				return err
			}
			if asJSON {
				if err := json.NewEncoder(cmd.OutOrStdout()).Encode(r); err != nil {
					return err
				}
			}
			if !r.Good() {
				return errSilent
			}
			return nil
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	storeFlag(cmd, &store)
	f.IntVar(&o.Nights, "nights", 3, "how many nights")
	f.DurationVar(&o.Every, "every", 0, "time between nights (default 8s, or what many customers or kills need)")
	f.IntVar(&o.Customers, "customers", 1000, "how many customers")
	f.IntVar(&o.Replicas, "replicas", 3, "how many replicas")
	f.IntVar(&o.Kills, "kills", 1, "how many times to kill a replica in the second night; 0: none")
	f.BoolVar(&headless, "headless", false, "print plain lines, as without a terminal")
	f.BoolVar(&asJSON, "json", false, "print the result as one JSON object, and all else to standard error")
	f.StringVar(&o.Dir, "dir", "", "folder for the files, kept (default a temporary one, removed)")
	cmd.AddCommand(childCommand("replica NAME", 1, demo.Replica), childCommand("provider", 0, demo.Provider))
	return cmd
}

// secondSignal returns a channel that is closed at the second interrupt: the first one lets replicas finish what they do, the second
// one cuts that off, and only a third ends this program at once, so that nothing is left behind. End ends the watch.
func secondSignal() (second <-chan struct{}, end func()) {
	hurry, ended := make(chan struct{}), make(chan struct{})
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		defer signal.Stop(signals)
		for range 2 {
			select {
			case <-signals:
			case <-ended:
				return
			}
		}
		close(hurry)
	}()
	return hurry, func() { close(ended) }
}

// screen is live where it is a terminal. NO_COLOR is the convention of no-color.org: set to anything, no colours.
func screen(w io.Writer, headless bool) *demo.Screen {
	f, ok := w.(*os.File)
	live := ok && !headless && isatty.IsTerminal(f.Fd()) && os.Getenv("TERM") != "dumb"
	return &demo.Screen{W: w, Live: live, Colour: os.Getenv("NO_COLOR") == ""}
}
