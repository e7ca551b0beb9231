//go:build !linux

package testservers

import (
	"errors"
	"os"
	"syscall"
)

// unsupported says why this system is none for throwaway servers; what follows is never called.
func unsupported() error {
	return errors.New("throwaway servers need Linux: only there the kernel ends them with their test")
}

type process struct {
	done chan struct{}
	err  error
}

func start(string, *os.File, string, ...string) (*process, error) { return nil, unsupported() }
func (p *process) stop(syscall.Signal) error                      { return unsupported() }
func (p *process) freeze() error                                  { return unsupported() }
func (p *process) thaw() error                                    { return unsupported() }
func (p *process) kill()                                          {}
func give(string, []string) error                                 { return unsupported() }

type dir struct{ path string }

func parents() (quick, disk string) { return "", "" }
func makeDir(string) (*dir, error)  { return nil, unsupported() }
func (d *dir) remove() error        { return unsupported() }
func sweep(...string)               {}
