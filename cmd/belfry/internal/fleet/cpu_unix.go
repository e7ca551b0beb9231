//go:build unix

package fleet

import (
	"syscall"
	"time"
)

// cpu is the processor time this process has used so far, in user and system mode.
func cpu() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
