package ring

func TestLookalike() {}
