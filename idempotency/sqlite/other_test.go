//go:build !unix

package sqlite

import (
	"context"
	"errors"
)

// playAs needs users as Unix has them.
func playAs(context.Context, string, string) error { return errors.ErrUnsupported }
