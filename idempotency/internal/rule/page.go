package rule

import (
	"iter"

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
