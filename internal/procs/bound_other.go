//go:build !linux

package procs

import "syscall"

// bound has nothing to add where no system call ties a child to its parent: the end of its input does.
func bound() *syscall.SysProcAttr { return nil }
