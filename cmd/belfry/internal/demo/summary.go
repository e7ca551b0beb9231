package demo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// story is what the summary tells beside the numbers.
type story struct {
	Result
	once   int            // customers and nights charged exactly once
	killed []string       // names, in order
	other  map[string]int // of rows
	peak   int64          // the largest replica's memory, bytes; 0: not known
	kept   string         // folder of the files; "": removed
}

// text is the summary in plain words, a sentence for whatever happened and none for what did not.
func (s story) text() string {
	var b strings.Builder
	say := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	say("%s, %s: %s due, %s charged once, %s twice, %s missed.", plural(s.Nights, "night"), plural(s.Customers, "customer"),
		plural(s.Due, "renewal"), number(s.once), number(s.DoubleCharges), number(s.Missed))
	for _, what := range slices.Sorted(maps.Keys(s.other)) {
		say("In the store, not done: %s %s.", number(s.other[what]), what)
	}
	s.tellKills(say)
	s.tellRepeats(say)
	say("The latest start was %s after its due. The store refused %s.", seconds(s.MaxLatenessMS), plural(s.RefusedClaims, "claim"))
	if s.RefusedClaims > 0 {
		say("Each refused claim was for a run that another replica had: it did not start twice.")
	}
	if s.peak > 0 {
		say("The largest replica used %d MB of memory.", s.peak>>20)
	}
	if s.kept != "" {
		say("The files are in %s: the provider's ledger, the store, and a log for each process.", s.kept)
	}
	return b.String()
}

func (s story) tellKills(say func(string, ...any)) {
	if len(s.killed) == 0 {
		return
	}
	say("%s %s killed in the second night and started again; %s left unfinished %s taken up.",
		join(s.killed), verb(len(s.killed)), plural(s.Takeups, "run"), verb(s.Takeups))
	if s.HandoverMS > 0 {
		say("%s after a kill at most, another process charged a customer that the killed one owned.", seconds(s.HandoverMS))
	}
}

func (s story) tellRepeats(say func(string, ...any)) {
	repeated := s.ProviderCalls - s.Charges
	if repeated == 0 {
		return
	}
	why := "the run was repeated"
	if len(s.killed) > 0 {
		why = "the caller died before it wrote that down"
	}
	say("The provider was called %s times, %s of them for a charge that it had made already (%s): the idempotency key made the repeat harmless.",
		number(s.ProviderCalls), number(repeated), why)
}

func verb(n int) string {
	if n == 1 {
		return "was"
	}
	return "were"
}

func seconds(ms int64) string {
	return fmt.Sprintf("%.1f s", (time.Duration(ms) * time.Millisecond).Seconds())
}
