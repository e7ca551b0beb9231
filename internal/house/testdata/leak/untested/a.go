package untested

func A() { go A() }
