package rule

import (
	"fmt"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// Holder is a live session, to those who want a namespace for themselves.
type Holder struct {
	Replica string
	Until   time.Time // the end of its lease
}

// InUse refuses what needs a namespace that nobody uses; nil where nobody does.
func InUse(namespace string, live []Holder) error {
	if len(live) == 0 {
		return nil
	}
	last := live[0]
	for _, h := range live {
		if h.Until.After(last.Until) {
			last = h
		}
	}
	others := ""
	if n := len(live) - 1; n > 0 {
		others = fmt.Sprintf(" and %d other live sessions do", n)
	}
	return fmt.Errorf("%w: namespace %q is in use: replica %q holds it until %s%s; stop all its replicas, wait for that time if one crashed, and repeat",
		idempotency.ErrRefused, namespace, last.Replica, last.Until.UTC().Format(time.RFC3339), others)
}
