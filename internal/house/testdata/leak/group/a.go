package group

import "sync"

func A() {
	var all sync.WaitGroup
	all.Go(A)
}
