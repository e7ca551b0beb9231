package good_test

import "testing"

func TestA(t *testing.T) {}
