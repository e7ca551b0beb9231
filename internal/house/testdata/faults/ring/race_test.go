//go:build race && unix

package ring

import "testing"

func TestRaced(t *testing.T) {}
