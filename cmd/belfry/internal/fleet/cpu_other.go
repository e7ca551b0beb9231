//go:build !unix

package fleet

import "time"

// cpu is 0 where the system does not tell.
func cpu() time.Duration { return 0 }
