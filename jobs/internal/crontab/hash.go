package crontab

import (
	"fmt"

	"github.com/cespare/xxhash/v2"
)

// resolve is an H's text with what name hashes to. It is frozen: any change of it
// would move the dues of every job with an H. A step stays in the text, which
// decides what happens when clocks change.
func (m *member) resolve(f *field, name string) string {
	hash := xxhash.Sum64String(f.name + "\x00" + name)
	if m.step == 0 {
		return fmt.Sprint(m.low + int(hash%uint64(m.high-m.low+1)))
	}
	begin := m.low + int(hash%uint64(m.step))
	if m.ranged {
		return fmt.Sprintf("%d-%d/%d", begin, m.high, m.step)
	}
	return fmt.Sprintf("%d/%d", begin, m.step)
}
