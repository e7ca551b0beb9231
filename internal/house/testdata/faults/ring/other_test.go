//go:build !linux

package ring

import "testing"

func TestOther(t *testing.T) {}
