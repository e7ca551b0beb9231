package a

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestBubble(t *testing.T) { synctest.Test(t, func(*testing.T) { time.Sleep(time.Hour) }) }

func bubble(t *testing.T, f func()) { synctest.Test(t, func(*testing.T) { f() }) }
