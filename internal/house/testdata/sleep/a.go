package a

import "time"

func f() { time.Sleep(1) }
