package a

import (
	"testing"
	"time"
)

func TestInside(t *testing.T) {
	bubble(t, func() { time.Sleep(time.Hour) })
	time.Sleep(time.Second)
}
