package ring

import "testing"

func TestThere(t *testing.T) {}
