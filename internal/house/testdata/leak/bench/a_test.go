package bench

import "testing"

func BenchmarkA(b *testing.B) {}
