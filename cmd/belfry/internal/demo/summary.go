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
		plural(s.Due, "renewal"), number(s.Charges-s.DoubleCharges), number(s.DoubleCharges), number(s.Missed))
	for _, what := range slices.Sorted(maps.Keys(s.other)) {
		say("In the store, not done: %s %s.", number(s.other[what]), what)
	}
	s.tellKills(say)
	if repeated := s.ProviderCalls - s.Charges; repeated > 0 {
		say("The provider was called %s times: %s again for a charge it had made already, because the caller died before it wrote that down; the idempotency key made the repeat harmless.",
			number(s.ProviderCalls), plural(repeated, "call"))
	}
	say("The latest start was %s after its due. %s claims were refused by the store%s.", seconds(s.MaxLatenessMS), number(s.RefusedClaims),
		map[bool]string{true: ", each a second run that did not happen"}[s.RefusedClaims > 0])
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
	was := "were"
	if len(s.killed) == 1 {
		was = "was"
	}
	say("%s %s killed in the second night and started again. After %s at most, another process charged a customer of the killed one; %s it had begun and not ended %s taken up.",
		join(s.killed), was, seconds(s.HandoverMS), plural(s.Takeups, "run"), map[bool]string{true: "was", false: "were"}[s.Takeups == 1])
}

func seconds(ms int64) string {
	return fmt.Sprintf("%.1f s", (time.Duration(ms) * time.Millisecond).Seconds())
}
