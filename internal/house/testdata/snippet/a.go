package a

var inCode = 1
