package storetest

func law() {}
