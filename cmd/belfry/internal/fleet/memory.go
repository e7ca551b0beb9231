package fleet

import (
	"fmt"
	"os"
	"strings"
)

// peak is the most resident memory this process has had, in bytes; 0 where the system does not tell.
func peak() int64 { return memory("VmHWM:") }

// Resident is the resident memory of this process, in bytes; 0 where the system does not tell.
func Resident() int64 { return memory("VmRSS:") }

// memory is a line of the process's status, in bytes.
func memory(name string) int64 {
	status, err := os.ReadFile("/proc/self/status") // Linux
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(status), name)
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		return 0
	}
	return kib << 10
}
