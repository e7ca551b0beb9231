package good

func A() { go A() }
