package a

import (
	"testing"
	clock "time"
)

func TestWait(t *testing.T) {
	<-clock.After(1)
	clock.Sleep(1)
}
