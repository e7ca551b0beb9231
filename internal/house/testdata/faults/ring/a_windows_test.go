package ring

import "testing"

func TestElsewhere(t *testing.T) {}
