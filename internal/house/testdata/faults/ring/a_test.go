package ring

import "testing"

func TestThere(t *testing.T) { shown(t) }

func shown(t *testing.T) {}
