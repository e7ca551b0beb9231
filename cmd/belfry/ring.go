package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/belfry-go/belfry/jobs"
	"github.com/belfry-go/belfry/ring"
)

// maxRanks bounds a line of output. Hedging asks the first few.
const maxRanks = 16

func ringCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "ring",
		Short: "Ask who owns what",
		Long: `Compute ownership as replicas do: it depends on the members' names and the layout
alone, so the answer is the cluster's. The layout flags must be those of
scheduler.Config.Ring.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(ownerCommand(), slotCommand(), planCommand())
	return cmd
}

func layoutFlags(cmd *cobra.Command) *ring.Options {
	var o ring.Options
	f := cmd.Flags()
	f.IntVar(&o.Partitions, "partitions", 0, "partitions, a power of two (default 4096)")
	f.IntVar(&o.VirtualNodes, "virtual-nodes", 0, "points of each member (default 200)")
	f.Float64Var(&o.Load, "load", 0, "bound of a member's share, above 1 (default 1.10)")
	return &o
}

func ownerCommand() *cobra.Command {
	var members []string
	var ranks int
	cmd := &cobra.Command{
		Use:     "owner --members NAME,… [KEY…]",
		Short:   "Print who owns each key, and who follows",
		Long:    "Print each key, its partition and its owners in rank, separated by tabs. Without a KEY, keys are read from standard input, one a line.",
		Example: "  belfry ring owner --members a,b,c c-000001",
	}
	layout := layoutFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if ranks < 1 || ranks > maxRanks {
			return fmt.Errorf("ring: --ranks %d: give 1 to %d", ranks, maxRanks)
		}
		r, err := build("members", members, layout)
		if err != nil {
			return err
		}
		return eachKey(cmd, args, func(w io.Writer, key string) {
			fmt.Fprintf(w, "%s\t%d\t%s\n", key, r.Partition(key), strings.Join(r.Owners(key, ranks), "\t"))
		})
	}
	cmd.Flags().StringArrayVar(&members, "members", nil, "the members' `names`, in any order, with commas between")
	cmd.Flags().IntVar(&ranks, "ranks", 1, fmt.Sprintf("how many owners to print, at most %d: the first, and its successors", maxRanks))
	return cmd
}

func slotCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "slot [KEY…]",
		Short: "Print the slot of each key, to be stored beside it",
		Long: `Print the slot of each key and the key, separated by a tab: xxhash64(key) mod 65536,
which never changes. A partition is a slot modulo the number of partitions.
Without a KEY, keys are read from standard input, one a line.`,
		Example: "  belfry ring slot < keys.txt",
		RunE: func(cmd *cobra.Command, args []string) error {
			return eachKey(cmd, args, func(w io.Writer, key string) { fmt.Fprintf(w, "%d\t%s\n", ring.Slot(key), key) })
		},
	}
}

func planCommand() *cobra.Command {
	var from, to []string
	var each bool
	cmd := &cobra.Command{
		Use:     "plan --from NAME,… --to NAME,…",
		Short:   "Print what would move if members changed",
		Long:    "Print how many partitions would go from which member to which, with --each every partition.",
		Args:    cobra.NoArgs,
		Example: "  belfry ring plan --from a,b,c --to a,b,c,d",
	}
	layout := layoutFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		before, err := build("from", from, layout)
		if err != nil {
			return err
		}
		after, err := build("to", to, layout)
		if err != nil {
			return err
		}
		printPlan(cmd.OutOrStdout(), ring.Plan(before, after), after.Partitions(), each)
		return nil
	}
	cmd.Flags().StringArrayVar(&from, "from", nil, "the members' `names` before, with commas between")
	cmd.Flags().StringArrayVar(&to, "to", nil, "the members' `names` after, with commas between")
	cmd.Flags().BoolVar(&each, "each", false, "print every partition that moves")
	return cmd
}

func printPlan(w io.Writer, moves []ring.Move, partitions int, each bool) {
	type pair struct{ from, to string }
	var order []pair
	counts := map[pair]int{}
	for _, m := range moves {
		if each {
			fmt.Fprintf(w, "%d\t%s\t%s\n", m.Partition, m.From, m.To)
			continue
		}
		p := pair{m.From, m.To}
		if counts[p]++; counts[p] == 1 {
			order = append(order, p)
		}
	}
	if each {
		return
	}
	for _, p := range order {
		fmt.Fprintf(w, "%s\t%s\t%d\n", p.from, p.to, counts[p])
	}
	fmt.Fprintf(w, "%d of %d partitions move (%.1f %%)\n", len(moves), partitions, 100*float64(len(moves))/float64(partitions))
}

// build makes the ring of the names in a flag's values. It refuses what is most likely a slip, such as a space, since
// it would give the ring of another cluster; names that no member can have are package ring's to refuse.
func build(flag string, values []string, o *ring.Options) (*ring.Ring, error) {
	list := strings.Join(values, ",")
	if list == "" {
		return nil, fmt.Errorf("ring: --%s is empty; give the members' names, such as --%s a,b,c", flag, flag)
	}
	names := strings.Split(list, ",")
	seen := map[string]bool{}
	for i, name := range names {
		bad := ""
		switch {
		case name == "":
			bad = "is empty; take out a comma"
		case strings.ContainsFunc(name, odd):
			bad = "has a space, a quote or what cannot be printed; write names alone, with commas between"
		case seen[name]:
			bad = "is listed twice; list each once"
		}
		if bad != "" {
			return nil, fmt.Errorf("ring: --%s: name %d, %s, %s", flag, i+1, quote(name), bad)
		}
		seen[name] = true
	}
	r, err := ring.New(names, o)
	if err != nil {
		return nil, fmt.Errorf("ring: --%s: %w", flag, err)
	}
	return r, nil
}

// odd reports whether a name is unlikely to have r.
func odd(r rune) bool { return !unicode.IsPrint(r) || strings.ContainsRune(` "'`, r) }

// quote quotes a name for an error, cut so that it stays one line on a screen.
func quote(name string) string {
	const cut = 40
	if len(name) > cut {
		return fmt.Sprintf("%q…", name[:cut])
	}
	return fmt.Sprintf("%q", name)
}

// eachKey prints a line for each argument, or for each line of standard input where there are none.
func eachKey(cmd *cobra.Command, args []string, line func(w io.Writer, key string)) (err error) {
	w := bufio.NewWriter(cmd.OutOrStdout())
	defer func() { err = errors.Join(err, w.Flush()) }()
	for _, key := range args {
		if err := jobs.ValidateKey(key); err != nil {
			return err
		}
		line(w, key)
	}
	if len(args) > 0 {
		return nil
	}
	in := bufio.NewScanner(cmd.InOrStdin())
	for n := 1; in.Scan(); n++ {
		if err := jobs.ValidateKey(in.Text()); err != nil {
			return fmt.Errorf("ring: line %d: %w", n, err)
		}
		line(w, in.Text())
	}
	if err := in.Err(); errors.Is(err, bufio.ErrTooLong) {
		return fmt.Errorf("ring: standard input has a line of more than %d bytes; give one key a line, of 1 to 255 bytes", bufio.MaxScanTokenSize)
	} else if err != nil {
		return fmt.Errorf("ring: standard input: %w", err)
	}
	return nil
}
