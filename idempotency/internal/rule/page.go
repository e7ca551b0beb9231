package rule

import (
	"iter"
	"math"
	"time"

	"github.com/belfry-go/belfry/idempotency"
)

// Page is how many rows a listing reads at once. Between pages it holds neither a connection nor a snapshot.
const Page = 500

// Pages yields the elements of page after page while there are more. Whoever ranges over it again starts anew: start
// returns a function that reads the next page.
func Pages[T any](namespace string, start func() func() (page []T, more bool, err error)) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var none T
		if err := idempotency.CheckNamespace(namespace); err != nil {
			yield(none, err)
			return
		}
		next := start()
		for more := true; more; {
			var list []T
			var err error
			list, more, err = next()
			if err != nil {
				yield(none, err)
				return
			}
			for _, x := range list {
				if !yield(x, nil) {
					return
				}
			}
		}
	}
}

// DuePages is Pages of the dues in [from, to), for a store that keeps them as seconds: read returns up to Page of those in [low, high),
// oldest first. A zero instant is no bound.
func DuePages(namespace string, from, to time.Time, read func(low, high int64) ([]idempotency.Due, error)) iter.Seq2[idempotency.Due, error] {
	return Pages(namespace, func() func() ([]idempotency.Due, bool, error) {
		low, high := int64(math.MinInt64), int64(math.MaxInt64)
		if !from.IsZero() {
			low = Ceil(from).Unix()
		}
		if !to.IsZero() {
			high = Ceil(to).Unix()
		}
		return func() (list []idempotency.Due, more bool, err error) {
			list, err = read(low, high)
			if n := len(list); n > 0 {
				low = list[n-1].Due.Unix() + 1
			}
			return list, len(list) == Page, err
		}
	})
}
