//go:build !unix

package fleet

import "time"

// CPU is 0 where the system does not tell.
func CPU() time.Duration { return 0 }
