package procs

import "syscall"

// bound ties the child's life to the parent's, and keeps the terminal's signals from it.
func bound() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
}
