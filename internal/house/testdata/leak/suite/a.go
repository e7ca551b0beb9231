package suite

import "testing"

func Run(t *testing.T) { go Run(t) }
