package main

import (
	"errors"
	"io"
	"slices"

	"github.com/belfry-go/belfry/cmd/belfry/internal/show"
)

// The exit statuses, besides 0. Commands that do not touch a store's record, but for next, know no misuse
// besides flags and arguments that they do not have.
const (
	statusFailed   = 1   // the store cannot be reached or used, or whatever else went wrong
	statusMisuse   = 2   // an argument or a flag is wrong
	statusRejected = 3   // what is named is not there, or the command cannot be had of it
	statusAmiss    = 4   // what was asked for is told, and is not as it should be: there are gaps, or nobody leads
	interrupted    = 130 // what shells report for a program that ended by Ctrl-C
)

// errSilent is a failure that was told already, where its result was printed.
var errSilent = errors.New("belfry: failed")

// coded is an error with an exit status of its own.
type coded struct {
	error
	status int
}

func (c coded) Unwrap() error { return c.error }

// wantsJSON finds the flag behind one that could not be read.
func wantsJSON(args []string) bool {
	if end := slices.Index(args, "--"); end >= 0 {
		args = args[:end]
	}
	return slices.Contains(args, "--json") || slices.Contains(args, "--json=true")
}

// writeError tells an error to a program. What it returns is told already.
func writeError(out io.Writer, err error) error {
	return errors.Join(writeJSON(out, map[string]string{"error": err.Error()}), errSilent)
}

// misused is the error of a command that was called wrongly: told as JSON where that is asked for, else by what it returns.
func misused(out io.Writer, asked bool, args []string, err error) error {
	if asked || wantsJSON(args) {
		err = writeError(out, err)
	}
	return coded{err, statusMisuse}
}

// writeJSON writes one line.
func writeJSON(out io.Writer, v any) error {
	line, err := show.JSON(v)
	if err != nil {
		return err
	}
	_, err = out.Write(line)
	return err
}
