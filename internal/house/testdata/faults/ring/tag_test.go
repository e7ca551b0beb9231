//go:build lost

package ring

import "testing"

func TestTagged(t *testing.T) {}
