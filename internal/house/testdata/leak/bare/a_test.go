package bare

import "testing"

func TestA(t *testing.T) {}
