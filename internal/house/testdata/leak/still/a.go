package still

func A() {}
