package main

var inExample = 1
