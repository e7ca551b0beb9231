package a

func f(ok bool) {
	if ok {
		return
	}
}
